import type { KnownBlock } from "@slack/types";
import { table } from "../messages/message.ts";

/** A table, and how many of its rows found room: long names take the place of rows. */
export function shownTable(
  columns: readonly string[],
  rows: readonly (readonly string[])[],
): { block: KnownBlock; shown: number } {
  const block = table(columns, rows);
  return { block, shown: block.type === "table" ? block.rows.length - 1 : 0 };
}
