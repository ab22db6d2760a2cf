import type { StoredRequest, RequestRecord } from "../journal/record.ts";
import { shortFingerprint } from "../../approvals/fingerprint.ts";
import { type ButtonSpec, buttons, context, fields } from "../../messages/message.ts";
import { lines, Markdown, md, name, when } from "../../messages/text.ts";
import type { KnownBlock } from "@slack/types";

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
      return `ended ${state} ${progress.decidedBy?.id ?? ""}`;
    case "unknown":
      return `unknown ${progress.lastLook?.status ?? ""}`;
    default:
      return cardView;
  }
}

/** Messages due in its thread, in order; each is posted once. */
export function noticesDue(request: StoredRequest): string[] {
  if (hasNoCard(request)) return [];
  const due: string[] = [];
  if (request.state === "unknown") {
    due.push("unknown");
    for (let n = 1; n <= (request.progress.reminders ?? 0); n++) due.push(`reminder-${n}`);
  }
  if (request.final) due.push("result");
  return due;
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

export function askingLine({ record, votes }: StoredRequest): Markdown {
  const { approval } = record;
  if (!approval) return md`Waiting for a decision.`;
  const yes = votes.filter(({ vote }) => vote === "approve");
  const said = yes.length > 0 ? md` Approved by ${yes.map((vote) => vote.name).join(", ")}.` : md``;
  return md`Waiting for approval: ${yes.length} of ${approval.required}, until ${when(approval.expiresAt, "{time}")}.${said}`;
}

/** What an approver reads, and the buttons. The fingerprint covers all of it. */
export function askingBlocks(request: StoredRequest, approvers: readonly string[]): KnownBlock[] {
  const { record } = request;
  const { approval } = record;
  if (!approval) return [];
  const value = JSON.stringify({ request: record.id, digest: shortFingerprint(approval.digest) });
  const own = JSON.stringify({ request: record.id });
  const specs: ButtonSpec[] = [
    { label: "Approve", action: "vote:approve", value, style: "primary" },
    { label: "Deny", action: "vote:deny", value, style: "danger" },
    { label: "Cancel", action: "request:cancel", value: own },
  ];
  const shown = approval.evidence.map(([label, text]) => [label, md`${text}`] as const);
  const halves = [shown.slice(0, 10), shown.slice(10, 20)].filter((half) => half.length > 0);
  const parameters = parametersOf(record);
  return [
    ...(parameters.length > 0 ? [context(lines(...parameters))] : []),
    ...halves.map((half) => fields(half)),
    context(
      md`${approval.why} · fingerprint ${name(shortFingerprint(approval.digest))}`,
      callOut(approvers),
    ),
    ...buttons(specs),
  ];
}

/** Every argument but the target, which is in the title: approvals cover only what was shown. */
export function parametersOf({
  input,
  target,
}: Pick<RequestRecord, "input" | "target">): Markdown[] {
  return Object.entries(input)
    .filter(([, given]) => [given].flat().some((one) => one !== target.id))
    .map(([key, given]) => md`${key}: ${name(given === true ? "yes" : [given].flat().join(", "))}`);
}

/** Slack notifies them once, when the card is posted. */
function callOut(approvers: readonly string[]): Markdown {
  const called = mentions(approvers);
  return called ? new Markdown(`Approvers: ${called}`) : md`Every full member can approve.`;
}

/** Mentions of the user and group IDs among these. */
export function mentions(ids: readonly string[]): string {
  const called = ids.flatMap((id) => {
    if (/^S[A-Z0-9]{2,}$/.test(id)) return [`<!subteam^${id}>`];
    return /^[UW][A-Z0-9]{2,}$/.test(id) ? [`<@${id}>`] : [];
  });
  return called.join(" ");
}

export function decidedLine({ record, votes, state }: StoredRequest): Markdown | undefined {
  if (!record.approval) return undefined;
  const no = votes.find(({ vote }) => vote === "deny");
  if (no) return md`Denied by ${no.name}.`;
  const yes = votes.filter(({ vote }) => vote === "approve").map((vote) => vote.name);
  if (yes.length === 0 || state === "draft") return undefined;
  return md`Approved by ${yes.join(", ")}.`;
}
