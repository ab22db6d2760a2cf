import type { DataTableBlock, RichTextBlock } from "@slack/types";
import { utcWords } from "../text/time-words.ts";
import { plain, shortened } from "./markdown.ts";

/** Text, or a time (ms), which everyone reads in their own zone. */
export type Cell = string | { readonly at: number };

/**
 * Slack turns the table's pages itself. This many rows can be read at a glance, on a phone, too.
 */
const rowsPerPage = 10;
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
 * A table that Slack pages and sorts
 * (https://docs.slack.dev/reference/block-kit/blocks/data-table-block), and how many rows fit,
 * because long names leave space for fewer. Without rows there is no block.
 */
export function table(
  caption: string,
  columns: readonly string[],
  rows: readonly (readonly Cell[])[],
  /** The number of characters that the rest of the message leaves. */
  most = maxCharacters,
): { block: DataTableBlock | undefined; shown: number } {
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
  if (shown.length === 0) return { block: undefined, shown: 0 };
  // Slack sorts a column by number only if all its cells are numbers.
  const isNumeric = columns.map((_, index) =>
    shown.every((row) => /^\d{1,15}(\.\d+)?$/.test(row[index] ?? "")),
  );
  const block: DataTableBlock = {
    type: "data_table",
    caption: plain(caption) || "Table",
    page_size: rowsPerPage,
    rows: [
      columns.map((text) => ({ type: "raw_text", text: plain(text, mostInCell) || "–" })),
      ...shown.map((row, n) =>
        row.map((text, index) => {
          const cell = some[n]?.[index];
          if (typeof cell === "object") return timeCell(cell.at);
          return isNumeric[index]
            ? { type: "raw_number" as const, value: Number(text), text }
            : { type: "raw_text" as const, text };
        }),
      ),
    ],
  };
  return { block, shown: shown.length };
}

/** As it reads where Slack can't show the reader's own zone. */
const wordsOf = (cell: Cell): string =>
  typeof cell === "string" ? cell : utcWords(cell.at, { hasYear: true });

const timeCell = (at: number): RichTextBlock => ({
  type: "rich_text",
  elements: [
    {
      type: "rich_text_section",
      elements: [
        {
          type: "date",
          timestamp: Math.floor(at / 1000),
          format: "{date_short_pretty} {time}",
          fallback: wordsOf({ at }),
        },
      ],
    },
  ],
});
