import type { Place } from "../../slack/web.ts";
import type { BoardPlace } from "../../redis/board.ts";
import {
  isChannel,
  isDecidedElsewhere,
  isExpiredUnapproved,
  noticesDue,
  unknownNotices,
} from "../cards/render-result.ts";
import type { Delivered, StoredRequest } from "../request/stored-request.ts";

/**
 * Where a message of a request stands: where it was requested, in the channel of the team that
 * decides, or in the direct messages of the requester.
 */
export type Side = "requested" | "team" | "requester";

/**
 * What a message of a request is: its card, a message of the card's thread (`noticesDue`), or, where
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
  const notices = noticesDue(request).map((notice) =>
    placed(withCard, { kind: "notice", notice }, notice),
  );
  const unknownOn = (side: Side) =>
    unknownNotices(request).map((notice) =>
      placed(side, { kind: "unknown-elsewhere", notice }, `${notice}-elsewhere`),
    );
  const expired = isToldDirectly(request) ? [placed("requester", { kind: "expired" })] : [];
  const card = placed(withCard, { kind: "card" });
  if (!isElsewhere)
    return [card, ...notices, ...(isTeamToHear(request) ? unknownOn("team") : []), ...expired];
  return [
    card,
    placed("requested", { kind: "asked" }),
    ...notices,
    ...unknownOn("requested"),
    ...(request.final ? [placed("requested", { kind: "answer" })] : []),
    ...expired,
  ];
}

const placed = (side: Side, role: Role, key: string = role.kind): Placement => ({
  key,
  role,
  side,
});

/** Whether a team hears of an unknown outcome, although it doesn't decide about the request. */
const isTeamToHear = ({ record, delivered }: StoredRequest): boolean =>
  record.teamChannel !== undefined && !delivered.isTeamClosed;

/** Whether the requester reads in a direct message that nobody approved in time. */
function isToldDirectly(request: StoredRequest): boolean {
  const isDirectAlready =
    request.delivered.closedBy !== undefined || !isChannel(placeOfRequest(request).channelId);
  return isExpiredUnapproved(request) && !isDirectAlready;
}

/** Returns the place on a side. The thread of a message begins once that message is posted. */
export function placeOn(side: Side, request: StoredRequest): Place {
  const { record, delivered } = request;
  switch (side) {
    case "requested":
      return placeOfRequest(request);
    case "team":
      // Where the team doesn't decide, it hears in its channel, and the card stands elsewhere.
      return isDecidedElsewhere(request)
        ? placeBelow(delivered.card, record.teamChannel ?? "")
        : { channelId: record.teamChannel ?? "" };
    default:
      return { channelId: record.requester.id };
  }
}

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
