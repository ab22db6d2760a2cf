import { countChart } from "../charts/chart.ts";
import { countByStatus } from "../inventory/status-words.ts";
import type { KnownVm } from "../inventory/inventory.ts";
import {
  buttons,
  context,
  divider,
  header,
  message,
  type Message,
  news,
  readable,
  section,
  sentence,
  table,
} from "../messages/message.ts";
import { duration, lines, type Markdown, md, when, mention, name } from "../messages/text.ts";
import type { Facts, ConsoleFact, RequestFact } from "./facts.ts";
import { type Item, itemsOf, type Kind, kinds, listed } from "./items.ts";
import { besideLine, lineOf, unsnoozeAll } from "./line-buttons.ts";

interface DigestFrame {
  title: string;
  snoozed: ReadonlySet<string>;
  /** How late it is (ms), when it is. */
  lateMs?: number;
  /** When it was due, in words. */
  dueAt?: string;
  /** For one person: lines can't be snoozed for the channel. */
  isPrivate?: boolean;
  intro?: Markdown;
}

/** More are counted: a digest is short. */
const maxLines = 19;
const maxOfKind = 6;

/** The most urgent first; what doesn't fit is counted; no news is one short line. Pure. */
export function renderDigest(facts: Facts, frame: DigestFrame): Message {
  const all = itemsOf(facts);
  const heard = all.filter((item) => item.isLasting || !frame.snoozed.has(lineOf(item)));
  const snoozed = all.length - heard.length;
  const missing = missingWords(facts);
  const late = lateWords(frame);
  const counts = countWords(facts);
  if (heard.length === 0 && !missing && !frame.intro) {
    const quiet = md`☀️ Nothing new since ${sinceWords(facts)}. ${counts}`;
    const more = lines(late, snoozedWords(snoozed));
    return message(
      news(md`${frame.title}: nothing new`),
      section(quiet),
      more.value === "" ? undefined : context(more),
      snoozed > 0 ? buttons([unsnoozeAll]) : undefined,
    );
  }
  const shown = chosen(heard).map((item) => ({ item, ...item.draw() }));
  const rows = shown.map(({ item, text, button }) =>
    section(text, frame.isPrivate || item.isLasting ? button : besideLine(lineOf(item), button)),
  );
  const statuses = (countable(facts) ?? []).map(({ status }) => status);
  return message(
    news(md`${frame.title}: ${summaryOf(heard) || "something could not be read"}`),
    header(frame.title),
    late && context(late),
    frame.intro && section(frame.intro),
    heard.length === 0 ? section(md`☀️ Nothing else new since ${sinceWords(facts)}.`) : rows,
    notShown(
      heard,
      shown.map(({ item }) => item),
    ),
    divider,
    missing && section(missing),
    // A handover is for one person, and about what runs now
    frame.isPrivate ? [] : countChart("VMs by status", "VMs", statuses),
    context(lines(counts, snoozedWords(snoozed), ageWords(facts))),
    snoozed > 0 ? buttons([unsnoozeAll]) : [],
  );
}

/** Each kind gets room for one line before any gets room for many. */
function chosen(items: readonly Item[]): Item[] {
  const byKind = Object.groupBy(items, ({ kind }) => kind);
  const order = (Object.keys(kinds) as Kind[]).filter((kind) => byKind[kind]);
  let room = maxLines - order.length;
  return order.flatMap((kind) => {
    const some = byKind[kind] ?? [];
    const more = Math.min(some.length - 1, maxOfKind - 1, room);
    room -= more;
    return some.slice(0, 1 + more);
  });
}

