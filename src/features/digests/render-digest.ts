import { countChart } from "../../fleet/charts/chart.ts";
import { countByStatus } from "../../fleet/inventory/status-order.ts";
import type { KnownVm } from "../../fleet/inventory/inventory.ts";
import { type Message } from "../../messages/blocks.ts";
import { paragraph, rule, small } from "../../messages/parts.ts";
import { list, card } from "../../messages/card.ts";
import {
  counted,
  duration,
  dotted,
  lines,
  type Markdown,
  md,
  when,
  name,
  listed,
  dayAndTime,
  timeNear,
} from "../../messages/markdown.ts";
import type { ViewLimit } from "../../commands/view-limit.ts";
import type { HandoverList } from "../digest-part.ts";
import { type DigestFacts, type Item, itemsOf } from "./items.ts";
import { besideLine, lineOf, unsnoozeAll } from "./line-buttons.ts";

interface DigestFrame {
  title: string;
  /** The targets or the team that the digest covers. Undefined when it covers everything. */
  about?: Markdown | undefined;
  snoozed?: ReadonlySet<string>;
  /** How late it is (ms), and when it was due, as text. */
  late?: { ms: number; dueAt: string } | undefined;
  /** Shown to one person, so lines can't be snoozed for the channel. */
  isPrivate?: boolean;
  intro?: Markdown;
  /** Where more is told than this reader sees here. */
  rest?: Markdown | undefined;
}

/** Further lines are only counted, to keep a digest short. */
const maxLines = 19;
const maxOfKind = 6;

/**
 * Renders a digest: the most urgent lines first, those that don't fit counted, and one short line
 * if there is no news. Pure.
 */
export function renderDigest(facts: DigestFacts, frame: DigestFrame): Message {
  const { title, snoozed, intro, isPrivate } = frame;
  const all = itemsOf(facts);
  const heard = all.filter((item) => item.isLasting || !snoozed?.has(lineOf(item)));
  const hidden = all.length - heard.length;
  const missing = missingWords(facts);
  const late =
    frame.late && md`⏰ Late by ${duration(frame.late.ms)}: it was due ${frame.late.dueAt}.`;
  const counts = countWords(facts);
  const since = timeNear(facts.since, facts.now);
  const snoozes = hidden > 0 && md`😴 ${counted(hidden, "line is", "lines are")} snoozed here.`;
  const ways = [
    ...(facts.parts ?? []).flatMap((part) => part.buttons ?? []),
    ...(hidden > 0 ? [unsnoozeAll] : []),
  ];
  if (heard.length === 0 && !missing && !intro) {
    const more = lines(late, frame.about && md`Only about ${frame.about}.`, snoozes);
    return card({
      sign: "☀️",
      title: md`Nothing new since ${since}. ${counts}`,
      push: md`${title}: nothing new`,
      meta: [more],
      ways,
    });
  }
  const shown = chosen(heard);
  const rows = shown.map((item) => {
    const isPlain = isPrivate || item.isLasting;
    return paragraph(item.text, isPlain ? item.button : besideLine(lineOf(item), item.button));
  });
  const statuses = (countable(facts) ?? []).map(({ status }) => status);
  return card({
    heading: title,
    push: md`${title}: ${summaryOf(heard) || "something could not be read"}`,
    body: [
      small(lines(late, dotted(md`Since ${since}`, frame.about))),
      intro && paragraph(intro),
      heard.length === 0
        ? paragraph(md`☀️ Nothing else new since ${since}.`)
        : list(rows, {
            beyond: heard.length - shown.length,
            rest(_left, many) {
              const listedItems = new Set(shown.slice(0, many));
              const rest = heard.filter((item) => !listedItems.has(item));
              return paragraph(md`… and ${summaryOf(rest)} more.`);
            },
          }),
      rule,
      missing && paragraph(missing),
      // No chart in a handover, which is about what runs now, and none for fewer than three counts,
      // which the text shows.
      isPrivate || new Set(statuses).size < 3 ? [] : countChart("VMs by status", "VMs", statuses),
    ],
    meta: [lines(counts, snoozes, frame.rest, ageWords(facts))],
    ways,
  });
}

const byKind = (items: readonly Item[]) => [...Map.groupBy(items, ({ kind }) => kind)];

/** Chooses the lines that fit: one of each kind first, then more of each. */
function chosen(items: readonly Item[]): Item[] {
  const all = byKind(items);
  let room = maxLines - all.length;
  const shown = new Set(
    all.flatMap(([, some]) => {
      const more = Math.min(some.length - 1, maxOfKind - 1, room);
      room -= more;
      return some.slice(0, 1 + more);
    }),
  );
  return items.filter((item) => shown.has(item));
}

/** Counts by kind, like `2 VMs in ERROR, 1 waiting for approval`. */
function summaryOf(items: readonly Item[]): string {
  return byKind(items)
    .flatMap(([, some]) => {
      const many = some.reduce((sum, item) => sum + (item.count ?? 1), 0);
      const [first] = some;
      return first ? [counted(many, ...first.words)] : [];
    })
    .join(", ");
}

