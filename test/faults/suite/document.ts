import { families, familyOf, rows } from "../rows/index.ts";

export const documentFile = "docs/faults.md";

/** The parts of docs/faults.md that programs write; the rest is written by hand. */
type Part = "the rows" | "the last run";

const begins = (part: Part) => `<!-- ${part}: written by npm run faults -->`;
const ends = (part: Part) => `<!-- end of ${part} -->`;

/** What stands there now. */
export function readPart(document: string, part: Part): string {
  const [from, to] = [document.indexOf(begins(part)), document.indexOf(ends(part))];
  if (from < 0 || to < from) throw new Error(`${documentFile} has no place for ${part}`);
  return document.slice(from + begins(part).length, to);
}

export function replacePart(document: string, part: Part, text: string): string {
  const was = readPart(document, part);
  return document.replace(`${begins(part)}${was}`, () => `${begins(part)}\n\n${text.trim()}\n\n`);
}

/** The last run in lines, each with the rows it tells of: one in its table, many in the lists above. */
function linesOfRun(document: string): { line: string; ids: readonly string[] }[] {
  return readPart(document, "the last run")
    .split("\n")
    .map((line) => {
      const list = /^Hold.*?: (.*)\.$/.exec(line)?.[1] ?? "";
      const row = /^\| (\w+) +\| (?:holds|BROKEN|not run)/.exec(line)?.[1];
      return { line, ids: [row ?? "", ...list.split(", ").map(idOf)].filter((id) => id !== "") };
    });
}

const idOf = (item: string) => item.split(" ")[0] ?? "";

export const toldRows = (document: string): readonly string[] =>
  linesOfRun(document).flatMap(({ ids }) => ids);

/** Rows that went since the last run leave it, and a sentence says so. */
export function withoutGoneRows(document: string): string {
  const known = new Set(["recovery", "campaign", ...rows.map(({ id }) => id)]);
  const isGone = (id: string) => !known.has(id);
  const gone = toldRows(document).filter(isGone);
  if (gone.length === 0) return document;
  const kept = linesOfRun(document).flatMap(({ line, ids }) => {
    if (!ids.some(isGone)) return [line];
    const [what, list = ""] = line.split(": ");
    const items = list.replace(/\.$/, "").split(", ");
    const rest = items.filter((item) => !isGone(idOf(item)));
    return line.startsWith("|") ? [] : [`${what}: ${rest.join(", ")}.`];
  });
  const since = `Rows of this run that have gone since: ${gone.join(", ")}.`;
  return replacePart(document, "the last run", `${kept.join("\n").trim()}\n\n${since}`);
}

/** What each row is: its fault, what must hold, and which outcomes may be left to a person. */
export function explainRows(): string {
  return families.map(explainFamily).join("\n\n");
}

/** Which outcomes may be left to a person; docs/faults.md explains the signs. */
const marks = { none: "", "no trace": "†", any: "‡", "not judged": "°" } as const;

function explainFamily({ letter, name }: (typeof families)[number]): string {
  const ours = rows.filter(({ id }) => familyOf(id) === letter);
  const lines = ours.map(({ id, fault, must, unknown }) => {
    const first = ours.find((row) => row.must === must)?.id ?? id;
    return `- **${id}${marks[unknown]}** ${fault} → ${first === id ? must : `as in ${first}`}`;
  });
  return [`### ${letter}: ${name}`, "", ...lines].join("\n");
}
