import { howToOpen } from "../../messages/closed-channel.ts";
import { context } from "../../messages/message.ts";
import { md } from "../../messages/text.ts";
import { workOnRequest } from "../../log/ids.ts";
import type { Fields } from "../../redis/redis.ts";
import type { ChangeCommand } from "../../registry/define.ts";
import type { Journal } from "../../requests/journal/journal.ts";
import type { Delivered, StoredRequest } from "../../requests/journal/record.ts";
import { parseStored } from "../../requests/journal/parse-stored.ts";
import { sharedCardOf } from "../../requests/journal/shared-cards.ts";
import { hasNoCard, isChannel, isDecidedElsewhere } from "../../requests/render/card-view.ts";
import { isToldElsewhere } from "../../requests/after-result.ts";
import type { SharedChannels } from "../shared-channels.ts";
import type { Place } from "../web.ts";
import type { Owes, Source } from "./deliver.ts";
import { isSaid, type Owed, type OwedPost } from "./post-once.ts";
import { createRequestPosts, type Post } from "./request-posts.ts";
import { openResponseUrl, postResponse } from "./response-url.ts";

/** A response URL works for half an hour; a minute is kept in reserve. */
const responseUrlMs = 29 * 60_000;

/**
 * The messages of requests: a card that is edited, and in its thread the notices, in order. One that ended before its card was
 * posted has one message for all; and where the channel takes no card now, the request joins a shared one, unless a person must
 * decide about it. Where the channel is closed to the bot: the response URL, else a direct message, else nothing.
 *
 * What a team decides and was requested elsewhere has its card and thread in the channel of the team. Then a message where it
 * was requested links to the card, which links back, and the result comes to both.
 */
