import * as z from "zod";
import { type Specs, ComputeError, unreachableWords } from "../compute/compute.ts";
import { UserError } from "../errors.ts";
import type { InventoryState } from "../inventory/inventory.ts";
import {
  counted,
  duration,
  firstFew,
  type Markdown,
  md,
  name,
  plain,
  buttons,
  context,
  fields,
  type Message,
  sentence,
  when,
} from "../messages/message.ts";
import { countByStatus, failsWords, firstOf, statusSign } from "../inventory/known.ts";
import { runButton, type Target, wholeNumber } from "../registry/define.ts";
import type { ReadContext } from "./context.ts";
import { isoTime, time } from "./shapes.ts";

/** The error, for the last known state, when the compute service is unreachable. */
export function unlessUnreachable<T>(read: Promise<T>): Promise<T | ComputeError> {
  return read.catch((error: unknown) => {
    if (error instanceof ComputeError && error.kind === "unreachable") return error;
    throw error;
  });
}

/** A VM or a project as last read, without what only the compute service knows. Throws UserError where nothing was. */
export async function lastKnown(
  { kind, id, name: called }: Target,
  why: ComputeError,
  { inventory, digests, now }: Pick<ReadContext, "inventory" | "digests" | "now">,
): Promise<Message> {
  const found =
    kind === "vm"
      ? await inventory.findVm(id, { onlyKnown: true })
      : await inventory.findProject(id, { onlyKnown: true });
  if (!("found" in found))
    throw new UserError(
      `The compute service ${unreachableWords(why)}, and Gatehouse has no record of ${called}.`,
    );
  const known = found.found;
  const isVm = "projectId" in known;
  const vms = isVm ? [] : await inventory.vms({ projectId: id });
  const failing = await digests.drift.failing([known, ...vms].map((one) => one.id));
  const failure = failing.get(known.id);
  const sign = failure === undefined ? statusSign(known.status) : "🔴";
  const head = md`${sign} *${plain(known.name)}* was *${plain(known.status)}* when it was last read${failsWords(failure)}`;
  return sentence(
    head,
    fields([
      isVm ? ["Project", md`${plain(known.projectName)}`] : ["Type", md`${plain(known.type)}`],
      ["Region", md`${plain(known.region ?? "not reported")}`],
      isVm
        ? ["CPU · memory · disk", md`${specsWords(known.specs)}`]
        : vms.length > 0
          ? [counted(vms.length, "VM"), md`${countByStatus(vms, failing)}`]
          : undefined,
    ]),
    context(
      md`⚠️ The compute service ${unreachableWords(why)}. ${inventoryAge(await inventory.state(), now(), { isKept: true })} ${name("/gatehouse status")} shows when it is available.`,
    ),
    context(md`ID ${name(known.id)}`),
    buttons([runButton("Refresh", `${kind}.show`, { [kind]: known.id })]),
  );
}

/** `4 · 8 · 40`, with question marks for what isn't reported. */
export function specsWords(specs: Specs | undefined): string {
  return [specs?.cpu, specs?.memory, specs?.disk].map((n) => n ?? "?").join(" · ");
}

/** Known people by their names: people don't read user IDs. */
export function withNames(text: string, nameOf: (id: string) => string | undefined): string {
  return text.replaceAll(/\b[UW][A-Z0-9]{2,}\b/g, (id) => nameOf(id) ?? id);
}

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
    /** How many rows are on the pages before. */
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

/** When a list was read, as an age unless its answer is kept (`isKept`), and what it lacks. */
export function inventoryAge(
  { refreshedAt, stale, unread, gaps = [] }: InventoryState,
  now: number,
  how: { isKept?: boolean } = {},
): Markdown {
  if (refreshedAt === undefined) return md`⚠️ The compute service has not been read yet.`;
  const age = how.isKept
    ? md`Statuses read at ${when(refreshedAt)}.`
    : md`Statuses read ${duration(now - refreshedAt)} ago.`;
  const old = stale ? md` ⚠️ Nothing newer could be read, so this may be outdated.` : md``;
  const failed = unread.length > 0 ? md` ⚠️ Could not be read: ${firstFew(unread, 5)}.` : md``;
  const short = gaps.length > 0 ? md` ⚠️ Incomplete: ${plain(gaps.join(". "), 600)}.` : md``;
  return md`${age}${old}${failed}${short}`;
}
