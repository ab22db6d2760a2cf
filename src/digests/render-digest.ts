import { countsOf, type CountChart } from "../charts/chart.ts";
import { countByStatus } from "../commands/status-words.ts";
import type { KnownVm } from "../inventory/inventory.ts";
import {
  buttons,
  context,
  divider,
  header,
  message,
  type Message,
  section,
} from "../messages/message.ts";
import { duration, lines, type Markdown, md, when } from "../messages/text.ts";
import type { Facts } from "./facts.ts";
import { type Item, itemsOf, type Kind, kinds } from "./items.ts";
import { snoozeLine } from "./line-buttons.ts";
import { listed } from "./changes.ts";

/** A digest as a message, and the picture that goes with it. */
export interface Digest {
  message: Message;
  picture?: { chart: CountChart; altText: string };
}

export interface DigestFrame {
  title: string;
  /** Keys of lines that are quiet. */
  snoozed: ReadonlySet<string>;
  /** How late it is (ms), when it is. */
  lateMs?: number;
  /** When it was due, in words. */
  dueAt?: string;
  /** For one person alone: a line can't be snoozed for the channel there. */
  isPrivate?: boolean;
  /** Said above everything else. */
  intro?: Markdown;
}

/** Two blocks for each, of the 50 that a message may have. */
const mostLines = 19;
const mostOfKind = 6;

/** The most urgent first; what doesn't fit is counted; nothing to say is one quiet line. Pure. */
export function renderDigest(facts: Facts, frame: DigestFrame): Digest {
  const all = itemsOf(facts);
  const heard = all.filter(({ key, isLasting }) => isLasting === true || !frame.snoozed.has(key));
  const snoozed = all.length - heard.length;
  const missing = missingWords(facts);
  const late = lateWords(frame);
  const counts = countWords(facts);
  if (heard.length === 0 && !missing && !frame.intro) {
    const quiet = md`☀️ Nothing to report since ${sinceWords(facts)}. ${counts}`;
    const more = lines(late, snoozedWords(snoozed));
    return {
      message: message(
        md`${frame.title}: nothing to report`,
        section(quiet),
        more.value === "" ? undefined : context(more),
      ),
    };
  }
  const shown = chosen(heard);
  const rows = shown.flatMap((item) => {
    const { text, button } = item.draw();
    const snooze = frame.isPrivate || item.isLasting ? [] : [snoozeLine(item.key)];
    return [section(text), ...buttons([button, ...snooze])];
  });
  const picture = pictureOf(facts);
  return {
    message: message(
      md`${frame.title}: ${summaryOf(heard) || "something could not be read"}`,
      header(frame.title),
      late && context(late),
      frame.intro && section(frame.intro),
      heard.length === 0
        ? section(md`☀️ Nothing else to report since ${sinceWords(facts)}.`)
        : rows,
      notShown(heard, shown),
      divider,
      missing && section(missing),
      context(lines(counts, snoozedWords(snoozed), ageWords(facts))),
    ),
    ...(picture ? { picture } : {}),
  };
}

/** Each kind gets room for one line before any gets room for many. */
function chosen(items: readonly Item[]): Item[] {
  const byKind = Object.groupBy(items, ({ kind }) => kind);
  const order = (Object.keys(kinds) as Kind[]).filter((kind) => byKind[kind]);
  let room = mostLines - order.length;
  return order.flatMap((kind) => {
    const some = byKind[kind] ?? [];
    const more = Math.min(some.length - 1, mostOfKind - 1, room);
    room -= more;
    return some.slice(0, 1 + more);
  });
}

/** `2 VMs in ERROR, 1 waiting for approval`. */
function summaryOf(items: readonly Item[]): string {
  const counts = Map.groupBy(items, ({ kind }) => kind);
  return [...counts]
    .map(([kind, some]) => `${count(some.length)} ${nameOf(kind, some.length)}`)
    .join(", ");
}

function notShown(items: readonly Item[], shown: readonly Item[]) {
  const rest = items.filter((item) => !shown.includes(item));
  return rest.length === 0 ? undefined : section(md`… and ${summaryOf(rest)} more.`);
}

const count = (many: number) => many.toLocaleString("en-US");
const nameOf = (kind: Kind, many: number) => kinds[kind][many === 1 ? 0 : 1];

const sinceWords = ({ since }: Facts) => when(since, "{date_short_pretty} {time}");

function lateWords({ lateMs, dueAt }: DigestFrame): Markdown | undefined {
  if (lateMs === undefined) return undefined;
  return md`⏰ Late by ${duration(lateMs)}: it was due ${dueAt ?? "earlier"}.`;
}

function snoozedWords(snoozed: number): Markdown | undefined {
  if (snoozed === 0) return undefined;
  return md`😴 ${snoozed} ${snoozed === 1 ? "line is" : "lines are"} snoozed here.`;
}

/** VMs whose state was read: those of projects that couldn't be read are neither counted nor zero. */
function countable({ vms, unreadProjects }: Facts): readonly KnownVm[] | undefined {
  if (!vms) return undefined;
  const unread = new Set(unreadProjects);
  return unread.size === 0 ? vms : vms.filter(({ projectName }) => !unread.has(projectName));
}

function countWords(facts: Facts): Markdown {
  const vms = countable(facts);
  if (!vms || (vms.length === 0 && facts.unreadProjects.length > 0))
    return md`How many VMs there are could not be read.`;
  if (vms.length === 0) return md`There are no VMs.`;
  const uncounted = (facts.vms?.length ?? 0) - vms.length;
  const without = uncounted > 0 ? md`, and ${count(uncounted)} whose state is not known` : md``;
  return md`${count(vms.length)} ${vms.length === 1 ? "VM" : "VMs"}: ${countByStatus(vms)}${without}.`;
}

function pictureOf(facts: Facts): Digest["picture"] {
  const vms = countable(facts);
  if (!vms || vms.length === 0) return undefined;
  const chart = countsOf(
    "VMs by status",
    vms.map(({ status }) => status),
  );
  return { chart, altText: `VMs by status: ${countByStatus(vms)}` };
}

function missingWords({ unread, unreadProjects, stale, refreshedAt }: Facts): Markdown | undefined {
  const parts = [
    unread.length > 0 &&
      md`⚠️ *Could not be read:* ${unread.join(", ")}. So nothing is said about it.`,
    unreadProjects.length > 0 &&
      md`⚠️ *${unreadProjects.length} ${unreadProjects.length === 1 ? "project" : "projects"} could not be read:* ${listed(unreadProjects, 10)}. Their VMs are not counted.`,
    stale &&
      (refreshedAt === undefined
        ? md`⚠️ *The service was not read yet*, so what is said about VMs is incomplete.`
        : md`⚠️ *The service does not answer.* What is said about VMs was read ${when(refreshedAt, "{date_short_pretty} {time}")}.`),
  ];
  const said = lines(...parts);
  return said.value === "" ? undefined : said;
}

function ageWords({ refreshedAt, now, stale }: Facts): Markdown | undefined {
  if (refreshedAt === undefined || stale) return undefined;
  return md`Read ${duration(Math.max(1000, now - refreshedAt))} ago.`;
}
