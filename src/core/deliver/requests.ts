import type { AfterNote } from "../../attestation/render-attestation.ts";
import type { Policy } from "../../config/policy-file.ts";
import type { Log } from "../../log/log.ts";
import { workOnRequest } from "../../log/traces.ts";
import type { Markdown } from "../../messages/markdown.ts";
import type { NameOf } from "../permit/access.ts";
import { needsOf } from "../permit/approval-rule.ts";
import { type BoardPlace, boardOf } from "../../redis/board.ts";
import type { Fields } from "../../redis/redis.ts";
import {
  type ChangeCommand,
  type Target,
  isOpenedByRequester,
  type Command,
} from "../../registry/define.ts";
import { type ToldResult, isToldElsewhere } from "./after-result.ts";
import type { Failpoints } from "../failpoints.ts";
import { type Journal, redraw } from "../request/journal.ts";
import {
  type Delivered,
  type StoredRequest,
  parseStored,
  type RequestIn,
} from "../request/stored-request.ts";
import { endUnsent } from "../perform/perform.ts";
import type { SinceRequest } from "../cards/asking.ts";
import {
  cameFrom,
  closedLine,
  renderAsked,
  renderCard,
  renderExpired,
  renderStaleCard,
  renderUnknownElsewhere,
  whoMaySkip,
  withResult,
} from "../cards/render-card.ts";
import {
  type Above,
  cardVersion,
  cardViewOf,
  hasNoCard,
  isChannel,
  isDecidedElsewhere,
  isExpiredUnapproved,
  noticesDue,
  renderNotice,
  renderResult,
  unknownNotices,
} from "../cards/render-result.ts";
import { versionOf } from "../cards/since-request.ts";
import type { Place, Web } from "../../slack/web.ts";
import type { Owes, Source } from "./deliver.ts";
import { linkTo as permalinkOf } from "./permalink.ts";
import { type Owed, isSaid } from "./post-once.ts";
import { deciderOf, callOf } from "../request/stage.ts";
import type { EmergencyWords } from "../../registry/emergency.ts";
import { showOrSay } from "../../slack/refused-message.ts";

/** How soon it is looked again whether a worker runs that can begin with a request (ms). */
const lookForWorkerMs = 2_000;

/** The most permalinks that a process remembers. */
const maxLinks = 1_000;

/**
 * Creates the source of the messages of requests: a card that is edited, and in its thread the
 * notices, in order. A request that ended before its card was posted has one message for both. When
 * the channel takes no card now, the request joins a shared card, unless a person must decide about
 * it. When the channel is closed to the bot, the messages go to the requester's direct messages.
 *
 * A request that a team decides about, but that was made elsewhere, has its card and thread in the
 * channel of the team. A message where it was requested then links to the card, the card links
 * back, and both places get the result.
 */
