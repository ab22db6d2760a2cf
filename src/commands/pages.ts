import * as z from "zod";
import type { InventoryState } from "../fleet/inventory/inventory.ts";
import { firstOf } from "../fleet/inventory/known.ts";
import { type Markdown, type Message, md, name, sentence } from "../messages/message.ts";
import { wholeNumber } from "../registry/define.ts";
import { isoTime, time } from "./shapes.ts";

/** How many rows of a list are shown at once. */
const perPage = 50;

export const pageFlag = wholeNumber(10_000)
  .optional()
  .meta({ isFlag: true, description: `which page of ${perPage}` });

export const filterFlag = (description: string) =>
  z.string().max(40).optional().meta({ isFlag: true, description });

/** The shape of a page of a list as it was last read. */
export const pageShape = {
  page: z.number(),
  pages: z.number(),
  count: z.number().describe("on all pages"),
  readAt: time.optional().describe("when the compute service was last read; absent before that"),
  isStale: z.boolean().describe("nothing newer could be read"),
  gaps: z
    .array(z.string())
    .optional()
    .describe("what the compute service gave only in part or in a form that can't be read"),
};

export function pageOf<T>(
  all: readonly T[],
  order: (a: T, b: T) => number,
  page = 1,
  { refreshedAt, stale: isStale, gaps }: InventoryState,
) {
  const before = (page - 1) * perPage;
  return {
    rows: firstOf(all, page * perPage, order).slice(before),
    /** The number of rows on the pages before. */
    before,
    page,
    pages: Math.max(1, Math.ceil(all.length / perPage)),
    count: all.length,
    readAt: refreshedAt === undefined ? undefined : isoTime(refreshedAt),
    isStale,
    ...(gaps ? { gaps } : {}),
  };
}

type Page = Omit<ReturnType<typeof pageOf>, "rows">;

/** The answer for a page after the last one. */
export const noSuchPage = ({ pages }: Page, list: string): Message =>
  sentence(
    md`There ${pages === 1 ? "is one page" : `are ${pages} pages`}. ${name(`/${list} --page 1`)} shows the first.`,
  );

/** Which rows are shown, and how to see others. Undefined when all are shown. */
export function shownOf({ before, count, page, pages }: Page, shown: number, narrower: Markdown) {
  if (shown === count) return undefined;
  const next = page < pages ? md`, ${name(`--page ${page + 1}`)} the next` : "";
  return md`${before + 1} to ${before + shown} of ${count} are shown. ${narrower} shows fewer${next}.`;
}
