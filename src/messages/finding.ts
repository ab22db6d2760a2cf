import type { Severity } from "./severity.ts";

/**
 * What a check found. `notice`: it works, and could be better. `alarm`: somebody must act.
 */
export interface Finding {
  severity: Extract<Severity, "well" | "notice" | "alarm">;
  /** The thing that was checked, and the result: `bot token: gatehouse in Acme`. */
  text: string;
  /** The next step, as a sentence. */
  next?: string;
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
  (result: string, next: string, about?: Finding["about"]): Finding => ({
    severity: kind,
    text: result,
    next,
    about,
  });
export const note = finding("notice");
export const ill = finding("alarm");

/** A finding whose own text says all that can be done. */
export const trouble = (result: string): Finding => ({ severity: "alarm", text: result });

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

const marks = { well: "✓", notice: "!", alarm: "✗" } as const;

/** The sections as text, with the count of each kind of finding at the end. */
export function render(sections: readonly Section[]): string {
  const blocks = sections.map(({ name, findings }) => {
    const lines = findings.map(({ severity: kind, text: result, next }) =>
      [`  ${marks[kind]} ${result}`, ...(next === undefined ? [] : [`    ${next}`])].join("\n"),
    );
    return [name, ...lines].join("\n");
  });
  const all = sections.flatMap(({ findings }) => findings);
  const count = (kind: Finding["severity"]) =>
    all.filter((checked) => checked.severity === kind).length;
  const total = `${count("well")} ✓, ${count("notice")} !, ${count("alarm")} ✗`;
  return `${[...blocks, total].join("\n\n")}\n`;
}

/** 1 when any finding is an alarm. */
export function exitCodeOf(sections: readonly Section[]): 0 | 1 {
  return sections.some(({ findings }) => findings.some((checked) => checked.severity === "alarm"))
    ? 1
    : 0;
}