/** `2 VMs in ERROR, 1 waiting for approval`. */
function summaryOf(items: readonly Item[]): string {
  const counts = Map.groupBy(items, ({ kind }) => kind);
  return [...counts]
    .map(([kind, some]) => [kind, some.reduce((sum, item) => sum + (item.count ?? 1), 0)] as const)
    .map(([kind, many]) => `${count(many)} ${nameOf(kind, many)}`)
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

/** VMs of unread projects are neither counted nor zero. */
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

function missingWords({ unread, unreadProjects, stale, refreshedAt }: Facts): Markdown | undefined {
  const parts = [
    unread.length > 0 &&
      md`⚠️ *Could not be read:* ${unread.join(", ")}. Not included in this digest.`,
    unreadProjects.length > 0 &&
      md`⚠️ *${unreadProjects.length} ${unreadProjects.length === 1 ? "project" : "projects"} could not be read:* ${listed(unreadProjects, 10)}. Their VMs are not counted.`,
    stale &&
      (refreshedAt === undefined
        ? md`⚠️ *The compute service has not been read yet*, so information about VMs is incomplete.`
        : md`⚠️ *The compute service does not answer.* Information about VMs was read ${when(refreshedAt, "{date_short_pretty} {time}")}.`),
  ];
  const said = lines(...parts);
  return said.value === "" ? undefined : said;
}

function ageWords({ refreshedAt, now, stale }: Facts): Markdown | undefined {
  if (refreshedAt === undefined || stale) return undefined;
  return md`Read ${duration(Math.max(1000, now - refreshedAt))} ago.`;
}

const most = 8;

/** Approvals and unknown outcomes have lines of their own. */
const underWay = new Set(["authorized", "sending", "accepted", "unclear", "not-applied"]);

/** For who takes the shift: a note of who leaves, what runs now, then the digest with nothing snoozed. Shown to one person, who may share it. */
export function renderHandover(
  facts: Facts,
  consoles: readonly ConsoleFact[] | undefined,
  note?: { by: string; text: string },
): Message {
  const running = (facts.open ?? []).filter(({ state }) => underWay.has(state));
  const intro = lines(
    note && note.text !== "" && md`📝 *From ${note.by}:* “${note.text}”`,
    runningWords(facts.open && running),
    ...running.slice(0, most).map((request) => row(request, facts.now)),
    running.length > most &&
      md`… and ${running.length - most} more; ${name("/gatehouse jobs")} lists them.`,
    consolesWords(consoles),
    ...(consoles ?? [])
      .slice(0, most)
      .map(
        ({ vm, by, until }) => md`• ${name(vm)}: ${mention(by)}, until ${when(until, "{time}")}`,
      ),
  );
  const frame = { title: "Handover", snoozed: new Set<string>(), isPrivate: true, intro };
  return renderDigest(facts, frame);
}

function runningWords(running: readonly RequestFact[] | undefined): Markdown {
  if (!running) return md`*Running:* could not be read.`;
  return running.length === 0 ? md`*Running:* nothing.` : md`*Running:*`;
}

function row(
  { command, target, requester, stateWords, createdAt }: RequestFact,
  now: number,
): Markdown {
  return md`• ${command} ${name(target.name)}: ${stateWords} for ${duration(Math.max(1000, now - createdAt))}, requested by ${requester}`;
}

function consolesWords(consoles: readonly ConsoleFact[] | undefined): Markdown {
  if (!consoles) return md`*Consoles:* could not be read.`;
  return consoles.length === 0
    ? md`*Consoles open:* none that Gatehouse opened.`
    : md`*Consoles open:*`;
}

const maxChanges = 99;

/** Everything that was done, for who wants the details. */
export function renderChanges(ended: readonly RequestFact[]): Message {
  const done = ended.filter(({ state }) => state === "done" || state === "failed");
  if (done.length === 0) return sentence(md`No change is on record for that time.`);
  const { block, shown } = table(
    "Changes",
    ["Target", "What", "By", "Time (UTC)", "Request"],
    done
      .slice(0, maxChanges)
      .map(({ target, done: words, state, command, requester, changedAt, id }) => [
        target.name,
        state === "failed" ? `✖️ ${command} failed` : words,
        requester,
        new Date(changedAt).toISOString().slice(5, 16).replace("T", " "),
        id,
      ]),
  );
  const head = md`*${count(done.length)} ${done.length === 1 ? "change" : "changes"}*, newest first`;
  return message(
    readable(head),
    section(shown < done.length ? md`${head}. The first ${shown} are shown.` : head),
    block,
  );
}
