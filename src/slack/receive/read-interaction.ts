import * as crypto from "node:crypto";
import { at, listAt, textAt } from "../json.ts";
import type { Interaction, InteractionBase } from "./interaction.ts";
import { textOfMessage } from "./message-text.ts";
import { wordsToUs } from "./message-words.ts";
import { readView, valueOf } from "./read-view.ts";

/**
 * Reads a delivery; undefined when there is nothing to do (a closed modal, an unused event, a bot's message). Pure.
 * Payloads: https://docs.slack.dev/reference/interaction-payloads
 */
export function readInteraction(
  body: unknown,
  us: { botUserId: string },
  now: number,
): Interaction | undefined {
  if (textAt(body, "command") !== "") return readCommand(body, now);
  switch (textAt(body, "type")) {
    case "event_callback":
      return readEvent(body, us, now);
    case "block_actions":
      return readButton(body, now);
    case "view_submission":
      return readSubmission(body, now);
    case "shortcut":
    case "message_action":
      return readShortcut(body, now);
    default:
      return undefined;
  }
}

function readCommand(body: unknown, now: number): Interaction {
  const words = `${textAt(body, "command").replace(/^\//, "")} ${textAt(body, "text")}`;
  return {
    ...base("command", body, now, { user: textAt(body, "user_id"), team: textAt(body, "team_id") }),
    channelId: textAt(body, "channel_id"),
    text: words.trim(),
  };
}

function readButton(body: unknown, now: number): Interaction | undefined {
  const action = listAt(body, "actions")[0];
  if (action === undefined) return undefined;
  const messageTs = textAt(body, "container", "message_ts") || textAt(body, "message", "ts");
  const thread = textAt(body, "container", "thread_ts") || textAt(body, "message", "thread_ts");
  // A message with replies names itself as its thread; a press on it belongs to the channel
  const threadTs = thread === messageTs ? "" : thread;
  const viewId = textAt(body, "view", "id") || textAt(body, "container", "view_id");
  return {
    ...base("button", body, now),
    ...(threadTs === "" ? {} : { threadTs }),
    action: textAt(action, "action_id"),
    value: [valueOf(action) ?? ""].flat().join(","),
    ...(messageTs === "" ? {} : { messageTs }),
    ephemeral: at(body, "container", "is_ephemeral") === true,
    ...(viewId === "" ? {} : { viewId, view: readView(at(body, "view")) }),
  };
}

function readSubmission(body: unknown, now: number): Interaction {
  const { callback, hash, privateMetadata, values } = readView(at(body, "view"));
  const viewId = textAt(body, "view", "id");
  return {
    ...base("submission", body, now),
    // Submit pressed again after a late ack has a new trigger but the same view: one submission.
    ...(viewId === "" ? {} : { id: `submission:${viewId}:${hash}:${textAt(body, "user", "id")}` }),
    callback,
    privateMetadata,
    viewId,
    values,
  };
}

function readShortcut(body: unknown, now: number): Interaction {
  const onMessage = textAt(body, "type") === "message_action";
  const threadTs = textAt(body, "message", "thread_ts");
  return {
    ...base("shortcut", body, now),
    ...(threadTs === "" ? {} : { threadTs }),
    callback: textAt(body, "callback_id"),
    ...(onMessage ? { messageText: textOfMessage(at(body, "message")) } : {}),
  };
}

function readEvent(body: unknown, us: { botUserId: string }, now: number): Interaction | undefined {
  const event = at(body, "event");
  const user = textAt(event, "user");
  const team = textAt(event, "user_team") || textAt(event, "team") || textAt(body, "team_id");
  const type = textAt(event, "type");
  if (type === "app_home_opened" && textAt(event, "tab") !== "messages" && user !== us.botUserId) {
    return { ...base("home", body, now, { user, team }), channelId: "" };
  }
  // In a direct message with the app, words need no mention
  const isToApp = type === "message" && textAt(event, "channel_type") === "im";
  const isForUs = type === "app_mention" || isToApp;
  const said = isForUs ? readMention(event, us.botUserId) : undefined;
  if (said === undefined || (isToApp && said === "")) return undefined;
  const [channelId, ts] = [textAt(event, "channel"), textAt(event, "ts")];
  const threadTs = textAt(event, "thread_ts");
  return {
    ...base("mention", body, now, { user, team }),
    // One message is one interaction, however often it is delivered or edited.
    id: `mention:${channelId}:${ts}`,
    channelId,
    // What only one person sees shows in a thread only where the thread has replies: else the channel is the place
    // (https://docs.slack.dev/reference/methods/chat.postEphemeral)
    ...(threadTs === "" ? {} : { threadTs }),
    text: said,
  };
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
  // Trigger ids open modals, so only their hash goes into logs and Redis. Without an id the content identifies the
  // delivery: a redelivery is the same, byte for byte.
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
 * Subtypes of new messages that people write: one with a file, and a reply that is also sent to the channel
 * (https://docs.slack.dev/reference/events/message).
 */
const writtenByPeople = new Set(["file_share", "thread_broadcast"]);

/**
 * The command in a message to us. Undefined unless a human wrote it as a new message: apps can post as a person, so
 * anything marked by an app is ignored, as are other subtypes (edits, joins, topics).
 */
function readMention(event: unknown, botUserId: string): string | undefined {
  const user = textAt(event, "user");
  if (user === "" || user === botUserId || user === "USLACKBOT") return undefined;
  const subtype = textAt(event, "subtype");
  if (subtype !== "" && !writtenByPeople.has(subtype)) return undefined;
  const marks = ["bot_id", "app_id", "bot_profile", "workflow_id"];
  if (marks.some((mark) => (at(event, mark) ?? "") !== "")) return undefined;
  return wordsToUs(textAt(event, "text"), botUserId);
}