export function requestSource(options: {
  store: Journal;
  commands: readonly ChangeCommand[];
  /** All commands, for the buttons that offer them. */
  offered?: readonly Command[];
  /** The words for changes that skip approvals. Undefined when none can. */
  emergency?: EmergencyWords | undefined;
  /** Whether a worker is alive, which begins with what was requested. */
  hasWorker(): Promise<boolean>;
  /** Reads the names of people and groups. */
  namesOf(ids: readonly string[]): Promise<NameOf>;
  web: Web;
  /**
   * The policy is read at each use. It says who may approve when the request doesn't say it, and
   * which buttons ask for a confirmation.
   */
  config: { readonly policy: Pick<Policy, "access" | "confirm" | "teams"> };
  /** Tells what is added to a result: whether the VM is attested again. */
  attestationNote(request: StoredRequest, command: ChangeCommand): Promise<AfterNote | undefined>;
  /** Set it to let cards that wait for approval tell what happened to their targets meanwhile. */
  around?: {
    /** Tells what happened to the target of a request since it was made. */
    changesSince(request: StoredRequest): Promise<SinceRequest>;
    /** Finds the IDs of requests that wait for approval and whose cards tell about this target. */
    askingAbout(target: Target): Promise<readonly string[]>;
  };
  /** Reads the facts that outlast the end of a request: a sentence each. */
  factsAfter(request: StoredRequest): Promise<readonly Markdown[]>;
  /** Called at least once for each ended request, before its result is posted. */
  recordResults(request: StoredRequest, command: ChangeCommand): Promise<void>;
  /**
   * Called at least once for each request that ended with a change (`isToldElsewhere`), after all
   * of its own messages are posted.
   */
  tellElsewhere(request: StoredRequest, command: ChangeCommand): Promise<void>;
  /** Called when Slack has accepted these results in a channel. */
  onTold(results: readonly ToldResult[], channelId: string): void;
  log: Log;
  at: Failpoints<"link" | "post" | "posting" | "posted" | "joining" | "join">;
}): Source {
  const { store } = options;
  const { outbox } = store;
  const links = new Map<string, string>();

  async function prepareRequest(id: string, fields: Fields): Promise<Owes | undefined> {
    const request = parseStored(id, fields);
    const command = options.commands.find(({ name }) => name === request?.record.command);
    if (!request || !command) return undefined;
    const { marks } = request.delivered;
    const recorded = recordedMark(request);
    const before = marks["afterwards"];
    // A release before this one noted every end without a decider as "1".
    const isKnown =
      before === recorded || (request.state === "not-applied" && before !== undefined);
    const isRecorded = !request.final || isKnown;
    if (!isRecorded) {
      await options.recordResults(request, command);
      await redrawAround(request);
      await outbox.remember(id, { "said:afterwards": recorded });
    }
    if (request.state === "unknown" && marks["unknown"] === undefined) await redrawAround(request);
    if (request.state === "draft" && isSaid(marks["card"]) && isOnlyForRequester(request)) {
      await cancelUnapprovable(request);
      return prepareRequest(id, await outbox.get(id));
    }
    const { revision, record } = request;
    const sharedId = boardOf(request.delivered);
    if (sharedId !== undefined) {
      const isShown = await store.sharedCards.touch(sharedId, request.final);
      if (request.state === "unknown" || (!isShown && !request.final)) {
        await store.sharedCards.leave(id, sharedId, outbox);
        return prepareRequest(id, await outbox.get(id));
      }
    }
    const isSaidElsewhere = sharedId !== undefined || hasNoCard(request);
    const since = (await options.around?.changesSince(request)) ?? [];
    // A request that nothing stops is begun at once, if a worker is there.
    const isToBegin = request.state === "authorized" && cardViewOf(request) === "running";
    const isStranded = isToBegin && !(await options.hasWorker());
    const messages = isSaidElsewhere ? [] : messagesDue(request, command, { since, isStranded });
    const isTold = messages.every(({ mark }) => isSaid(mark));
    if (isTold && isToldElsewhere(request) && marks["told-elsewhere"] === undefined) {
      await options.tellElsewhere(request, command);
      await outbox.remember(id, { "said:told-elsewhere": "1" });
    }
    const waitMs = isToBegin && !isSaidElsewhere ? lookForWorkerMs : 0;
    const work = workOnRequest(record);
    return { createdAt: record.createdAt, revision, messages, waitMs, work };
  }

  /**
   * Tells people privately that their press counts, when the card can't show it because Slack takes
   * no more edits of it.
   */
  async function tellDeciders(request: StoredRequest, command: ChangeCommand): Promise<void> {
    const { card, formerCard } = request.delivered;
    if (!card || !isChannel(card.channelId)) return;
    const text = renderStaleCard(request, command, { isAnew: formerCard === undefined });
    for (const user of decidersUnshown(request)) {
      const to = { channel: card.channelId, user };
      const posted = await showOrSay(text, (message) =>
        options.web.call("chat.postEphemeral", { ...to, ...message }),
      );
      if (!posted.ok) options.log.warn("slack.reply-failed", { user, ...posted });
    }
  }

  /**
   * Resolves with the permalink of a message. It never changes, so Slack is asked once, although a
   * message that waits for its turn is rendered at each attempt.
   */
  async function linkTo(message: Delivered["card"]): Promise<string | undefined> {
    const at = message ? `${message.channelId} ${message.ts}` : "";
    const link = links.get(at) ?? (await permalinkOf(message, options));
    if (links.size >= maxLinks) links.clear();
    if (link !== undefined) links.set(at, link);
    return link;
  }

  /** Redraws the cards that wait for approval and tell about the target of this request. */
  async function redrawAround({ record }: StoredRequest): Promise<void> {
    const ids = (await options.around?.askingAbout(record.target)) ?? [];
    await redraw(ids, store);
  }

  /** Returns all messages of a request with their places: card, thread, and those elsewhere. */
  function messagesDue(
    request: StoredRequest,
    command: ChangeCommand,
    { since, isStranded }: { since: SinceRequest; isStranded: boolean },
  ): Owed[] {
    const { delivered, record, state, final } = request;
    const { marks } = delivered;
    const isElsewhere = isDecidedElsewhere(request);
    const spot = spotOfRequest(request);
    const here = (post: Post) => oweWhereRequested(request, post, spot);
    let rendered: AfterNote | undefined;
    // The note is remembered, so one that is read before the end would be missing from the result.
    const note = async () =>
      final ? (rendered = await options.attestationNote(request, command)) : undefined;
    const renderEnd = async (shown: { isMentioned?: boolean; above?: Above }) => {
      const [after, goesOn] = [await note(), await options.factsAfter(request)];
      return renderResult(request, command, after, { ...shown, goesOn, commands: options.offered });
    };
    const onTold = (channelId: string) => options.onTold([{ request, note: rendered }], channelId);
    const isDecision = state === "draft" || state === "unknown";
    const urgency = isDecision ? "decision" : final ? "result" : "card";
    const isLast = cardViewOf(request) === "ended";
    // Whether the card also holds the result. A posted card does if both have the same ts. One that
    // isn't posted yet, or is posted anew, does unless the result was posted already.
    const isResultIn = (card: string, result: string) =>
      isSaid(marks[card]) ? marks[card] === marks[result] : !isSaid(marks[result]);
    const card: Post = {
      key: "card",
      async render() {
        const after = await note();
        const { policy } = options.config;
        const { emergency, offered } = options;
        const skipping =
          cardViewOf(request) === "asking" ? whoMaySkip(request, command, policy) : [];
        const nameOf = emergency && (await options.namesOf(skipping));
        const known = { since, isStranded, after, policy, emergency, nameOf, commands: offered };
        const place = { ...(await placeOnCard(request)), ...known };
        const shown = renderCard(request, command, approversOf(request), place);
        return final && isResultIn("card", "result")
          ? withResult(await renderEnd({}), shown)
          : shown;
      },
      shows: {
        field: "face",
        before: delivered.cardFingerprint ?? "",
        now: `${cardFingerprint(request, since)}${isLinked(request) ? " linked" : ""}${isStranded ? " no-worker" : ""}`,
        standsAt: delivered.card,
        isLast,
        asks: isShownAsking(delivered.cardFingerprint) && delivered.formerCard === undefined,
        tellsEnd: final && delivered.formerCard === undefined,
        onStale: () => tellDeciders(request, command),
      },
      urgency,
      covers: final && !isSaid(marks["result"]) ? ["result"] : [],
      onSaid: final && !isElsewhere ? onTold : undefined,
      join: mayShare(request, command) ? () => joinSharedCard(request, spot) : undefined,
    };
    const notices = noticesDue(request).map((notice): Post => ({
      key: notice,
      async render(place) {
        await options.at?.("post", record.id);
        const above = aboveIn(place, delivered);
        if (notice === "result") return renderEnd({ above });
        return renderNotice(notice, request, command, { above });
      },
      urgency: notice === "result" ? "result" : "decision",
      onSaid: notice === "result" && !isElsewhere ? onTold : undefined,
    }));
    const unknown = unknownNotices(request).map((notice): Post => ({
      key: notice === "unknown" ? "unknown-elsewhere" : `${notice}-elsewhere`,
      render: async () =>
        renderUnknownElsewhere(notice, request, command, await linkTo(delivered.card)),
      urgency: "decision",
    }));
    const expired: Post = {
      key: "expired",
      render: async () => renderExpired(request, command, await linkTo(delivered.card)),
    };
    const direct = { channelId: record.requester.id };
    const isToldThere = delivered.closedBy !== undefined || !isChannel(spot.channelId);
    const isOwedDirectly = isExpiredUnapproved(request) && !isToldThere;
    const inDirect = isOwedDirectly ? [oweInChannel(request, expired, direct)] : [];
    if (!isElsewhere) {
      const { teamChannel: channelId } = record;
      const isHeard = channelId !== undefined && !delivered.isTeamClosed;
      const toTeam = isHeard
        ? unknown.map((post) => oweInChannel(request, post, { channelId }))
        : [];
      return [...[card, ...notices].map(here), ...toTeam, ...inDirect];
    }
    const asked: Post = {
      key: "asked",
      async render() {
        await options.at?.("link", record.id);
        const after = await note();
        const { offered: commands } = options;
        const known = { since, after, policy: options.config.policy, commands };
        const shown = renderAsked(request, command, await linkTo(delivered.card), known);
        return final && isResultIn("asked", "answer")
          ? withResult(await renderEnd({ isMentioned: true }), shown)
          : shown;
      },
      shows: {
        field: "asked-face",
        before: delivered.requestMessageFingerprint ?? "",
        now: cardFingerprint(request, since),
        standsAt: delivered.requestMessage,
        isLast,
        tellsEnd: final && delivered.formerRequestMessage === undefined,
      },
      urgency,
      covers: final && !isSaid(marks["answer"]) ? ["answer"] : [],
      onSaid: final ? onTold : undefined,
    };
    const answer: Post = {
      key: "answer",
      async render(place) {
        const { requestMessage: shownAt, formerRequestMessage } = delivered;
        const above = aboveAt(place, formerRequestMessage ? undefined : shownAt);
        return renderEnd({ isMentioned: true, above });
      },
      urgency: "result",
      onSaid: onTold,
    };
    const inTeam = (post: Post) =>
      oweInChannel(request, post, placeIn(delivered.card, record.teamChannel ?? ""));
    return [
      inTeam(card),
      here(asked),
      ...notices.map(inTeam),
      ...unknown.map(here),
      ...(final ? [here(answer)] : []),
      ...inDirect,
    ];
  }

  async function joinSharedCard({ record }: StoredRequest, place: Spot): Promise<boolean> {
    await options.at?.("joining", record.id);
    const isJoined = await store.sharedCards.join(record.id, place);
    await options.at?.("join", record.id);
    return isJoined;
  }

  /** Returns the IDs that the card mentions: the people and groups that may approve. */
  function approversOf({ record: { approval } }: StoredRequest): readonly string[] {
    if (!approval) return [];
    return [...new Set(needsOf(options.config.policy, approval).flatMap(({ from }) => from))];
  }

  /** Returns what a card says about its place: where it was requested, or why it is here. */
  async function placeOnCard(request: StoredRequest): Promise<Parameters<typeof renderCard>[3]> {
    if (!isDecidedElsewhere(request)) return { note: closedLine(request) };
    const link = isLinked(request) ? await linkTo(request.delivered.requestMessage) : undefined;
    return { from: cameFrom(request, link) };
  }

  /**
   * Returns a message that is owed in the channel of the team, or in the requester's direct
   * messages. When that place is closed, only a card goes to another one.
   */
  function oweInChannel(request: StoredRequest, post: Post, place: Place): Owed {
    const { id, teamChannel } = request.record;
    const onClosed = async (error: string) => {
      if (post.key !== "card") return undefined;
      await outbox.remember(id, { "team-closed": "1" });
      await store.note({
        what: "message-moved",
        request: id,
        to: "asked",
        from: teamChannel,
        why: error,
      });
      return 0;
    };
    return { ...post, mark: request.delivered.marks[post.key], place, onClosed };
  }

  /**
   * Returns a message that is owed where it was requested. When that place is closed to the bot,
   * the message goes to the requester's direct messages, and when those are closed too, nowhere.
   */
  function oweWhereRequested(request: StoredRequest, { shows, ...post }: Post, spot: Spot): Owed {
    const { delivered, record } = request;
    const { closedBy, marks } = delivered;
    const onClosed = (error: string) => moveToDirectMessages(request, error);
    const base = { ...post, mark: marks[post.key], onClosed };
    if (closedBy === undefined) return { ...base, place: spot, shows };
    // A direct message is posted once and never edited. The result follows as another message.
    return { ...base, place: { channelId: record.requester.id } };
  }

  /**
   * Stores that the messages go to the requester's direct messages. Undefined when they did
   * already.
   */
  async function moveToDirectMessages(
    { record, delivered }: StoredRequest,
    error: string,
  ): Promise<number | undefined> {
    if (delivered.closedBy !== undefined) return undefined;
    await outbox.remember(record.id, { fallback: error });
    await store.note({ what: "message-moved", request: record.id, to: "dm", why: error });
    return 0;
  }

  /**
   * Cancels a request whose card only the requester sees. No one can approve it, so it is canceled
   * now instead of when its time is over.
   */
  async function cancelUnapprovable(request: RequestIn<"draft">): Promise<void> {
    const isTeams = request.record.teamChannel !== undefined;
    const where = isTeams ? "the channel of its team" : "this channel";
    const why = `Gatehouse can't post in ${where}, so no one can approve it`;
    const hint =
      "Use /invite @gatehouse there, then request again; sharedChannels in gatehouse.yml must name a channel that another company shares.";
    await endUnsent(request, { state: "cancelled", why, hint }, { store });
  }

  return { outbox, owedSince: "changedAt", prepareMessages: prepareRequest, at: options.at };
}

