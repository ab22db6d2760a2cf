import { families, familyOf, rows } from "../rows/index.ts";
import { cell } from "./report.ts";

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

/** Rows that went since the last run leave its table, which says so. */
export function withoutGoneRows(document: string): string {
  const known = new Set(["recovery", "campaign", ...rows.map(({ id }) => id)]);
  const goneId = (line: string) => {
    const id = /^\| (\w+) +\| (?:holds|BROKEN|not run)/.exec(line)?.[1];
    return id === undefined || known.has(id) ? undefined : id;
  };
  const lines = readPart(document, "the last run").split("\n");
  const gone = lines.flatMap((line) => goneId(line) ?? []);
  if (gone.length === 0) return document;
  const kept = lines.filter((line) => goneId(line) === undefined).join("\n");
  return replacePart(
    document,
    "the last run",
    `${kept.trim()}\n\nRows of this run that have gone since: ${gone.join(", ")}.`,
  );
}

/** What each row is: its fault, what must hold, and which outcomes may be left to a person. */
export function explainRows(): string {
  return families.map(explainFamily).join("\n\n");
}

function explainFamily({ letter, name, about }: (typeof families)[number]): string {
  const lines = rows
    .filter(({ id }) => familyOf(id) === letter)
    .map((row) => `| ${row.id} | ${cell(row.fault)} | ${cell(row.must)} | ${row.unknown} |`);
  return [
    `### ${letter}: ${name}`,
    "",
    about,
    "",
    "| row | fault | what must hold | unknown |",
    "| --- | --- | --- | --- |",
    ...lines,
  ].join("\n");
}
