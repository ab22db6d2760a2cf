import type { StoredRequest } from "./record.ts";

/**
 * How a request looks in the channel. Moves that don't change the face cost no edit: a request that runs through shows
 * two faces, one while it runs and one when it has ended.
 */
export type Face = "asking" | "running" | "waiting" | "looking" | "unknown" | "ended";

export function faceOf({
  state,
  final,
  progress,
}: Pick<StoredRequest, "state" | "final" | "progress">): Face {
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

/** Equal marks look equal; a card is edited only when its mark changes. */
export function faceMark(request: StoredRequest): string {
  const { progress, state } = request;
  const face = faceOf(request);
  switch (face) {
    case "asking":
      return `asking ${request.votes.length}`;
    case "waiting":
      return `waiting ${progress.waitsFor?.request ?? ""} ${progress.why ?? ""}`;
    case "ended":
      return `ended ${state} ${progress.decidedBy?.id ?? ""}`;
    case "unknown":
      return `unknown ${progress.lastLook?.status ?? ""}`;
    default:
      return face;
  }
}

/** Messages of its thread that are due, in order, each said once: the result, and what can't wait for it. */
export function noticesDue(request: StoredRequest): string[] {
  if (isQuiet(request)) return [];
  const due: string[] = [];
  if (request.state === "unknown") {
    due.push("unknown");
    for (let n = 1; n <= (request.progress.reminders ?? 0); n++) due.push(`reminder-${n}`);
  }
  if (request.final) due.push("result");
  return due;
}

/**
 * What Gatehouse asked for by itself has no message of its own: the request or the roll that it serves tells of it. But
 * an unknown outcome waits for a person, and needs the message with the buttons, and how it was settled then.
 */
export function isQuiet({
  record,
  state,
  delivered,
}: Pick<StoredRequest, "record" | "state" | "delivered">): boolean {
  const isOurs = record.via === "roll" || record.via === "safety";
  return isOurs && state !== "unknown" && delivered.said["card"] === undefined;
}
