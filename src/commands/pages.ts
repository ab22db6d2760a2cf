import * as z from "zod";
import type { InventoryState } from "../fleet/inventory/inventory.ts";
import { firstOf } from "../fleet/inventory/status-order.ts";
import { type Message } from "../messages/blocks.ts";
import { type ButtonSpec } from "../messages/buttons.ts";
import { sentence } from "../messages/card.ts";
import { counted, md, name } from "../messages/markdown.ts";
import { runButton, wholeNumber } from "../registry/define.ts";
import { isoTime, time } from "./shapes.ts";
import { upperFirst } from "../text/letter-case.ts";

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
  isLimited: z
    .boolean()
    .describe("the caller doesn't see everything, and what it doesn't see isn't counted"),
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

/** What a list has, and which of it this page shows: `277 VMs`, or `VMs 51 to 100 of 277`. */
export function rowsOf(
  { before, count }: Page,
  shown: number,
  [noun, more]: readonly [one: string, more: string],
): string {
  if (shown === count) return counted(count, noun, more);
  return `${upperFirst(more)} ${(before + 1).toLocaleString("en-US")} to ${(before + shown).toLocaleString("en-US")} of ${count.toLocaleString("en-US")}`;
}

/** Buttons to the pages before and after. `input` is what the list was asked for besides the page. */
export function pageButtons(
  { before, count, page, pages }: Page,
  list: { command: string; input: Readonly<Record<string, unknown>> },
): ButtonSpec[] {
  const to = (label: string, way: string, other: number) =>
    runButton(label, `${list.command}:${way}`, { ...list.input, page: String(other) });
  const left = Math.min(perPage, count - before - perPage);
  return [
    ...(page > 1 ? [to(`Previous ${perPage}`, "previous", page - 1)] : []),
    ...(page < pages ? [to(`Next ${left}`, "next", page + 1)] : []),
  ];
}
