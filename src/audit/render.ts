import { scrub } from "../log/log.ts";
import { type Message } from "../messages/blocks.ts";
import { card } from "../messages/card.ts";
import { counted, duration, lines, md, name, plain } from "../messages/markdown.ts";
import type { Anchor } from "./anchors.ts";
import { type RecordedLoss, type TrailVerdict, range } from "./verify.ts";

/** Plain words without secrets. Empty for anything that isn't text or a number. */
export function recordedText(value: unknown): string {
  if (typeof value !== "string" && typeof value !== "number") return "";
  return plain(String(scrub(String(value))), 200);
}

export function renderVerdict(verdict: TrailVerdict): Message {
  const [first = "", ...rest] = verdictLines(verdict);
  const whole = verdict.recorded.length > 0 ? "⚠️" : "✅";
  const sign = verdict.standing === "intact" ? whole : verdict.standing === "broken" ? "🚨" : "❔";
  return card({ sign, title: md`${first}`, meta: [lines(...rest.map((line) => md`${line}`))] });
}

/** Plain sentences, the most important first. */
export function verdictLines(verdict: TrailVerdict): string[] {
  const { problem, recorded, sealed, head, erased, redacted, archived, unsealed, anchors, signed } =
    verdict;
  const waits =
    unsealed.count > 0
      ? `${counted(unsealed.count, "record")} not sealed yet, the oldest for ${duration(unsealed.oldestMs)}.`
      : "";
  const first = {
    intact: `The audit trail is intact${recorded.length > 0 ? " but for what is recorded as lost" : ""}: ${counted(sealed, "record")} verified.`,
    broken: problem
      ? `The audit trail is broken at record ${problem.seq}${problem.id ? ` (${problem.id})` : ""}: ${problem.sentence} (${problem.kind}).`
      : "The audit trail is broken.",
    unsure:
      sealed === 0
        ? "There is nothing to verify: no record is sealed."
        : "Can't tell whether the audit trail is intact: records are waiting to be sealed. Check that Gatehouse is running.",
  }[verdict.standing];
  return [
    first,
    verdict.standing === "intact" || sealed === 0 ? "" : `${counted(sealed, "record")} verified.`,
    ...recorded.map(lossLine),
    archived ? archivedLine(archived) : "",
    waits,
    head ? `Head: ${head.seq}:${head.hash}` : "",
    anchors > 0 ? `Compared with ${counted(anchors, "head")} kept elsewhere.` : "",
    signed.keys.length > 0 ? `Signed up to record ${signed.seq} by ${signed.keys.join(", ")}.` : "",
    erased > 0 ? `${counted(erased, "record")} erased on purpose; their seals still verify.` : "",
    redacted > 0
      ? `A person was removed from ${counted(redacted, "record")} on purpose; the seals still verify, and later records vouch for what is left.`
      : "",
  ].filter((line) => line !== "");
}

function archivedLine({ seq, at, key }: NonNullable<TrailVerdict["archived"]>): string {
  const day = new Date(at).toISOString().slice(0, 10);
  return `Records 1 to ${seq} were archived on ${day}, signed by ${key}: audit verify checks their file.`;
}

function lossLine({ from, to, head, who, why }: RecordedLoss): string {
  const headWords =
    head === undefined ? "" : `, with the head ${head.slice(0, head.indexOf(":") + 9)}…,`;
  return `Records ${range(from, to)}${headWords} are lost, as ${recordedText(who)} recorded: ${recordedText(why)}`;
}

/**
 * The daily post to the audit channel. It is a copy of the head that write access to Redis can't
 * change.
 */
export function renderHead({ seq, hash }: Pick<Anchor, "seq" | "hash">): Message {
  const head = `${seq}:${hash}`;
  return card({
    title: md`*Head of the audit trail* after ${counted(seq, "record")}`,
    lines: [name(head)],
    meta: [md`To compare: ${name(`node gatehouse.mjs audit verify --anchor ${head}`)}`],
  });
}
