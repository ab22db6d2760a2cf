import { lasts, type StoredRequest } from "../journal/record.ts";
import type { Vote } from "../../approvals/votes.ts";
import { type Markdown, md } from "../../messages/text.ts";

/** Which view the card shows. A move within a view costs no edit of the message. */
type CardView = "asking" | "running" | "waiting" | "looking" | "unknown" | "ended";

export function cardViewOf({
  state,
  final,
  progress,
}: Pick<StoredRequest, "state" | "final" | "progress">): CardView {
  if (final) return "ended";
  switch (state) {
    case "draft":
      return "asking";
    case "unknown":
      return "unknown";
    case "unclear":
    case "not-applied":
      return "looking";
    case "authorized":
      return progress.waitsFor || progress.why ? "waiting" : "running";
    default:
      return "running";
  }
}

/** A card is edited only when this changes. */
export function cardVersion(request: StoredRequest): string {
  const { progress, state } = request;
  const cardView = cardViewOf(request);
  switch (cardView) {
    case "asking":
      return `asking ${request.votes.length}`;
    case "waiting":
      return `waiting ${progress.waitsFor?.request ?? ""} ${progress.why ?? ""}`;
    case "ended":
      return `ended ${state} ${progress.decidedBy?.id ?? ""}${denialOf(request)?.reason ? " why" : ""}`;
    case "unknown":
      return `unknown ${progress.lastLook?.status ?? ""}`;
    case "running":
      return lasts(progress) ? "running long" : cardView;
    default:
      return cardView;
  }
}

/**
 * Its card, with the thread, is in the channel of its team, where they decide; where it was requested, a message links to
 * it, and the result is told there too.
 */
export function isDecidedElsewhere({
  record,
  delivered,
}: Pick<StoredRequest, "record" | "delivered">): boolean {
  return (
    record.approval !== undefined &&
    record.teamChannel !== undefined &&
    delivered.isTeamClosed !== true
  );
}

/** Not a direct message, nor the Home tab. */
export function isChannel(channelId: string): boolean {
  return /^[CG]/.test(channelId);
}

/** It expired for want of approvals: its requester hears of it in a direct message too. */
export function isExpiredUnapproved({ record, state, votes }: StoredRequest): boolean {
  const { approval } = record;
  if (state !== "expired" || approval?.remindsAt === undefined) return false;
  return votes.filter(({ vote }) => vote === "approve").length < approval.required;
}

/** Messages due in its thread, in order; each is posted once. */
export function noticesDue(request: StoredRequest): string[] {
  if (hasNoCard(request)) return [];
  const due: string[] = [];
  if (request.state === "draft" && request.progress.isHalfWay) due.push("half-way");
  due.push(...unknownNotices(request));
  if (request.final) due.push("result");
  if (denialOf(request)?.reason) due.push("denial");
  return due;
}

/** Of an unknown outcome: that it is, and each reminder until someone records it. */
export function unknownNotices({
  state,
  progress,
}: Pick<StoredRequest, "state" | "progress">): string[] {
  if (state !== "unknown") return [];
  const reminders = Array.from({ length: progress.reminders ?? 0 }, (_, n) => `reminder-${n + 1}`);
  return ["unknown", ...reminders];
}

/** How a message of `unknownNotices` begins. */
export function unknownWords(notice: string): string {
  return notice === "unknown" ? "Outcome unknown" : "Still unknown";
}

/**
 * A safety snapshot or a rollout's request has no card: its parent reports it. An unknown outcome needs one, for its
 * buttons, and keeps it.
 */
export function hasNoCard({
  record,
  state,
  delivered,
}: Pick<StoredRequest, "record" | "state" | "delivered">): boolean {
  const hasParent = record.via === "roll" || record.via === "safety";
  return hasParent && state !== "unknown" && delivered.said["card"] === undefined;
}

/** Mentions of the user and group IDs among these. */
export function mentions(ids: readonly string[]): string {
  const called = ids.flatMap((id) => {
    if (/^S[A-Z0-9]{2,}$/.test(id)) return [`<!subteam^${id}>`];
    return /^[UW][A-Z0-9]{2,}$/.test(id) ? [`<@${id}>`] : [];
  });
  return called.join(" ");
}

export function denialOf({ votes }: Pick<StoredRequest, "votes">): Vote | undefined {
  return votes.find(({ vote }) => vote === "deny");
}

export function decidedLine({ record, votes, state }: StoredRequest): Markdown | undefined {
  if (!record.approval) return undefined;
  const no = denialOf({ votes });
  if (no) return md`Denied by ${no.name}${no.reason ? md`: “${no.reason}”` : ""}.`;
  const yes = votes.filter(({ vote }) => vote === "approve").map((vote) => vote.name);
  if (yes.length === 0 || state === "draft") return undefined;
  return md`Approved by ${yes.join(", ")}.`;
}
