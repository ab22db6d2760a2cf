/** The result of one check: `well`, `note` (it works and could be better), or `ill`. */
export interface Finding {
  severity: "well" | "note" | "ill";
  /** The thing that was checked, and the result: `bot token: gatehouse in Acme`. */
  text: string;
  /** The next step, as a sentence. */
  mend?: string;
  /** The setting to change. Only administrators read this. */
  advice?: string;
  /** When a problem that still exists began (ms). */
  since?: number | undefined;
  /** The ID in gatehouse.yml that it is about, or its place in the file. */
  about?: string | readonly (string | number)[] | undefined;
}

export interface Section {
  name: string;
  findings: readonly Finding[];
}

export const well = (result: string): Finding => ({ severity: "well", text: result });
/** Builds findings that say what to do. */
const finding =
  (kind: Finding["severity"]) =>
  (result: string, mend: string, about?: Finding["about"]): Finding => ({
    severity: kind,
    text: result,
    mend,
    about,
  });
export const note = finding("note");
export const ill = finding("ill");

/** A finding whose own text says all that can be done. */
export const trouble = (result: string): Finding => ({ severity: "ill", text: result });

/** A proxy refused to connect to `target`. */
export const proxyFinding = (status: number, target: string): Finding =>
  status === 407
    ? ill(
        `${target}: the proxy in HTTPS_PROXY answers 407: it refuses the user or the password`,
        "Correct both, as in http://user:password@proxy.example:3128; encode all but letters and digits (%40 for @).",
      )
    : ill(
        `${target}: the proxy in HTTPS_PROXY answers ${status}`,
        "Let the proxy connect there, or name the host in NO_PROXY.",
      );

export const asSentence = (clause: string) => `${clause[0]?.toUpperCase()}${clause.slice(1)}.`;

const marks = { well: "✓", note: "!", ill: "✗" } as const;

/** The sections as text, with the count of each kind of finding at the end. */
export function render(sections: readonly Section[]): string {
  const blocks = sections.map(({ name, findings }) => {
    const lines = findings.map(({ severity: kind, text: result, mend }) =>
      [`  ${marks[kind]} ${result}`, ...(mend === undefined ? [] : [`    ${mend}`])].join("\n"),
    );
    return [name, ...lines].join("\n");
  });
  const all = sections.flatMap(({ findings }) => findings);
  const count = (kind: Finding["severity"]) =>
    all.filter((checked) => checked.severity === kind).length;
  const total = `${count("well")} ✓, ${count("note")} !, ${count("ill")} ✗`;
  return `${[...blocks, total].join("\n\n")}\n`;
}

/** 1 when any finding is `ill`. */
export function exitCodeOf(sections: readonly Section[]): 0 | 1 {
  return sections.some(({ findings }) => findings.some((checked) => checked.severity === "ill"))
    ? 1
    : 0;
}