/** A message of a request, without its place. */
type Post = Omit<Owed, "mark" | "place" | "onClosed">;

type Spot = BoardPlace;

/** Returns the place where it was requested. */
function spotOfRequest(request: StoredRequest): Spot {
  const { record, delivered } = request;
  const message = isDecidedElsewhere(request) ? delivered.requestMessage : delivered.card;
  return placeIn(message, record.channelId, record.threadTs);
}

/** Returns the place of a thread: the given one, or that of the message once it is posted. */
function placeIn(message: Delivered["card"], channelId: string, thread?: string): Spot {
  const threadTs = thread ?? message?.ts;
  return { channelId: message?.channelId ?? channelId, ...(threadTs ? { threadTs } : {}) };
}

/**
 * Tells what is above a notice. A card that was posted anew doesn't count, so that the notice says
 * everything.
 */
const aboveIn = (place: Place | undefined, { card, formerCard }: Delivered): Above =>
  aboveAt(place, formerCard ? undefined : card);

/**
 * Tells what is above a message in a place. A thread that isn't the card's may have other cards.
 */
function aboveAt(place: Place | undefined, card: Delivered["card"]): Above {
  if (place?.threadTs === undefined || card === undefined) return undefined;
  return place.threadTs === card.ts ? "card" : "several";
}

