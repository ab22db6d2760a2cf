import { createHash } from "node:crypto";
import type { Ask, AskBase, AskedView } from "./ask.ts";
import { at, listAt, textAt } from "./payload.ts";
import { readValues, valueOf } from "./read-values.ts";
import { readMention } from "./read-mention.ts";

/**
 * What Slack delivered, in our words; undefined for what asks nothing of us (a closed modal, an event we don't use, a
 * bot's message). Pure. Payloads: https://docs.slack.dev/reference/interaction-payloads
 */
export function readAsk(body: unknown, us: { botUserId: string }, now: number): Ask | undefined {
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

function readCommand(body: unknown, now: number): Ask {
  const words = `${textAt(body, "command").replace(/^\//, "")} ${textAt(body, "text")}`;
  return {
    ...base("command", body, now, { user: textAt(body, "user_id"), team: textAt(body, "team_id") }),
    channelId: textAt(body, "channel_id"),
    kind: "command",
    text: words.trim(),
  };
}

function readButton(body: unknown, now: number): Ask | undefined {
  const action = listAt(body, "actions")[0];
  if (action === undefined) return undefined;
  const messageTs = textAt(body, "container", "message_ts") || textAt(body, "message", "ts");
  const thread = textAt(body, "container", "thread_ts") || textAt(body, "message", "thread_ts");
  // A message that has replies names itself as its thread; what is pressed on it belongs into the channel
  const threadTs = thread === messageTs ? "" : thread;
  const viewId = textAt(body, "view", "id") || textAt(body, "container", "view_id");
  return {
    ...base("button", body, now),
    ...(threadTs === "" ? {} : { threadTs }),
    kind: "button",
    action: textAt(action, "action_id"),
    value: [valueOf(action) ?? ""].flat().join(","),
    ...(messageTs === "" ? {} : { messageTs }),
    ephemeral: at(body, "container", "is_ephemeral") === true,
    ...(viewId === "" ? {} : { viewId, view: readView(at(body, "view")) }),
  };
}

function readView(view: unknown): AskedView {
  return {
    type: textAt(view, "type") === "home" ? "home" : "modal",
    callback: textAt(view, "callback_id"),
    hash: textAt(view, "hash"),
    privateMetadata: textAt(view, "private_metadata"),
    values: readValues(at(view, "state", "values")),
  };
}

function readSubmission(body: unknown, now: number): Ask {
  const view = at(body, "view");
  const [viewId, hash] = [textAt(view, "id"), textAt(view, "hash")];
  return {
    ...base("submission", body, now),
    // Pressing Submit again after a late ack brings a new trigger but the same view: that is one submission.
    ...(viewId === "" ? {} : { id: `submission:${viewId}:${hash}:${textAt(body, "user", "id")}` }),
    kind: "submission",
    callback: textAt(view, "callback_id"),
    privateMetadata: textAt(view, "private_metadata"),
    viewId,
    values: readValues(at(view, "state", "values")),
  };
}

function readShortcut(body: unknown, now: number): Ask {
  const onMessage = textAt(body, "type") === "message_action";
  const threadTs = textAt(body, "message", "thread_ts");
  return {
    ...base("shortcut", body, now),
    ...(threadTs === "" ? {} : { threadTs }),
    kind: "shortcut",
    callback: textAt(body, "callback_id"),
    ...(onMessage
      ? { messageText: textAt(body, "message", "text"), messageTs: textAt(body, "message", "ts") }
      : {}),
  };
}

function readEvent(body: unknown, us: { botUserId: string }, now: number): Ask | undefined {
  const event = at(body, "event");
  const user = textAt(event, "user");
  const team = textAt(event, "user_team") || textAt(event, "team") || textAt(body, "team_id");
  const type = textAt(event, "type");
  if (type === "app_home_opened" && textAt(event, "tab") !== "messages" && user !== us.botUserId) {
    return { ...base("home", body, now, { user, team }), channelId: "", kind: "home" };
  }
  const said = type === "app_mention" ? readMention(event, us.botUserId) : undefined;
  if (said === undefined) return undefined;
  const [channelId, ts] = [textAt(event, "channel"), textAt(event, "ts")];
  return {
    ...base("mention", body, now, { user, team }),
    // A message is one ask, however often it is delivered or edited.
    id: `mention:${channelId}:${ts}`,
    channelId,
    threadTs: textAt(event, "thread_ts") || ts,
    kind: "mention",
    text: said,
  };
}

function base(
  kind: Ask["kind"],
  body: unknown,
  now: number,
  who = {
    user: textAt(body, "user", "id"),
    team: textAt(body, "user", "team_id") || textAt(body, "team", "id"),
  },
): AskBase {
  const triggerId = textAt(body, "trigger_id");
  const responseUrl =
    textAt(body, "response_url") || textAt(listAt(body, "response_urls")[0], "response_url");
  // Trigger ids open modals, so only their hash goes into logs and Redis. What bears no id is known by its content: a
  // delivery that comes again is the same, byte for byte.
  const id = textAt(body, "event_id") || hashOf(triggerId || JSON.stringify(body));
  return {
    id: `${kind}:${id}`,
    at: now,
    userId: who.user,
    teamId: who.team,
    channelId: textAt(body, "channel", "id") || textAt(body, "container", "channel_id"),
    ...(triggerId === "" ? {} : { triggerId }),
    ...(responseUrl === "" ? {} : { responseUrl }),
  };
}

function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 32);
}
