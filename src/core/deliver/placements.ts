import type { Place } from "../../slack/web.ts";
import type { BoardPlace } from "../../redis/board.ts";
import { denialOf, isChannel, isDecidedElsewhere } from "../cards/render-result.ts";
import { approvalsIn } from "../permit/votes.ts";
import type { Delivered, StoredRequest } from "../request/stored-request.ts";

/**
 * Where a message of a request stands: where it was requested, in the channel of the team that
 * decides, or in the direct messages of the requester.
 */
export type Side = "requested" | "team" | "requester";

/**
 * The part that a message plays: the card, a message of its thread (`noticesDue`), or, where
 * the card isn't, the message that links to it and the answers to that.
 */
export type Role =
  | { kind: "card" | "asked" | "answer" | "expired" }
  | { kind: "notice" | "unknown-elsewhere"; notice: string };

export interface Placement {
  /** Identifies the message within its request (`Owed.key`). */
  key: string;
  role: Role;
  side: Side;
}

/**
 * Returns the messages that a request owes, in the order in which they are posted. One that a team
 * decides about, but that was made elsewhere, has its card and thread in the channel of the team,
 * and is told in both places.
 */
export function placementsOf(request: StoredRequest): readonly Placement[] {
  const isElsewhere = isDecidedElsewhere(request);
  const withCard: Side = isElsewhere ? "team" : "requested";
  const acrossFromCard: Side = isElsewhere ? "requested" : "team";
  const unknown = unknownNotices(request);
  const isAskedTwice = isElsewhere || isTeamToHear(request);
  return [
    placed(withCard, { kind: "card" }),
    ...(isElsewhere ? [placed(acrossFromCard, { kind: "asked" })] : []),
    ...noticesDue(request, unknown).map((notice) =>
      placed(withCard, { kind: "notice", notice }, notice),
    ),
    ...(isAskedTwice ? unknown : []).map((notice) =>
      placed(acrossFromCard, { kind: "unknown-elsewhere", notice }, `${notice}-elsewhere`),
    ),
    ...(isElsewhere && request.final ? [placed(acrossFromCard, { kind: "answer" })] : []),
    ...(isToldDirectly(request) ? [placed("requester", { kind: "expired" })] : []),
  ];
}

const placed = (side: Side, role: Role, key: string = role.kind): Placement => ({
  key,
  role,
  side,
});

/** Returns the keys of the messages that are due in its thread, in order. Each is posted once. */
function noticesDue(request: StoredRequest, unknown: readonly string[]): string[] {
  const isHalfWay = request.state === "draft" && request.stage.isHalfWay;
  return [
    ...(isHalfWay ? ["half-way"] : []),
    ...unknown,
    ...(request.final ? ["result"] : []),
    ...(denialOf(request)?.reason ? ["denial"] : []),
  ];
}

/**
 * Returns the keys of the messages about an unknown outcome: the first one, and each reminder until
 * someone records the outcome.
 */
function unknownNotices({ stage }: StoredRequest): string[] {
  if (stage.state !== "unknown") return [];
  const reminders = Array.from({ length: stage.reminders }, (_, n) => `reminder-${n + 1}`);
  return ["unknown", ...reminders];
}

/** Whether a team hears of an unknown outcome, although it doesn't decide about the request. */
const isTeamToHear = ({ record, delivered }: StoredRequest): boolean =>
  record.teamChannel !== undefined && !delivered.isTeamClosed;

/** Whether the requester reads in a direct message that too few approved in time. */
function isToldDirectly(request: StoredRequest): boolean {
  const { record, state, votes } = request;
  const { approval } = record;
  if (state !== "expired" || approval?.remindsAt === undefined) return false;
  const isDirectAlready = !isChannel(placeOn("requested", request).channelId);
  return !isDirectAlready && approvalsIn(votes).length < approval.required;
}

/**
 * Returns the place on a side. The thread of a message begins once that message is posted. What is
 * owed where it was requested goes to the requester once that channel is closed to the bot.
 */
export function placeOn(side: Side, request: StoredRequest): Place {
  const { record, delivered } = request;
  switch (side) {
    case "requested":
      return isChannelClosed(request)
        ? { channelId: record.requester.id }
        : placeOfRequest(request);
    case "team":
      // Where the team doesn't decide, it hears in its channel, and the card stands elsewhere.
      return isDecidedElsewhere(request)
        ? placeBelow(delivered.card, record.teamChannel ?? "")
        : { channelId: record.teamChannel ?? "" };
    default:
      return { channelId: record.requester.id };
  }
}

/** Whether the channel where it was requested takes none of its messages. */
export const isChannelClosed = ({ delivered }: StoredRequest): boolean =>
  delivered.closedBy !== undefined;

/** Returns the place where it was requested. */
export function placeOfRequest(request: StoredRequest): BoardPlace {
  const { record, delivered } = request;
  const message = isDecidedElsewhere(request) ? delivered.requestMessage : delivered.card;
  return placeBelow(message, record.channelId, record.threadTs);
}

/** Returns the place of a thread: the given one, or that of the message once it is posted. */
function placeBelow(message: Delivered["card"], channelId: string, thread?: string): BoardPlace {
  const threadTs = thread ?? message?.ts;
  return { channelId: message?.channelId ?? channelId, ...(threadTs ? { threadTs } : {}) };
}
