import { messageOf } from "../../errors.ts";
import type { Log } from "../../log/log.ts";
import { listAt, textAt } from "../../slack/json.ts";
import type { BotIdentity } from "../../slack/people/identity.ts";
import type { Place, Web } from "../../slack/web.ts";

/** The type of the metadata that identifies a message after a lost answer. */
const metadataType = "gatehouse_request";

/** The metadata of a message, by which it is found in Slack. */
export interface Says {
  key: string;
  /**
   * The keys of other messages of the same subject whose content is in this one. They count as
   * posted with it.
   */
  covers?: readonly string[] | undefined;
  /** The IDs of requests whose result is in the message. */
  resultsOf?: readonly string[] | undefined;
}

export const metadataOf = (id: string, { key, covers = [], resultsOf: tells = [] }: Says) => ({
  event_type: metadataType,
  event_payload: {
    request: id,
    said: key,
    ...(covers.length > 0 ? { covers: covers.join(" ") } : {}),
    ...(tells.length > 0 ? { tells: tells.join(" ") } : {}),
  },
});

export interface FoundMessage {
  ts: string;
  /** The keys of other messages that count as posted with it. */
  covers: readonly string[];
}

/** The subject whose message is looked for. */
export interface Sought {
  /** The kind of the subject, for the log. */
  kind: string;
  id: string;
  /** When the subject was made (Redis, ms). The message can't have been posted before. */
  createdAt: number;
}

/** How far apart the clocks of Redis and Slack may be (s). */
const clocksApartS = 120;
/** How far back is looked where a subject was made in the future, which says that Redis's clock was set back since (ms). */
const dayMs = 24 * 3600_000;
/** The most messages that are read with one call. */
const perPage = 200;
/** The most pages that are read. With `perPage`, that is 10,000 messages. */
const mostPages = 50;

/**
 * Refusals that mean that the place is gone, or is closed to the bot for posts too. The message
 * counts as not posted then, and the next post finds another place.
 */
const unreadable = new Set([
  "channel_not_found",
  "is_archived",
  "no_permission",
  "not_in_channel",
  "thread_not_found",
]);

/**
 * Creates the function that looks for a message whose answer was lost, back to when it can first
 * have been posted. Any app in the channel may write any metadata, so only messages of this bot
 * count.
 */
export function createLookUp(options: {
  web: Web;
  log: Log;
  /** Redis time (ms). */
  now(): Promise<number>;
  /** Throws while Slack hasn't said who the bot is. */
  us(): Pick<BotIdentity, "botId" | "botUserId">;
}) {
  const { web, log } = options;

  /**
   * Resolves with the message, or with `unsure` when Slack doesn't tell. Undefined when Slack shows
   * that the message isn't there, or when its place is gone or closed to the bot.
   */
  return async function lookUp(
    { kind, id, createdAt }: Sought,
    key: string,
    { channelId: channel, threadTs }: Place,
    /** The ts of a former message of the same key, which doesn't count. */
    former?: string,
  ): Promise<FoundMessage | "unsure" | undefined> {
    let us: ReturnType<typeof options.us>;
    try {
      us = options.us();
    } catch (error) {
      log.debug("slack.look-up-later", { [kind]: id, why: messageOf(error) });
      return "unsure";
    }
    const isSought = (message: unknown) =>
      textAt(message, "ts") !== former &&
      (textAt(message, "bot_id") === us.botId || textAt(message, "user") === us.botUserId) &&
      textAt(message, "metadata", "event_type") === metadataType &&
      textAt(message, "metadata", "event_payload", "request") === id &&
      textAt(message, "metadata", "event_payload", "said") === key;
    const now = await options.now();
    const from = createdAt > now ? now - dayMs : createdAt;
    const oldest = String(Math.floor(from / 1000) - clocksApartS);
    const query = { channel, oldest, limit: perPage, include_all_metadata: true };
    let cursor = "";
    for (let pages = 0; pages < mostPages; pages += 1) {
      const args = { ...query, ...(cursor === "" ? {} : { cursor }) };
      const answer = threadTs
        ? await web.call("conversations.replies", { ...args, ts: threadTs })
        : await web.call("conversations.history", args);
      if (!answer.ok) {
        if (answer.kind !== "refused") return "unsure";
        log.warn("slack.look-up-refused", { [kind]: id, error: answer.error });
        return unreadable.has(answer.error) ? undefined : "unsure";
      }
      const message = listAt(answer.data, "messages").find(isSought);
      if (message !== undefined) {
        const covers = textAt(message, "metadata", "event_payload", "covers");
        return {
          ts: textAt(message, "ts"),
          covers: covers.split(" ").filter((covered) => covered !== ""),
        };
      }
      cursor = textAt(answer.data, "response_metadata", "next_cursor");
      if (cursor === "") return undefined;
    }
    log.error("slack.look-up-unended", { [kind]: id, message: key, messages: mostPages * perPage });
    return "unsure";
  };
}
