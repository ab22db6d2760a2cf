import * as crypto from "node:crypto";
import type {
  EnvelopedEvent,
  SlackAction,
  SlackShortcut,
  SlackViewAction,
  SlashCommand,
  types,
} from "@slack/bolt";
import { at, listAt, textAt } from "../json.ts";
import type {
  CommandInteraction,
  Interaction,
  InteractionBase,
  ViewSubmission,
} from "./interaction.ts";
import { textOfMessage } from "./message-text.ts";
import { wordsToUs } from "./message-words.ts";
import { readView, elementValue } from "./read-view.ts";

/**
 * These functions read what Bolt passes to listeners. Each returns an Interaction, or undefined
 * when there is nothing to do (an unused event, a bot's message). Pure. Payloads:
 * https://docs.slack.dev/reference/interaction-payloads
 */

export function readCommand(body: SlashCommand, now: number): CommandInteraction {
  const words = `${body.command.replace(/^\//, "")} ${textAt(body, "text")}`;
  return {
    ...base("command", body, now, { user: textAt(body, "user_id"), team: textAt(body, "team_id") }),
    channelId: textAt(body, "channel_id"),
    text: words.trim(),
  };
}

/** A pressed button, or a chosen option. */
export function readPress(body: SlackAction, now: number): Interaction | undefined {
  const action = listAt(body, "actions")[0];
  if (action === undefined) return undefined;
  const messageTs = textAt(body, "container", "message_ts") || textAt(body, "message", "ts");
  const thread = textAt(body, "container", "thread_ts") || textAt(body, "message", "thread_ts");
  // A message with replies names itself as its thread. A press on it belongs to the channel.
  const threadTs = thread === messageTs ? "" : thread;
  const viewId = textAt(body, "view", "id") || textAt(body, "container", "view_id");
  return {
    ...base("button", body, now),
    ...(threadTs === "" ? {} : { threadTs }),
    action: textAt(action, "action_id"),
    value: [elementValue(action) ?? ""].flat().join(","),
    ...(messageTs === "" ? {} : { messageTs }),
    ephemeral: at(body, "container", "is_ephemeral") === true,
    ...(viewId === "" ? {} : { viewId, view: readView(at(body, "view")) }),
  };
}

export function readSubmission(body: SlackViewAction, now: number): ViewSubmission {
  const { callback, hash, privateMetadata, values } = readView(at(body, "view"));
  const viewId = textAt(body, "view", "id");
  return {
    ...base("submission", body, now),
    // Submit pressed again after a late acknowledgment has a new trigger but the same view, so it
    // is one submission.
    ...(viewId === "" ? {} : { id: `submission:${viewId}:${hash}:${textAt(body, "user", "id")}` }),
    callback,
    privateMetadata,
    viewId,
    values,
  };
}

export function readShortcut(body: SlackShortcut, now: number): Interaction {
  const onMessage = textAt(body, "type") === "message_action";
  const threadTs = textAt(body, "message", "thread_ts");
  return {
    ...base("shortcut", body, now),
    ...(threadTs === "" ? {} : { threadTs }),
    callback: textAt(body, "callback_id"),
    ...(onMessage ? { messageText: textOfMessage(at(body, "message")) } : {}),
  };
}

/** The Home tab was opened. */
export function readHome(
  body: EnvelopedEvent<types.AppHomeOpenedEvent>,
  us: { botUserId: string },
  now: number,
): Interaction | undefined {
  const { event } = body;
  if (textAt(event, "tab") === "messages" || event.user === us.botUserId) return undefined;
  return { ...base("home", body, now, senderOf(body)), channelId: "" };
}

/** A mention in a channel, or a direct message with the app, where no mention is needed. */
export function readMention(
  body: EnvelopedEvent<types.AppMentionEvent | types.MessageEvent>,
  us: { botUserId: string },
  now: number,
): Interaction | undefined {
  const { event } = body;
  const isToApp = event.type === "message";
  if (isToApp && textAt(event, "channel_type") !== "im") return undefined;
  const words = readWords(event, us.botUserId);
  if (words === undefined || (isToApp && words === "")) return undefined;
  const [channelId, ts] = [textAt(event, "channel"), textAt(event, "ts")];
  const threadTs = textAt(event, "thread_ts");
  return {
    ...base("mention", body, now, senderOf(body)),
    // One message is one interaction, however often it is delivered, or edited within minutes.
    id: `mention:${channelId}:${ts}`,
    channelId,
    // An ephemeral message appears in a thread only if the thread has replies. Otherwise the
    // channel is the place (https://docs.slack.dev/reference/methods/chat.postEphemeral).
    ...(threadTs === "" ? {} : { threadTs }),
    text: words,
  };
}

function senderOf(body: EnvelopedEvent) {
  const { event } = body;
  const team = textAt(event, "user_team") || textAt(event, "team") || textAt(body, "team_id");
  return { user: textAt(event, "user"), team };
}

function base<Kind extends Interaction["kind"]>(
  kind: Kind,
  body: unknown,
  now: number,
  who = {
    user: textAt(body, "user", "id"),
    team: textAt(body, "user", "team_id") || textAt(body, "team", "id"),
  },
): InteractionBase & { kind: Kind } {
  const triggerId = textAt(body, "trigger_id");
  const responseUrl =
    textAt(body, "response_url") || textAt(listAt(body, "response_urls")[0], "response_url");
  // Trigger IDs open modals, so only their hash goes into logs and Redis. Without an ID, the
  // content identifies the delivery, because a redelivery is the same byte for byte.
  const id =
    textAt(body, "event_id") ||
    crypto.hash("sha256", triggerId || JSON.stringify(body)).slice(0, 32);
  return {
    kind,
    id: `${kind}:${id}`,
    at: now,
    userId: who.user,
    teamId: who.team,
    channelId: textAt(body, "channel", "id") || textAt(body, "container", "channel_id"),
    ...(triggerId === "" ? {} : { triggerId }),
    ...(responseUrl === "" ? {} : { responseUrl }),
  };
}

/**
 * Subtypes of new messages that people write: one with a file, and a reply that is also sent to the
 * channel (https://docs.slack.dev/reference/events/message).
 */
const writtenByPeople = new Set(["file_share", "thread_broadcast"]);

/**
 * The command in a message to the bot. Undefined unless a human wrote it as a new message. Apps can
 * post as a person, so anything marked by an app is ignored, as are other subtypes (edits, joins,
 * topics).
 */
function readWords(event: unknown, botUserId: string): string | undefined {
  const user = textAt(event, "user");
  if (user === "" || user === botUserId || user === "USLACKBOT") return undefined;
  const subtype = textAt(event, "subtype");
  if (subtype !== "" && !writtenByPeople.has(subtype)) return undefined;
  const marks = ["bot_id", "app_id", "bot_profile", "workflow_id"];
  if (marks.some((mark) => (at(event, mark) ?? "") !== "")) return undefined;
  return wordsToUs(textAt(event, "text"), botUserId);
}