export function requestSource(
  options: Parameters<typeof createRequestPosts>[0] & {
    store: Journal;
    commands: readonly ChangeCommand[];
    /** Called at least once for each ended request, before its result is posted. */
    recordResults(request: StoredRequest, command: ChangeCommand): Promise<void>;
    /** Called at least once for each request whose own messages say that it ended, once they are posted. */
    tellElsewhere(request: StoredRequest, command: ChangeCommand): Promise<void>;
    visibilityTimeoutMs: number;
    refusal: SharedChannels["refusal"];
    /** Opens response URLs, and says which are Slack's. */
    botToken: string;
    apiUrl: string;
    at(point: "posting" | "posted" | "joining" | "join", request: string): Promise<void>;
  },
): Source {
  const { store } = options;
  const postsOf = createRequestPosts(options);
  const { outbox } = store;

  async function read(id: string, fields: Fields): Promise<Owes | undefined> {
    const request = parseStored(fields);
    const command = options.commands.find(({ name }) => name === request?.record.command);
    if (!request || !command) return undefined;
    const { said } = request.delivered;
    const isRecorded = !request.final || said["afterwards"] !== undefined;
    if (!isRecorded) {
      await options.recordResults(request, command);
      await outbox.remember(id, { "said:afterwards": "1" });
    }
    if (request.state === "draft" && isSaid(said["card"]) && isSeenByNobody(request)) {
      await cancelUnapprovable(request);
      return read(id, await outbox.get(id));
    }
    const { revision, record } = request;
    const sharedId = sharedCardOf(request);
    if (sharedId !== undefined && request.state === "unknown") {
      await store.sharedCards.leave(id, sharedId);
      return read(id, await outbox.get(id));
    }
    if (sharedId !== undefined) await store.sharedCards.touch(sharedId);
    const isSaidElsewhere = sharedId !== undefined || hasNoCard(request);
    const messages = isSaidElsewhere ? [] : owedOf(request, command, placesOf(request));
    const isTold = messages.every(({ mark }) => isSaid(mark));
    if (isTold && isToldElsewhere(request) && said["told-elsewhere"] === undefined) {
      await options.tellElsewhere(request, command);
      await outbox.remember(id, { "said:told-elsewhere": "1" });
    }
    return { createdAt: record.createdAt, revision, messages, work: workOnRequest(record) };
  }

  function owedOf(request: StoredRequest, command: ChangeCommand, at: Where): Owed[] {
    const { card, asked, notices, unknown, answer, expired } = postsOf(
      request,
      command,
      async () => {
        await options.at("joining", request.record.id);
        const isJoined = await store.sharedCards.join(request.record.id, at.card);
        await options.at("join", request.record.id);
        return isJoined;
      },
    );
    const { delivered, record, final } = request;
    const inTeam = (post: Post) => inChannel(request, post, at.card);
    const here = (post: Post) => whereAsked(request, post, at);
    const direct = { channelId: record.requester.id };
    const isToldThere = delivered.fallback === "dm" || !isChannel(at.asked.channelId);
    const inDirect = isToldThere ? [] : expired.map((post) => inChannel(request, post, direct));
    if (isDecidedElsewhere(request))
      return [
        inTeam(card),
        here(asked),
        ...notices.map(inTeam),
        ...unknown.map(here),
        ...(final ? [here(answer)] : []),
        ...inDirect,
      ];
    const { teamChannel: channelId } = record;
    const isHeard = channelId !== undefined && !delivered.isTeamClosed;
    const toTeam = isHeard ? unknown.map((post) => inChannel(request, post, { channelId })) : [];
    return [...[card, ...notices].map(here), ...toTeam, ...inDirect];
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

  /** Where it was requested; where that is closed to the bot: the response URL, a direct message, or nowhere. */
  function whereAsked(request: StoredRequest, { shows, ...post }: Post, at: Where): Owed {
    const { delivered, record } = request;
    const { fallback, said } = delivered;
    const { key, render } = post;
    const base = {
      ...post,
      mark: said[key],
      closed: (error: string) => goElsewhere(request, error),
    };
    if (fallback === "response-url")
      return { ...base, sentMark: "response", prepare: () => response(request, key, render) };
    if (fallback === "none")
      return { ...base, sentMark: "", prepare: async () => async () => "closed" };
    // Posted once, never edited; the result follows
    if (fallback === "dm") return { ...base, place: { channelId: record.requester.id } };
    return { ...base, place: at.asked, shows };
  }

  async function response({ record }: StoredRequest, key: string, render: OwedPost["render"]) {
    const message = await render();
    const no = await options.refusal(record.channelId);
    const invite = context(
      no?.kind === "refused"
        ? md`Gatehouse can't post in this channel, so only you see this. ${howToOpen(no.error)}`
        : md`Gatehouse isn't in this channel, so only you see this. \`/invite @gatehouse\` lets everyone see and answer.`,
    );
    const blocks = key === "card" ? [...message.blocks, invite] : message.blocks;
    const post = { show: { ...message, blocks }, replace: false, threadTs: record.threadTs };
    const url = openResponseUrl(record.sealedResponseUrl ?? "", options.botToken, options.apiUrl);
    const isFresh = (await store.now()) - record.createdAt < responseUrlMs;
    return async () => {
      // A lost answer may have been shown and can't be looked up: twice would be worse
      const isShown = url && isFresh && (await postResponse(url, post, options)) !== "refused";
      return isShown ? undefined : "response_url_refused";
    };
  }

  async function goElsewhere(
    { record, delivered }: StoredRequest,
    error: string,
  ): Promise<number | undefined> {
    if (delivered.fallback === "none") return undefined;
    const canRespond = record.sealedResponseUrl !== undefined && delivered.fallback === undefined;
    const fallback = canRespond ? "response-url" : delivered.fallback === "dm" ? "none" : "dm";
    await outbox.remember(record.id, { fallback });
    await store.note({ what: "message-moved", request: record.id, to: fallback, why: error });
    return 0;
  }

  /** Only the requester sees its card, so no one can approve it: canceled now rather than in 15 minutes. */
  async function cancelUnapprovable(request: StoredRequest): Promise<void> {
    const isTeams = request.record.teamChannel !== undefined;
    const where = isTeams ? "the channel of its team" : "this channel";
    const why = `Gatehouse can't post in ${where}, so no one can approve it`;
    const hint =
      "Use /invite @gatehouse there, then request again; sharedChannels in gatehouse.yml must name a channel that another company shares.";
    const progress = { ...request.progress, why, hint };
    await store.move(request, { state: "cancelled", progress, why });
  }

  const { visibilityTimeoutMs, at } = options;
  return { kind: "request", outbox, atOnce: 8, visibilityTimeoutMs, read, at };
}

/** Where its card goes, and where it was requested. */
interface Where {
  card: Spot;
  asked: Spot;
}

interface Spot {
  channelId: string;
  threadTs?: string;
}

function placesOf(request: StoredRequest): Where {
  const { record, delivered } = request;
  const { card, asked } = delivered;
  if (!isDecidedElsewhere(request)) {
    const here = placeIn(card, record.channelId, record.threadTs);
    return { card: here, asked: here };
  }
  return {
    card: placeIn(card, record.teamChannel ?? ""),
    asked: placeIn(asked, record.channelId, record.threadTs),
  };
}

/** The thread of a message, once it is there. */
function placeIn(message: Delivered["card"], channelId: string, thread?: string): Spot {
  const threadTs = thread ?? message?.ts;
  return { channelId: message?.channelId ?? channelId, ...(threadTs ? { threadTs } : {}) };
}

/** Only its requester sees its card. */
function isSeenByNobody(request: StoredRequest): boolean {
  const { record, delivered } = request;
  if (isDecidedElsewhere(request)) return false;
  return (
    delivered.fallback !== undefined ||
    (delivered.isTeamClosed === true && !isChannel(record.channelId))
  );
}
