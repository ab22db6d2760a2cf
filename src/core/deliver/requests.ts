import type { AfterNote } from "../../attestation/render-attestation.ts";
import type { Policy } from "../../config/policy-file.ts";
import type { Log } from "../../log/log.ts";
import { workOnRequest } from "../../log/traces.ts";
import { needsOf } from "../permit/approval-rule.ts";
import { type BoardPlace, boardOf } from "../../redis/board.ts";
import type { Fields } from "../../redis/redis.ts";
import {
  type ChangeCommand,
  type Target,
  isOpenedByRequester,
  type Command,
} from "../../registry/define.ts";
import { isToldElsewhere } from "./after-result.ts";
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

const maxLinks = 1_000;

/**
 * The messages of requests: a card that is edited, and in its thread the notices, in order. One that ended before its card was
 * posted has one message for all; and where the channel takes no card now, the request joins a shared one, unless a person must
 * decide about it. Where the channel is closed to the bot, they go to the requester's direct messages.
 *
 * What a team decides and was requested elsewhere has its card and thread in the channel of the team. Then a message where it
 * was requested links to the card, which links back, and the result comes to both.
 */
export function requestSource(options: {
  store: Journal;
  commands: readonly ChangeCommand[];
  /** All commands, for buttons. */
  offered?: readonly Command[];
  /** Of changes that skip approvals, where some can. */
  emergency?: EmergencyWords | undefined;
  web: Web;
  /** Says who may approve where nothing else does, and which buttons ask. Its policy is read at each use. */
  config: { readonly policy: Pick<Policy, "access" | "confirm" | "teams"> };
  /** Added to a result: whether the VM is attested again. */
  attestationNote(request: StoredRequest, command: ChangeCommand): Promise<AfterNote | undefined>;
  /** Where cards that wait for approval tell what happened to their targets meanwhile. */
  around?: {
    /** What happened to the target of a request since it was made. */
    changesSince(request: StoredRequest): Promise<SinceRequest>;
    /** IDs of the requests that wait for approval, and whose cards tell what this one did. */
    askingAbout(target: Target): Promise<readonly string[]>;
  };
  /** Called at least once for each ended request, before its result is posted. */
  recordResults(request: StoredRequest, command: ChangeCommand): Promise<void>;
  /** Called at least once for each request whose own messages say that it ended, once they are posted. */
  tellElsewhere(request: StoredRequest, command: ChangeCommand): Promise<void>;
  /** Slack has the results of these requests. */
  onTold(requests: readonly StoredRequest[]): void;
  log: Log;
  at: Failpoints<"link" | "post" | "posting" | "posted" | "joining" | "join">;
}): Source {
  const { store } = options;
  const { outbox } = store;
  const links = new Map<string, string>();

  async function readRequest(id: string, fields: Fields): Promise<Owes | undefined> {
    const request = parseStored(fields);
    const command = options.commands.find(({ name }) => name === request?.record.command);
    if (!request || !command) return undefined;
    const { said } = request.delivered;
    // The ID of a snapshot may be found later
    const { snapshotId, claimed } = callOf(request.stage)?.answer ?? {};
    const found = snapshotId ?? (claimed && `claimed ${claimed.id}`) ?? "1";
    const recorded = deciderOf(request.stage) ? found : "1";
    const isRecorded = !request.final || said["afterwards"] === recorded;
    if (!isRecorded) {
      await options.recordResults(request, command);
      await redrawAround(request);
      await outbox.remember(id, { "said:afterwards": recorded });
    }
    if (request.state === "unknown" && said["unknown"] === undefined) await redrawAround(request);
    if (request.state === "draft" && isSaid(said["card"]) && isSeenByNobody(request)) {
      await cancelUnapprovable(request);
      return readRequest(id, await outbox.get(id));
    }
    const { revision, record } = request;
    const sharedId = boardOf(request.delivered);
    if (sharedId !== undefined) {
      const isShown = await store.sharedCards.touch(sharedId, request.final);
      if (request.state === "unknown" || (!isShown && !request.final)) {
        await store.sharedCards.leave(id, sharedId, outbox);
        return readRequest(id, await outbox.get(id));
      }
    }
    const isSaidElsewhere = sharedId !== undefined || hasNoCard(request);
    const since = (await options.around?.changesSince(request)) ?? [];
    const messages = isSaidElsewhere ? [] : messagesDue(request, command, since);
    const isTold = messages.every(({ mark }) => isSaid(mark));
    if (isTold && isToldElsewhere(request) && said["told-elsewhere"] === undefined) {
      await options.tellElsewhere(request, command);
      await outbox.remember(id, { "said:told-elsewhere": "1" });
    }
    return { createdAt: record.createdAt, revision, messages, work: workOnRequest(record) };
  }

  /** Whose press the card can't show any more reads it privately: Slack takes no edit of the card. */
  async function tellDeciders(request: StoredRequest, command: ChangeCommand): Promise<void> {
    const { card, formerCard } = request.delivered;
    if (!card || !isChannel(card.channelId)) return;
    const text = renderStaleCard(request, command, { isAnew: formerCard === undefined });
    for (const user of decidersUnshown(request)) {
      const to = { channel: card.channelId, user };
      const posted = await showOrSay(text, (one) =>
        options.web.call("chat.postEphemeral", { ...to, ...one }),
      );
      if (!posted.ok) options.log.warn("slack.reply-failed", { user, ...posted });
    }
  }

  /** Asked of Slack once: it never changes, and what waits for its turn is rendered each time. */
  async function linkTo(message: Delivered["card"]): Promise<string | undefined> {
    const at = message ? `${message.channelId} ${message.ts}` : "";
    const link = links.get(at) ?? (await permalinkOf(message, options));
    if (links.size >= maxLinks) links.clear();
    if (link !== undefined) links.set(at, link);
    return link;
  }

  async function redrawAround({ record }: StoredRequest): Promise<void> {
    const ids = (await options.around?.askingAbout(record.target)) ?? [];
    await redraw(ids, store);
  }

  /** All that it says, and where: its card and thread, and what is told elsewhere. */
  function messagesDue(
    request: StoredRequest,
    command: ChangeCommand,
    since: SinceRequest,
  ): Owed[] {
    const { delivered, record, state, final } = request;
    const { said } = delivered;
    const isElsewhere = isDecidedElsewhere(request);
    const spot = spotAsked(request);
    const here = (post: Post) => whereAsked(request, post, spot);
    // Asked for before it ended, it would be remembered as none
    const note = async () => (final ? options.attestationNote(request, command) : undefined);
    const onTold = () => options.onTold([request]);
    const isDecision = state === "draft" || state === "unknown";
    const urgency = isDecision ? "decision" : final ? "result" : "card";
    const isLast = cardViewOf(request) === "ended";
    // One message says both: what is posted now, or was, and found again after its answer was lost. Posted anew, it repeats none
    const holds = (card: string, result: string) =>
      isSaid(said[card]) ? said[card] === said[result] : !isSaid(said[result]);
    const card: Post = {
      key: "card",
      async render() {
        const after = await note();
        const { policy } = options.config;
        const { emergency, offered } = options;
        const known = { since, after, policy, emergency, commands: offered };
        const place = { ...(await placeOnCard(request)), ...known };
        const shown = renderCard(request, command, approversOf(request), place);
        return final && holds("card", "result")
          ? withResult(renderResult(request, command, after, { commands: offered }), shown)
          : shown;
      },
      shows: {
        field: "face",
        before: delivered.cardView ?? "",
        now: `${faceOf(request, since)}${isLinked(request) ? " linked" : ""}`,
        standsAt: delivered.card,
        isLast,
        asks: isShownAsking(delivered.cardView) && delivered.formerCard === undefined,
        tellsEnd: final && delivered.formerCard === undefined,
        onStale: () => tellDeciders(request, command),
      },
      urgency,
      covers: final && !isSaid(said["result"]) ? ["result"] : [],
      onSaid: final && !isElsewhere ? onTold : undefined,
      join: mayShare(request, command) ? () => joined(request, spot) : undefined,
    };
    const notices = noticesDue(request).map((notice): Post => ({
      key: notice,
      async render(place) {
        await options.at?.("post", record.id);
        const noted = notice === "result" ? await note() : undefined;
        return renderNotice(notice, request, command, {
          note: noted,
          above: aboveIn(place, delivered),
          commands: options.offered,
        });
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
    const inDirect = isOwedDirectly ? [inChannel(request, expired, direct)] : [];
    if (!isElsewhere) {
      const { teamChannel: channelId } = record;
      const isHeard = channelId !== undefined && !delivered.isTeamClosed;
      const toTeam = isHeard ? unknown.map((post) => inChannel(request, post, { channelId })) : [];
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
        return final && holds("asked", "answer")
          ? withResult(
              renderResult(request, command, after, { isMentioned: true, commands }),
              shown,
            )
          : shown;
      },
      shows: {
        field: "asked-face",
        before: delivered.askedView ?? "",
        now: faceOf(request, since),
        standsAt: delivered.asked,
        isLast,
        tellsEnd: final && delivered.formerAsked === undefined,
      },
      urgency,
      covers: final && !isSaid(said["answer"]) ? ["answer"] : [],
      onSaid: final ? onTold : undefined,
    };
    const answer: Post = {
      key: "answer",
      async render(place) {
        const { asked: shownAt, formerAsked } = delivered;
        const { offered: commands } = options;
        const above = aboveAt(place, formerAsked ? undefined : shownAt);
        return renderResult(request, command, await note(), { isMentioned: true, above, commands });
      },
      urgency: "result",
      onSaid: onTold,
    };
    const inTeam = (post: Post) =>
      inChannel(request, post, placeIn(delivered.card, record.teamChannel ?? ""));
    return [
      inTeam(card),
      here(asked),
      ...notices.map(inTeam),
      ...unknown.map(here),
      ...(final ? [here(answer)] : []),
      ...inDirect,
    ];
  }

  async function joined({ record }: StoredRequest, place: Spot): Promise<boolean> {
    await options.at?.("joining", record.id);
    const isJoined = await store.sharedCards.join(record.id, place);
    await options.at?.("join", record.id);
    return isJoined;
  }

  /** Mentioned on its card: those who may decide, by group. */
  function approversOf({ record: { approval } }: StoredRequest): readonly string[] {
    if (!approval) return [];
    return [...new Set(needsOf(options.config.policy, approval).flatMap(({ from }) => from))];
  }

  /** On a card in the channel of a team, or one that should be there. */
  async function placeOnCard(request: StoredRequest): Promise<Parameters<typeof renderCard>[3]> {
    if (!isDecidedElsewhere(request)) return { note: closedLine(request) };
    const link = isLinked(request) ? await linkTo(request.delivered.asked) : undefined;
    return { from: cameFrom(request, link) };
  }

  /** In the channel of its team, or the requester's direct messages. Only a card can be elsewhere instead. */
  function inChannel(request: StoredRequest, post: Post, place: Place): Owed {
    const { id, teamChannel } = request.record;
    const closed = async (error: string) => {
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
    return { ...post, mark: request.delivered.said[post.key], place, closed };
  }

  /** Where it was requested; where that is closed to the bot: the requester's direct messages, or nowhere. */
  function whereAsked(request: StoredRequest, { shows, ...post }: Post, spot: Spot): Owed {
    const { delivered, record } = request;
    const { closedBy, said } = delivered;
    const closed = (error: string) => goElsewhere(request, error);
    const base = { ...post, mark: said[post.key], closed };
    if (closedBy === undefined) return { ...base, place: spot, shows };
    // Posted once, never edited; the result follows
    return { ...base, place: { channelId: record.requester.id } };
  }

  async function goElsewhere(
    { record, delivered }: StoredRequest,
    error: string,
  ): Promise<number | undefined> {
    if (delivered.closedBy !== undefined) return undefined;
    await outbox.remember(record.id, { fallback: error });
    await store.note({ what: "message-moved", request: record.id, to: "dm", why: error });
    return 0;
  }

  /** Only the requester sees its card, so no one can approve it: canceled now rather than in 15 minutes. */
  async function cancelUnapprovable(request: RequestIn<"draft">): Promise<void> {
    const isTeams = request.record.teamChannel !== undefined;
    const where = isTeams ? "the channel of its team" : "this channel";
    const why = `Gatehouse can't post in ${where}, so no one can approve it`;
    const hint =
      "Use /invite @gatehouse there, then request again; sharedChannels in gatehouse.yml must name a channel that another company shares.";
    await endUnsent(request, { state: "cancelled", why, hint }, { store });
  }

  return { outbox, owedSince: "changedAt", readSubject: readRequest, at: options.at };
}

/** A message of a request, wherever it goes. */
type Post = Omit<Owed, "mark" | "place" | "closed">;

type Spot = BoardPlace;

/** Where it was requested. */
function spotAsked(request: StoredRequest): Spot {
  const { record, delivered } = request;
  const message = isDecidedElsewhere(request) ? delivered.asked : delivered.card;
  return placeIn(message, record.channelId, record.threadTs);
}

/** The thread of a message, once it is there. */
function placeIn(message: Delivered["card"], channelId: string, thread?: string): Spot {
  const threadTs = thread ?? message?.ts;
  return { channelId: message?.channelId ?? channelId, ...(threadTs ? { threadTs } : {}) };
}

/** Below a card that Slack lets nobody edit, everything is said: the card doesn't show it. */
const aboveIn = (place: Place | undefined, { card, formerCard }: Delivered): Above =>
  aboveAt(place, formerCard ? undefined : card);

/** What a message there has above it: in a thread that isn't of its card, there may be others. */
function aboveAt(place: Place | undefined, card: Delivered["card"]): Above {
  if (place?.threadTs === undefined || card === undefined) return undefined;
  return place.threadTs === card.ts ? "card" : "several";
}

/** What a card shows that asks people. While an edit is under way, or was, that isn't known. */
const isShownAsking = (view = "") => /^(asking|unknown|editing)/.test(view);

/** Whose vote or decision its card doesn't show yet. */
function decidersUnshown({ votes, delivered, stage }: StoredRequest): readonly string[] {
  const shown = /^asking (\d+)/.exec(delivered.cardView ?? "")?.[1];
  const voters = votes.slice(shown === undefined ? -1 : Number(shown)).map((one) => one.voterId);
  const decidedBy = deciderOf(stage);
  return [...new Set([...voters, ...(decidedBy ? [decidedBy.id] : [])])];
}

/** What a card shows: another value edits it. */
function faceOf(request: StoredRequest, since: SinceRequest): string {
  const version = versionOf(since);
  const signed = request.delivered.review ? " signed" : "";
  return `${cardVersion(request)}${version && ` since ${version}`}${signed}`;
}

/** Only its requester sees its card. */
function isSeenByNobody(request: StoredRequest): boolean {
  const { record, delivered } = request;
  if (isDecidedElsewhere(request)) return false;
  return (
    delivered.closedBy !== undefined ||
    (delivered.isTeamClosed === true && !isChannel(record.channelId))
  );
}

/** Its card names the message where it was requested, which others see too. */
function isLinked(request: StoredRequest): boolean {
  const { record, delivered } = request;
  return (
    isDecidedElsewhere(request) && delivered.asked !== undefined && isChannel(record.channelId)
  );
}

/** Not where a person must decide or open something, nor what must stand out, nor what is told in two places. */
function mayShare(request: StoredRequest, command: ChangeCommand): boolean {
  const { record, state, delivered } = request;
  const { closedBy, isAlone } = delivered;
  if (closedBy !== undefined || isAlone || record.breakGlass) return false;
  if (isDecidedElsewhere(request)) return false;
  return state !== "draft" && state !== "unknown" && !isOpenedByRequester(command);
}
