import { workOnRequest } from "../../log/traces.ts";
import type { Fields } from "../../redis/redis.ts";
import { boardOf } from "../../redis/board.ts";
import { type ChangeCommand, isOpenedByRequester } from "../../registry/define.ts";
import { cardViewOf, hasNoCard, isDecidedElsewhere } from "../cards/render-result.ts";
import type { SinceRequest } from "../cards/asking.ts";
import type { Failpoints } from "../failpoints.ts";
import type { Journal } from "../request/journal.ts";
import { type StoredRequest, parseStored } from "../request/stored-request.ts";
import { type AfterEndOptions, createAfterEnd } from "./after-end.ts";
import { cancelUnapprovable, isUnapprovable } from "./cancel-unapprovable.ts";
import type { Owes, Source } from "./deliver.ts";
import { createLinks } from "./permalink.ts";
import {
  type Placement,
  isChannelClosed,
  placeOfRequest,
  placeOn,
  placementsOf,
} from "./placements.ts";
import { type Owed, type Relocation, isSaid } from "./post-once.ts";
import { type KnownOfRequest, type MessageOptions, RequestMessages } from "./request-messages.ts";

/** How soon it is looked again whether a worker runs that can begin with a request (ms). */
const lookForWorkerMs = 2_000;

export interface RequestSourceOptions extends Omit<MessageOptions, "at">, AfterEndOptions {
  store: Journal;
  commands: readonly ChangeCommand[];
  /** Whether a worker is alive, which begins with what was requested. */
  hasWorker(): Promise<boolean>;
  /** Tells what happened to the target of a request since it was made. */
  changesSince(request: StoredRequest): Promise<SinceRequest>;
  at: Failpoints<"link" | "post" | "posting" | "posted" | "joining" | "join">;
}

/**
 * Creates the source of the messages of requests (`placementsOf`): a card that is edited, and in its
 * thread the notices, in order. A request that ended before its card was posted has one message for
 * both. When the channel takes no card now, the request joins a shared card, unless a person must
 * decide about it. When the channel is closed to the bot, the messages go to the requester's direct
 * messages.
 *
 * It also does what follows an end (`createAfterEnd`), and cancels a request that nobody can
 * approve, because only who posts a card learns that its channel is closed.
 */
export function requestSource(options: RequestSourceOptions): Source {
  const { store, at } = options;
  const { outbox } = store;
  const afterEnd = createAfterEnd(options);
  const linkTo = createLinks(options);

  async function prepareRequest(id: string, fields: Fields): Promise<Owes | undefined> {
    const request = parseStored(id, fields);
    const command = options.commands.find(({ name }) => name === request?.record.command);
    if (!request || !command) return undefined;
    await afterEnd.beforeResult(request, command);
    const isCanceled = isUnapprovable(request);
    if (isCanceled) await cancelUnapprovable(request, store);
    if (isCanceled || (await leftSharedCard(request)))
      return prepareRequest(id, await outbox.get(id));
    const isSaidElsewhere = boardOf(request.delivered) !== undefined || hasNoCard(request);
    // A request that nothing stops is begun at once, if a worker is there.
    const isToBegin = request.state === "authorized" && cardViewOf(request) === "running";
    const since = await options.changesSince(request);
    const known = { since, isStranded: isToBegin && !(await options.hasWorker()) };
    const messages = isSaidElsewhere ? [] : messagesDue(request, command, known);
    if (messages.every(({ mark }) => isSaid(mark))) await afterEnd.afterResult(request, command);
    return {
      createdAt: request.record.createdAt,
      revision: request.revision,
      messages,
      waitMs: isToBegin && !isSaidElsewhere ? lookForWorkerMs : 0,
      work: workOnRequest(request.record),
    };
  }

  /** Takes a request off its shared card when that is gone, or when a person must decide. */
  async function leftSharedCard({ record, state, final, delivered }: StoredRequest) {
    const sharedId = boardOf(delivered);
    if (sharedId === undefined) return false;
    const isShown = await store.sharedCards.touch(sharedId, final);
    if (state !== "unknown" && (isShown || final)) return false;
    await store.sharedCards.leave(record.id, sharedId, outbox);
    return true;
  }

  function messagesDue(
    request: StoredRequest,
    command: ChangeCommand,
    known: KnownOfRequest,
  ): Owed[] {
    const content = new RequestMessages(options, linkTo, { request, command, known });
    return placementsOf(request).map((placement) => {
      const { key, role, side } = placement;
      const { shows, ...post } = content.post(role);
      const isDirect = side === "requested" && isChannelClosed(request);
      const mayJoin = key === "card" && mayShare(request, command);
      return {
        ...post,
        key,
        mark: request.delivered.marks[key],
        place: placeOn(side, request),
        // A direct message is posted once and never edited. The result follows as another message.
        shows: isDirect ? undefined : shows,
        onClosed: (error) => leaveClosedPlace(placement, request, error),
        join: mayJoin ? () => joinSharedCard(request) : undefined,
      };
    });
  }

  async function joinSharedCard(request: StoredRequest): Promise<boolean> {
    const { id } = request.record;
    await at?.("joining", id);
    const isJoined = await store.sharedCards.join(id, placeOfRequest(request));
    await at?.("join", id);
    return isJoined;
  }

  /**
   * Stores that a place is closed, so that what stands there goes elsewhere: from where it was
   * requested to the requester's direct messages, and the card of a team to where it was requested.
   */
  async function leaveClosedPlace(
    { key, side }: Placement,
    request: StoredRequest,
    error: string,
  ): Promise<Relocation> {
    const { id, teamChannel } = request.record;
    const moved = { what: "message-moved", request: id, why: error } as const;
    if (side === "requested") {
      if (isChannelClosed(request)) return "nowhere";
      await outbox.remember(id, { fallback: error });
      await store.note({ ...moved, to: "dm" });
      return "moved";
    }
    if (key !== "card") return "nowhere";
    await outbox.remember(id, { "team-closed": "1" });
    await store.note({ ...moved, to: "asked", from: teamChannel });
    return "moved";
  }

  return { outbox, owedSince: "changedAt", prepareMessages: prepareRequest, at };
}

/**
 * Whether a request may join a shared card. It may not when a person must decide or open something,
 * when it must stand out (break-glass), or when it is told in two places.
 */
function mayShare(request: StoredRequest, command: ChangeCommand): boolean {
  const { record, state, delivered } = request;
  if (isChannelClosed(request) || delivered.isAlone || record.breakGlass) return false;
  if (isDecidedElsewhere(request)) return false;
  return state !== "draft" && state !== "unknown" && !isOpenedByRequester(command);
}
