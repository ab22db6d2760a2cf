import * as z from "zod";
import type { InventoryState } from "../inventory/inventory.ts";
import { firstOf } from "../inventory/known.ts";
import {
  duration,
  firstFew,
  type Markdown,
  md,
  type Message,
  name,
  sentence,
} from "../messages/message.ts";
import { wholeNumber } from "../registry/define.ts";
import { isoTime, time } from "./shapes.ts";

/** How many rows of a list are shown at once. */
const perPage = 50;

export const pageFlag = wholeNumber(10_000)
  .optional()
  .meta({ isFlag: true, description: `which page of ${perPage}` });

export const filterFlag = (description: string) =>
  z.string().max(40).optional().meta({ isFlag: true, description });

/** A page of a list as it was last read. */
export const pageShape = {
  page: z.number(),
  pages: z.number(),
  count: z.number().describe("on all pages"),
  readAt: time.optional().describe("when the compute service was last read; absent before that"),
  isStale: z.boolean().describe("nothing newer could be read"),
};

export function pageOf<T>(
  all: readonly T[],
  order: (a: T, b: T) => number,
  page = 1,
  { refreshedAt, stale: isStale }: InventoryState,
) {
  const before = (page - 1) * perPage;
  return {
    rows: firstOf(all, page * perPage, order).slice(before),
    /** How many rows are on the pages before. */
    before,
    page,
    pages: Math.max(1, Math.ceil(all.length / perPage)),
    count: all.length,
    readAt: refreshedAt === undefined ? undefined : isoTime(refreshedAt),
    isStale,
  };
}

type Page = Omit<ReturnType<typeof pageOf>, "rows">;

/** Instead of a page beyond the last one. */
export const noSuchPage = ({ pages }: Page, list: string): Message =>
  sentence(
    md`There ${pages === 1 ? "is one page" : `are ${pages} pages`}. ${name(`/${list} --page 1`)} shows the first.`,
  );

/** Which rows of all are shown, and what shows others; nothing where all are. */
export function shownOf({ before, count, page, pages }: Page, shown: number, narrower: Markdown) {
  if (shown === count) return undefined;
  const next = page < pages ? md`, ${name(`--page ${page + 1}`)} the next` : "";
  return md`${before + 1} to ${before + shown} of ${count} are shown. ${narrower} shows fewer${next}.`;
}

/** How old a list is, and what it lacks. */
export function inventoryAge(
  { refreshedAt, stale, unread }: InventoryState,
  now: number,
): Markdown {
  if (refreshedAt === undefined) return md`⚠️ The compute service has not been read yet.`;
  const age = md`Statuses read ${duration(now - refreshedAt)} ago.`;
  const old = stale ? md` ⚠️ Nothing newer could be read, so this may be outdated.` : md``;
  if (unread.length === 0) return md`${age}${old}`;
  return md`${age}${old} ⚠️ Could not be read: ${firstFew(unread, 5)}.`;
}
