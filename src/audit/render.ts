import { scrub } from "../log/log.ts";
import {
  type Message,
  context,
  counted,
  duration,
  lines,
  md,
  message,
  name,
  plain,
  readable,
  section,
  sentence,
  table,
} from "../messages/message.ts";
import type { Anchor } from "./anchors.ts";
import type { AuditEntry, AuditPage } from "./trail.ts";
import { type RecordedLoss, type TrailVerdict, range } from "./verify.ts";

/**
 * Renders records, newest first. The trail stores people by ID; `named` replaces IDs with names.
 * `about` is the filter in words.
 */
export function renderAudit(
  page: AuditPage,
  about?: string,
  named: (text: string) => string = (text) => text,
): Message {
  const { entries, isMore = false } = page;
  const of = about ? md` about ${name(about)}` : md``;
  if (entries.length === 0) {
    return sentence(
      isMore
        ? md`Nothing${of} in the last 50,000 audit records.`
        : md`The audit trail has no records${of}.`,
    );
  }
  const title = md`*Audit trail*${of}: the last ${entries.length}`;
  const rows = entries.map((entry) => describeEntry(entry).map(named));
  return message(
    readable(
      lines(title, ...rows.slice(0, 10).map((row) => md`${row.filter(Boolean).join(" · ")}`)),
    ),
    section(title),
    table("Audit trail", ["Time (UTC)", "Who", "What", "Target", "Result"], rows).block,
    isMore
      ? context(md`There is more. ${name("/gatehouse audit <target>")} narrows it down.`)
      : undefined,
  );
}

type Row = [time: string, who: string, what: string, target: string, verdict: string];

/** One record in words. Unknown fields are left empty. */
export function describeEntry({ at, record }: AuditEntry): Row {
  const text = (field: string) => words(record[field]);
  const who = text("who") || (record["move"] ? "" : text("requester")) || "Gatehouse";
  const what = text("what");
  const subject = what === "request" ? text("command") || "request" : what.replaceAll("-", " ");
  const about = what === "request" ? text("request") : text("command") || text("request");
  const isPolicy = what === "policy";
  const verdict = isPolicy
    ? `${text("from")} → ${text("to")}`
    : text("move") || text("vote") || text("rule");
  const why = isPolicy ? changesOf(record) : text("why");
  return [
    Number.isFinite(at) ? new Date(at).toISOString().slice(0, 19).replace("T", " ") : "?",
    who,
    about ? `${subject} (${about})` : subject,
    targetOf(record),
    verdict && why ? `${verdict}: ${why}` : verdict || why,
  ];
}

/** The changes in a new policy, if the process that adopted it knew the one before. */
function changesOf({ changes }: AuditEntry["record"]): string {
  return Array.isArray(changes) ? changes.map(words).join("; ") : "";
}

function targetOf(record: AuditEntry["record"]): string {
  const { target, targets } = record;
  if (Array.isArray(targets)) return targets.map(words).join(", ");
  if (typeof target !== "object" || target === null) return words(target);
  const named = "name" in target ? words(target.name) : "";
  return named || ("id" in target ? words(target.id) : "");
}

/** Plain words without secrets. Empty for anything that isn't text or a number. */
function words(value: unknown): string {
  if (typeof value !== "string" && typeof value !== "number") return "";
  return plain(String(scrub(String(value))), 200);
}

export function renderVerdict(verdict: TrailVerdict): Message {
  const [first = "", ...rest] = verdictLines(verdict);
  const whole = verdict.recorded.length > 0 ? "⚠️" : "✅";
  const symbol = verdict.is === "intact" ? whole : verdict.is === "broken" ? "🚨" : "❔";
  const title = md`${symbol} ${first}`;
  return message(
    `${symbol} ${first}`,
    section(title),
    rest.length > 0 ? context(lines(...rest.map((line) => md`${line}`))) : undefined,
  );
}

/** Plain sentences, the most important first. */
export function verdictLines(verdict: TrailVerdict): string[] {
  const { problem, recorded, sealed, head, erased, unsealed, anchors, signed } = verdict;
  const waits =
    unsealed.count > 0
      ? `${counted(unsealed.count, "record")} not sealed yet, the oldest for ${duration(unsealed.oldestMs)}.`
      : "";
  const first = {
    intact: `The audit trail is intact${recorded.length > 0 ? " but for what is recorded as lost" : ""}: ${counted(sealed, "record")} verified.`,
    broken: problem
      ? `The audit trail is broken at record ${problem.seq}${problem.id ? ` (${problem.id})` : ""}: ${problem.says} (${problem.kind}).`
      : "The audit trail is broken.",
    unsure:
      sealed === 0
        ? "There is nothing to verify: no record is sealed."
        : "Can't tell whether the audit trail is intact: records are waiting to be sealed. Check that Gatehouse is running.",
  }[verdict.is];
  return [
    first,
    verdict.is === "intact" || sealed === 0 ? "" : `${counted(sealed, "record")} verified.`,
    ...recorded.map(lossLine),
    waits,
    head ? `Head: ${head.seq}:${head.hash}` : "",
    anchors > 0 ? `Compared with ${counted(anchors, "head")} kept elsewhere.` : "",
    signed.keys.length > 0 ? `Signed up to record ${signed.seq} by ${signed.keys.join(", ")}.` : "",
    erased > 0 ? `${counted(erased, "record")} erased on purpose; their seals still verify.` : "",
  ].filter((line) => line !== "");
}

function lossLine({ from, to, head, who, why }: RecordedLoss): string {
  const what =
    head === undefined ? "" : `, with the head ${head.slice(0, head.indexOf(":") + 9)}…,`;
  return `Records ${range(from, to)}${what} are lost, as ${words(who)} recorded: ${words(why)}`;
}

/**
 * The daily post to the audit channel. It is a copy of the head that write access to Redis can't
 * change.
 */
export function renderHead({ seq, hash }: Pick<Anchor, "seq" | "hash">): Message {
  const head = `${seq}:${hash}`;
  return message(
    `Head of the audit trail after ${counted(seq, "record")}`,
    section(md`*Head of the audit trail* after ${counted(seq, "record")}\n${name(head)}`),
    context(md`To compare: ${name(`node gatehouse.mjs audit verify --anchor ${head}`)}`),
  );
}