/**
 * Whether a card may ask people for a decision, by the version that it shows. While an edit is
 * under way, or when its answer was lost, that isn't known, so it counts as asking.
 */
const isShownAsking = (view = "") => /^(asking|unknown|editing)/.test(view);

/** Returns the IDs of people whose vote or decision the card doesn't show yet. */
function decidersUnshown({ votes, delivered, stage }: StoredRequest): readonly string[] {
  const shown = /^asking (\d+)/.exec(delivered.cardFingerprint ?? "")?.[1];
  const voters = votes
    .slice(shown === undefined ? -1 : Number(shown))
    .map(({ voterId }) => voterId);
  const decidedBy = deciderOf(stage);
  return [...new Set([...voters, ...(decidedBy ? [decidedBy.id] : [])])];
}

/** Returns the fingerprint of what a card is made of. The card is edited when this changes. */
function cardFingerprint(request: StoredRequest, since: SinceRequest): string {
  const version = versionOf(since);
  const signed = request.delivered.review ? " signed" : "";
  return `${cardVersion(request)}${version && ` since ${version}`}${signed}`;
}

/** Whether only the requester sees the card. */
function isOnlyForRequester(request: StoredRequest): boolean {
  const { record, delivered } = request;
  if (isDecidedElsewhere(request)) return false;
  return (
    delivered.closedBy !== undefined ||
    (delivered.isTeamClosed === true && !isChannel(record.channelId))
  );
}

