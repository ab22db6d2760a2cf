import { utcWords } from "../text/time-words.ts";
import { plain, shortened } from "./markdown.ts";
import type { Cell, TablePart } from "./parts.ts";

const maxRows = 100;
/** Slack's documentation has named both 10,000 and 20,000. */
const maxCharacters = 9000;
export const mostInCell = 120;

/** A longer name in the first column would push the others out of sight (characters, with its sign). */
const mostInFirstCell = 34;

/** The names of rows, shortened in the middle unless two would then read alike. */
function shortNames(names: readonly string[]): string[] {
  const short = names.map((name) => shortened(name, mostInFirstCell));
  const alike = Map.groupBy(short, (name) => name);
  return short.map((name, n) =>
    alike.get(name)?.length === 1 ? name : plain(names[n] ?? name, mostInCell),
  );
}

/**
 * A table, and how many rows fit, because long names leave space for fewer. Undefined without rows.
 */
export function table(
  caption: string,
  columns: readonly string[],
  rows: readonly (readonly Cell[])[],
  /** The number of characters that the rest of the message leaves. */
  most = maxCharacters,
): { part: TablePart | undefined; shown: number } {
  const some = rows.slice(0, maxRows);
  const names = shortNames(some.map(([first = ""]) => plain(wordsOf(first), 1_000)));
  // Slack refuses empty cells.
  const texts = some.map((row, n) =>
    columns.map(
      (_, index) => (index === 0 ? names[n] : plain(wordsOf(row[index] ?? ""), mostInCell)) || "–",
    ),
  );
  let room = Math.min(most, maxCharacters) - [caption, ...columns].join("").length;
  const end = texts.findIndex((row) => (room -= row.join("").length) < 0);
  const shown = end < 0 ? texts : texts.slice(0, end);
  if (shown.length === 0) return { part: undefined, shown: 0 };
  const part: TablePart = {
    kind: "table",
    caption: plain(caption) || "Table",
    columns: columns.map((text) => plain(text, mostInCell) || "–"),
    rows: shown.map((row, n) =>
      row.map((text, index) => {
        const cell = some[n]?.[index];
        return typeof cell === "object" ? cell : text;
      }),
    ),
  };
  return { part, shown: shown.length };
}

/** As it reads where Slack can't show the reader's own zone. */
export const wordsOf = (cell: Cell): string =>
  typeof cell === "string" ? cell : utcWords(cell.at, { hasYear: true });
