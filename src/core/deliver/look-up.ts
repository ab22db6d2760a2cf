import { messageOf } from "../../errors.ts";
import type { Log } from "../../log/log.ts";
import { listAt, textAt } from "../../slack/json.ts";
import type { BotIdentity } from "../../slack/people/identity.ts";
import type { Place, Web } from "../../slack/web.ts";

/** Identifies a message after a lost answer. */
const metadataType = "gatehouse_request";

/** What the metadata of a message says, for whoever looks for it in Slack. */
export interface Says {
  key: string;
  /** Other messages of the same subject that it says too: they are settled with it. */
  covers?: readonly string[] | undefined;
  /** IDs of requests whose result it tells. */
  tells?: readonly string[] | undefined;
}

export const metadataOf = (id: string, { key, covers = [], tells = [] }: Says) => ({
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
  /** Keys of the messages that it said too. */
  covers: readonly string[];
}

/** Whose messages are looked for. */
export interface Sought {
  /** For the log. */
  kind: string;
  id: string;
  /** Redis time (ms): it can't have been posted before. */
  createdAt: number;
}

/** The clocks of Redis and Slack may be so far apart (s). */
const clocksApartS = 120;
/** As many as Slack gives at a time. */
const perPage = 200;
/** 10,000 messages since the request was made. */
const mostPages = 50;

/** The place is gone, or closed to the bot for posts too: what is owed there is owed elsewhere by now, and said anew. */
const unreadable = new Set([
  "channel_not_found",
  "is_archived",
  "no_permission",
  "not_in_channel",
  "thread_not_found",
]);

/**
 * Looks for a message whose answer was lost, back to when it can first have been posted. Any app in the channel may write
 * any metadata, so only messages of this bot count.
 */
export function createLookUp(options: {
  web: Web;
  log: Log;
  /** Throws while Slack hasn't said who the bot is. */
  us(): Pick<BotIdentity, "botId" | "botUserId">;
}) {
  const { web, log } = options;

  /** The message, or `unsure`; undefined when Slack shows that it isn't there, or its place is gone or closed to the bot. */
  return async function lookUp(
    { kind, id, createdAt }: Sought,
    key: string,
    { channelId: channel, threadTs }: Place,
    /** The ts of a former one that doesn't count. */
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
    const oldest = String(Math.floor(createdAt / 1000) - clocksApartS);
    const asked = { channel, oldest, limit: perPage, include_all_metadata: true };
    let cursor = "";
    for (let pages = 0; pages < mostPages; pages += 1) {
      const args = { ...asked, ...(cursor === "" ? {} : { cursor }) };
      const answer = threadTs
        ? await web.call("conversations.replies", { ...args, ts: threadTs })
        : await web.call("conversations.history", args);
      if (!answer.ok) {
        if (answer.kind !== "refused") return "unsure";
        log.warn("slack.look-up-refused", { [kind]: id, error: answer.error });
        return unreadable.has(answer.error) ? undefined : "unsure";
      }
      const found = listAt(answer.data, "messages").find(isSought);
      if (found !== undefined) {
        const covers = textAt(found, "metadata", "event_payload", "covers");
        return { ts: textAt(found, "ts"), covers: covers.split(" ").filter((one) => one !== "") };
      }
      cursor = textAt(answer.data, "response_metadata", "next_cursor");
      if (cursor === "") return undefined;
    }
    log.error("slack.look-up-unended", { [kind]: id, what: key, messages: mostPages * perPage });
    return "unsure";
  };
}