/**
 * Whether the card links to the message where it was requested. A direct message isn't linked,
 * because others can't see it.
 */
function isLinked(request: StoredRequest): boolean {
  const { record, delivered } = request;
  return (
    isDecidedElsewhere(request) &&
    delivered.requestMessage !== undefined &&
    isChannel(record.channelId)
  );
}

/**
 * Names the outcome whose results were recorded, in the field `said:afterwards`. The outcome may
 * change once more, and its results are then recorded again: a person records the ID of a snapshot
 * later, or a change that was told as not applied takes effect late.
 */
function recordedMark({ state, stage }: StoredRequest): string {
  if (state === "not-applied") return state;
  const { snapshotId, claimed } = callOf(stage)?.answer ?? {};
  const outcome = snapshotId ?? (claimed && `claimed ${claimed.id}`) ?? "1";
  return deciderOf(stage) ? outcome : "1";
}

/**
 * Whether a request may join a shared card. It may not when a person must decide or open something,
 * when it must stand out (break-glass), or when it is told in two places.
 */
function mayShare(request: StoredRequest, command: ChangeCommand): boolean {
  const { record, state, delivered } = request;
  const { closedBy, isAlone } = delivered;
  if (closedBy !== undefined || isAlone || record.breakGlass) return false;
  if (isDecidedElsewhere(request)) return false;
  return state !== "draft" && state !== "unknown" && !isOpenedByRequester(command);
}