/** The VMs that can be counted: those of unread projects are left out. */
function countable({ vms, unreadProjects }: DigestFacts): readonly KnownVm[] | undefined {
  const unread = new Set(unreadProjects);
  return vms?.filter(({ projectName }) => !unread.has(projectName));
}

function countWords(facts: DigestFacts): Markdown {
  const vms = countable(facts);
  if (!vms || (vms.length === 0 && facts.unreadProjects.length > 0))
    return md`How many VMs there are could not be read.`;
  if (vms.length === 0) return md`There are no VMs.`;
  const uncounted = (facts.vms?.length ?? 0) - vms.length;
  const without =
    uncounted > 0 ? md`, and ${uncounted.toLocaleString("en-US")} whose state is not known` : md``;
  const { seen = vms.length } = facts;
  const many =
    seen > vms.length + uncounted
      ? `${vms.length} of your ${counted(seen, "VM")}`
      : counted(vms.length, "VM");
  return md`${many}: ${countByStatus(vms, failingIn(facts))}${partCounts(facts)}${without}.`;
}

/**
 * Failing VMs by ID. As in lists, a running VM that fails attestation isn't counted as only
 * running.
 */
const failingIn = ({ parts = [] }: DigestFacts) =>
  new Map(parts.flatMap(({ red = [] }) => [...red]));

const partCounts = ({ parts = [] }: DigestFacts): string =>
  parts.map(({ counts = "" }) => counts).join("");

function missingWords({
  unread,
  cut = [],
  unreadProjects,
  gaps = [],
  stale,
  refreshedAt,
}: DigestFacts): Markdown | undefined {
  const warnings = lines(
    cut.length > 0 && md`⚠️ *Read only in part:* ${cut.join(", ")}. What is older isn't told.`,
    unread.length > 0 &&
      md`⚠️ *Could not be read:* ${unread.join(", ")}. Not included in this digest.`,
    unreadProjects.length > 0 &&
      md`⚠️ *${counted(unreadProjects.length, "project")} could not be read:* ${listed(unreadProjects, 10)}. Their VMs are not counted.`,
    gaps.length > 0 && md`⚠️ *Incomplete:* ${listed(gaps, 5)}.`,
    stale &&
      (refreshedAt === undefined
        ? md`⚠️ *The compute service has not been read yet*, so information about VMs is incomplete.`
        : md`⚠️ *The compute service does not answer.* Information about VMs was read ${dayAndTime(refreshedAt)}.`),
  );
  return warnings.value === "" ? undefined : warnings;
}

function ageWords({ refreshedAt, stale }: DigestFacts): Markdown | undefined {
  if (refreshedAt === undefined || stale) return undefined;
  return md`Read at ${when(refreshedAt)}.`;
}

const most = 8;

/** States of requests that run now. Approvals and unknown outcomes have their own lines. */
const underWay = new Set(["authorized", "sending", "accepted", "unclear"]);

/** What a feature tells whoever takes the shift, by its name; without a list it could not be read. */
export interface ReadHandover {
  name: string;
  list: HandoverList | undefined;
}

function handoverLines({ name: called, list: handoverList }: ReadHandover): readonly Markdown[] {
  if (!handoverList) return [md`*${called}:* could not be read.`];
  const { title, none, lines: all } = handoverList;
  if (all.length === 0 && none === undefined) return [];
  const head = md`*${title}:*${all.length === 0 ? ` ${none}.` : ""}`;
  const more = all.length - most;
  return [
    head,
    ...all.slice(0, most).map((line) => md`• ${line}`),
    ...(more > 0 ? [md`… and ${more} more`] : []),
  ];
}

/** For who takes the shift: a note of who leaves, what runs now, then the digest with nothing snoozed. Shown to one person, who may share it. */
export function renderHandover(
  facts: DigestFacts,
  parts: readonly ReadHandover[],
  {
    left: note,
    limit,
  }: { left?: { author: string; text: string }; limit?: ViewLimit | undefined } = {},
): Message {
  const running = facts.open
    ?.filter(({ state }) => underWay.has(state))
    .map(
      ({ command, target, requester, stateWords, createdAt }) =>
        md`• ${command} ${name(target.name)}: ${stateWords}, requested by ${requester} ${dayAndTime(createdAt)}`,
    );
  const more = (running?.length ?? 0) - most;
  const intro = lines(
    note && note.text !== "" && md`📝 *From ${note.author}:* “${note.text}”`,
    running
      ? md`*Running:*${running.length === 0 ? " nothing." : ""}`
      : md`*Running:* could not be read.`,
    ...(running ?? []).slice(0, most),
    more > 0 && md`… and ${more} more; ${name("/gatehouse jobs")} lists them.`,
    ...parts.flatMap(handoverLines),
  );
  const about = limit && md`only what${limit.within.replace(" that", "")}`;
  return renderDigest(facts, {
    title: "Handover",
    isPrivate: true,
    intro,
    about,
    rest: limit?.rest,
  });
}
