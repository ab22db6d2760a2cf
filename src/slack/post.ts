import type { Log } from "../log.ts";
import { context, type Message } from "../messages/message.ts";
import { md } from "../messages/text.ts";
import type { StoredRequest } from "../requests/record.ts";
import type { Store } from "../requests/store.ts";
import type { Pace } from "./pace.ts";
import { createPostOnce, type Place, unsureMs } from "./post-once.ts";
import { postResponse } from "./post-response.ts";
import { openResponseUrl } from "./response-url.ts";
import type { Web } from "./web.ts";

/** Puts messages of requests where they belong. Each call returns 0 when said, else when to come back (ms). */
export interface Poster {
  card(request: StoredRequest, message: Message, mark: string, isLast: boolean): Promise<number>;
  notice(request: StoredRequest, notice: string, message: Message): Promise<number>;
}

/** Slack takes a response URL for half an hour; a minute is kept for our own slowness. */
const responseUrlMs = 29 * 60_000;

export function createPoster(options: {
  web: Web;
  store: Store;
  pace: Pace;
  /** Seals response URLs, and says which are Slack's. */
  botToken: string;
  apiUrl: string;
  log: Log;
  at(point: "posting" | "posted", request: string): Promise<void>;
}): Poster {
  const { web, store, pace, log } = options;
  const postOnce = createPostOnce({
    web,
    pace,
    log,
    remember: store.setDelivered,
    mark: store.markDelivered,
    now: store.now,
    at: options.at,
  });

  async function post(
    request: StoredRequest,
    what: string,
    message: Message,
    place: Place,
  ): Promise<number> {
    const { id, createdAt } = request.record;
    const subject = { id, createdAt, said: request.delivered.said };
    const posted = await postOnce(subject, what, message, place);
    // A card that was found shows what was true when it was posted: come back and edit it
    if (posted.is === "said") return posted.found && what === "card" ? 1 : 0;
    return posted.is === "later" ? posted.ms : goElsewhere(request, posted.error);
  }

  /** The channel is closed to us: the response URL answers where it was asked, else a direct message, else nothing can. */
  async function goElsewhere(request: StoredRequest, error: string): Promise<number> {
    const { record, delivered } = request;
    const canRespond = record.sealedResponseUrl !== undefined && delivered.fallback === undefined;
    const fallback = canRespond ? "response-url" : delivered.fallback === "dm" ? "none" : "dm";
    await store.setDelivered(record.id, { fallback });
    await store.note({ what: "message-moved", request: record.id, to: fallback, why: error });
    return 1;
  }

  async function elsewhere(
    request: StoredRequest,
    what: string,
    message: Message,
  ): Promise<number> {
    const { record, delivered } = request;
    if (delivered.fallback === "none") {
      log.error("slack.nowhere-to-say", { request: record.id, what });
      await store.setDelivered(record.id, { [`said:${what}`]: "nowhere" });
      return 0;
    }
    if (delivered.fallback === "response-url" && record.sealedResponseUrl) {
      const invite = context(
        md`I'm not in this channel, so only you see this. \`/invite @gatehouse\` lets everybody see and answer.`,
      );
      const blocks = what === "card" ? [...message.blocks, invite] : message.blocks;
      const url = openResponseUrl(record.sealedResponseUrl, options.botToken, options.apiUrl);
      const isFresh = (await store.now()) - record.createdAt < responseUrlMs;
      const deed = { show: { ...message, blocks }, replace: false, threadTs: record.threadTs };
      // An answer that was lost may have been shown, and can't be looked up: twice would be worse
      if (url && isFresh && (await postResponse(url, deed, options)) !== "refused") {
        await store.setDelivered(record.id, { [`said:${what}`]: "response" });
        return 0;
      }
      return goElsewhere(request, "response_url_refused");
    }
    return post(request, what, message, { channelId: record.requester.id });
  }

  return {
    async card(request, message, mark, isLast) {
      const { record, delivered } = request;
      const shown = async (waitMs: number) => {
        if (waitMs === 0) await store.setDelivered(record.id, { face: mark });
        return waitMs;
      };
      // What can't be edited is said once there; its result follows
      if (delivered.fallback) {
        return shown(delivered.said["card"] ? 0 : await elsewhere(request, "card", message));
      }
      if (!delivered.card) {
        const thread = record.threadTs ? { threadTs: record.threadTs } : {};
        return shown(
          await post(request, "card", message, { channelId: record.channelId, ...thread }),
        );
      }
      const waitMs = await pace.edit(isLast);
      if (waitMs > 0) return waitMs;
      const answer = await web.call("chat.update", {
        channel: delivered.card.channelId,
        ts: delivered.card.ts,
        text: message.text,
        blocks: message.blocks,
      });
      if (answer.ok) return shown(0);
      if (answer.kind === "limited") {
        await pace.pause("edit", answer.retryAfterMs);
        return answer.retryAfterMs;
      }
      if (answer.kind !== "refused") return unsureMs;
      log.warn("slack.refused-edit", { request: record.id, error: answer.error });
      return shown(0);
    },

    async notice(request, notice, message) {
      const { record, delivered } = request;
      if (delivered.fallback) return elsewhere(request, notice, message);
      const thread = record.threadTs ?? delivered.card?.ts;
      return post(request, notice, message, {
        channelId: delivered.card?.channelId ?? record.channelId,
        ...(thread ? { threadTs: thread } : {}),
      });
    },
  };
}
