import type { Log } from "../log.ts";
import type { Message } from "../messages/message.ts";
import { createMarkAges } from "./mark-age.ts";
import { textAt } from "./payload.ts";
import type { Pace } from "./pace.ts";
import type { Web } from "./web.ts";

export interface Place {
  channelId: string;
  threadTs?: string;
}

/** What messages belong to: a request, or a notice of its own. */
export interface Subject {
  id: string;
  createdAt: number;
  /** Message → its ts, "" when provably not posted, "posting <since>" when it may have been. */
  said: Readonly<Record<string, string>>;
}

/** What came of a post: it stands there now, must be tried again later, or can't be said in that place. */
export type Posted =
  | {
      is: "said";
      /** It was found standing there: what it says may be older than what was to be said. */
      found?: boolean;
    }
  | { is: "later"; ms: number }
  | { is: "closed"; error: string };

/** The name under which our messages are found again after a lost answer. */
export const metadataType = "gatehouse_request";

/** What Slack refuses for good in a channel: messages go elsewhere then. */
const closedChannel = new Set([
  "not_in_channel",
  "channel_not_found",
  "is_archived",
  "restricted_action",
  "restricted_action_read_only_channel",
  "restricted_action_thread_only_channel",
  "no_permission",
]);
/** A message with a picture that Slack has not processed yet is refused with this. */
export const unreadyPicture = "invalid_blocks";

const hasPicture = ({ blocks }: Message) => blocks.some((block) => "slack_file" in block);

const goneThread = new Set(["thread_not_found", "cannot_reply_to_message"]);

/** A value is the message's ts, or says since when a post may have been on the wire. */
export function isSaid(value: string | undefined): boolean {
  return value !== undefined && value !== "" && !value.startsWith("posting");
}

/** How long a post whose answer was lost may still be on its way before it is looked for (ms). */
export const unsureMs = 3000;
/** As long as a call may take, and a little: a mark younger than that may belong to a call that is still under way. */
const callMs = 10_000;
/** The mark of a call that has ended without an answer. */
const ended = "posting 0";
/** From the mark to the call. A process that was stopped in between no longer knows what others did meanwhile. */
const windowMs = 2000;

/**
 * Posts a message of a request exactly once: it is marked before the call, and when that call's answer was lost the
 * message is looked up by its metadata before it is posted again.
 */
export function createPostOnce(options: {
  web: Web;
  pace: Pace;
  log: Log;
  /** Keeps what was said of a subject: its marks, and where its card is. */
  remember(id: string, fields: Record<string, string>): Promise<void>;
  /** The same for the one mark before a call, unless it is another by now than the one that was read (false). */
  mark?(id: string, field: string, before: string, mark: string): Promise<boolean>;
  /** Redis time (ms): a mark must mean the same to all processes, whatever their clocks say. */
  now(): Promise<number>;
  at?(point: "posting" | "posted", id: string): Promise<void>;
}) {
  const { web, pace, log, remember, at } = options;
  const ages = createMarkAges(options.now, callMs);
  const mark =
    options.mark ??
    (async (id, field, _before, value) => {
      await remember(id, { [field]: value });
      return true;
    });

  return async function postOnce(
    subject: Subject,
    what: string,
    message: Message,
    place: Place,
  ): Promise<Posted> {
    const { id } = subject;
    const before = subject.said[what] ?? "";
    // Another process may have said it since the caller looked
    if (isSaid(before)) return { is: "said" };
    if (before.startsWith("posting")) {
      const leftMs =
        before === ended ? 0 : await ages.leftOf(Number(before.slice("posting ".length)));
      if (leftMs > 0) return { is: "later", ms: leftMs };
      const found = await lookUp(subject, what, place);
      if (found === "unsure") return { is: "later", ms: unsureMs };
      if (found) return { ...(await said(id, what, found, place.channelId)), found: true };
    }
    const waitMs = await pace.post(place.channelId);
    if (waitMs > 0) return { is: "later", ms: waitMs };
    const markedAt = performance.now();
    const isOurs = await mark(id, `said:${what}`, before, `posting ${await ages.now()}`);
    if (!isOurs) return { is: "later", ms: 1 };
    if (performance.now() - markedAt > windowMs) {
      await remember(id, { [`said:${what}`]: "" });
      return { is: "later", ms: 1 };
    }
    await at?.("posting", id);
    const answer = await web.call("chat.postMessage", {
      channel: place.channelId,
      ...(place.threadTs ? { thread_ts: place.threadTs } : {}),
      text: message.text,
      blocks: message.blocks,
      unfurl_links: false,
      unfurl_media: false,
      metadata: { event_type: metadataType, event_payload: { request: id, said: what } },
    });
    await at?.("posted", id);
    if (answer.ok) {
      return said(
        id,
        what,
        textAt(answer.data, "ts"),
        textAt(answer.data, "channel") || place.channelId,
      );
    }
    if (answer.kind === "lost") {
      // Our call has ended: whoever looks next need not wait for it
      await remember(id, { [`said:${what}`]: ended });
      return { is: "later", ms: unsureMs };
    }
    // Provably not posted: the mark goes, so that the next try needs no look-up
    await remember(id, { [`said:${what}`]: "" });
    if (answer.kind === "unreachable") return { is: "later", ms: unsureMs };
    if (answer.kind === "limited") {
      await pace.pause({ post: place.channelId }, answer.retryAfterMs);
      return { is: "later", ms: answer.retryAfterMs };
    }
    if (closedChannel.has(answer.error)) return { is: "closed", error: answer.error };
    // Slack may still be at work on the picture: whoever put it in decides what next
    if (answer.error === unreadyPicture && hasPicture(message))
      return { is: "closed", error: answer.error };
    if (place.threadTs && goneThread.has(answer.error)) {
      // The message it belongs to was deleted: the story goes on in the channel
      const unmarked = { ...subject, said: { ...subject.said, [what]: "" } };
      return postOnce(unmarked, what, message, { channelId: place.channelId });
    }
    log.error("slack.refused-message", {
      request: id,
      what,
      error: answer.error,
      detail: answer.detail,
    });
    return said(id, what, "refused", place.channelId);
  };

  async function said(
    id: string,
    what: string,
    ts: string,
    channelId: string,
  ): Promise<{ is: "said" }> {
    const fields: Record<string, string> = { [`said:${what}`]: ts };
    if (what === "card" && ts !== "refused") fields["card"] = `${channelId} ${ts}`;
    await remember(id, fields);
    return { is: "said" };
  }

  /** The ts of a message that a lost answer may have left behind, or `unsure`; undefined when it provably isn't there. */
  async function lookUp(subject: Subject, what: string, place: Place): Promise<string | undefined> {
    const { id, createdAt } = subject;
    const shared = { channel: place.channelId, limit: 200, include_all_metadata: true };
    const answer = place.threadTs
      ? await web.call("conversations.replies", { ...shared, ts: place.threadTs })
      : await web.call("conversations.history", {
          ...shared,
          oldest: String(Math.floor(createdAt / 1000) - 120),
        });
    if (!answer.ok) {
      if (answer.kind !== "refused") return "unsure";
      log.warn("slack.look-up-refused", { request: id, error: answer.error });
      return undefined;
    }
    const messages = Array.isArray(answer.data["messages"])
      ? (answer.data["messages"] as Found[])
      : [];
    return messages.find(
      ({ metadata }) =>
        metadata?.event_type === metadataType &&
        metadata.event_payload?.["request"] === id &&
        metadata.event_payload["said"] === what,
    )?.ts;
  }
}

interface Found {
  ts: string;
  metadata?: { event_type?: string; event_payload?: Record<string, unknown> };
}
