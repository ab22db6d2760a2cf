import type { View } from "@slack/types";
import {
  type Message,
  message as makeMessage,
  news,
  section,
  lines,
  type Markdown,
  md,
  name,
} from "../../messages/message.ts";
import * as crypto from "node:crypto";
import {
  at,
  type EphemeralPost,
  listAt,
  payloadOf,
  textAt,
  isBecauseOfUs,
  postMessage,
  postResponse,
  type Place,
  type Web,
  type WebAnswer,
  type WebData,
} from "../web.ts";
import type { Log } from "../../log/log.ts";
import { textOfMessage } from "./message-text.ts";
import { wordsToUs } from "./message-words.ts";
import { showOrSay } from "../deliver/post-once.ts";
import type { Announce } from "../deliver/deliver.ts";

/**
 * An act in Slack, independent of Bolt. Except the ids of person, team and channel everything in it is client-chosen and
 * proves nothing.
 */
export interface InteractionBase {
  /** From Slack's trigger id, event id, message, or view id and hash: equal ids are one delivery. */
  id: string;
  /** When it was received (ms). */
  at: number;
  userId: string;
  /** The person's team: another one with Slack Connect. */
  teamId: string;
  /** Empty where there is none (global shortcut, Home tab). */
  channelId: string;
  threadTs?: string;
  /** Opens a modal, once, within three seconds of `at`. */
  triggerId?: string;
  /** A capability to answer: never stored or logged. */
  responseUrl?: string;
}

/** Whether only this person and Gatehouse read there. */
export function isDirect({ channelId }: Pick<InteractionBase, "channelId">): boolean {
  return channelId.startsWith("D");
}

export type Press = Extract<Interaction, { kind: "button" }>;

export type Interaction =
  /** `/vm restart web-1`, or the same in a mention: `text` is `vm restart web-1`. */
  | (InteractionBase & { kind: "command" | "mention"; text: string })
  /** A pressed button or a chosen option. */
  | (InteractionBase & {
      kind: "button";
      action: string;
      value: string;
      messageTs?: string;
      /** The message exists only for this person. */
      ephemeral: boolean;
      viewId?: string;
      view?: ReturnType<typeof readView>;
    })
  /** A submitted modal. `values` is block id → value (text, option value, or list). */
  | (InteractionBase & {
      kind: "submission";
      callback: string;
      privateMetadata: string;
      viewId: string;
      values: Record<string, InputValue>;
    })
  | (InteractionBase & { kind: "shortcut"; callback: string; messageText?: string })
  | (InteractionBase & { kind: "home" });

export type Submission = Extract<Interaction, { kind: "submission" }>;

/** Errors by block id of the input: with any, the submission goes back to the person and is not handled. */
export interface SubmissionResult {
  errors: Readonly<Record<string, string>>;
}

/** Someone types into a select whose options Gatehouse provides. */
export interface SuggestRequest {
  userId: string;
  teamId: string;
  action: string;
  typed: string;
  /** Of its view; empty when it is in a message. */
  privateMetadata: string;
}

export interface Suggestion {
  label: string;
  /** At most 75 characters. Untrusted when it comes back. */
  value: string;
  description?: string;
}

/** Everything except `submit` and `suggest` runs after the ack. */
export interface Handlers {
  /** May run twice for one interaction, when a gateway dies during it: must be idempotent by its `id`. */
  handle(interaction: Interaction, reply: Reply): Promise<void>;
  /** A redelivery: nothing is done, but the person may be told the state of the first. */
  repeated(interaction: Interaction, reply: Reply): Promise<void>;
  /** Runs before the ack: must answer within two seconds. */
  submit(interaction: Submission): Promise<SubmissionResult | undefined>;
  /** Runs before the ack. Suggests nothing when it fails or takes over two seconds. */
  suggest?(request: SuggestRequest): Promise<readonly Suggestion[]>;
  /** Answers an interaction that Redis could not store; undefined unless it only reads. */
  withoutRedis?(interaction: Interaction): ((reply: Reply) => Promise<void>) | undefined;
  /** A gateway died during this interaction, too long ago to handle it now. */
  tooLate(reply: Reply): Promise<void>;
  /** A user group changed, as this event of Slack says; `id` names the event. */
  peopleChanged(event: unknown, id: string): void | Promise<void>;
}

/** The ways to answer the requester. Failures are logged, never thrown. */
export interface Reply {
  /** Only the requester sees it: by response URL (works without membership), else an ephemeral post. */
  privately(message: Message): Promise<void>;
  /** Replaces the ephemeral message whose button was pressed; where that isn't possible, answers privately. */
  instead(message: Message): Promise<void>;
  /** The same without the private answer: false when nothing was replaced. */
  replace(message: Message): Promise<boolean>;
  /** Opens a modal with the interaction's trigger: its ID; undefined when the trigger was too old. */
  open(view: View): Promise<string | undefined>;
  update(viewId: string, view: View, hash?: string): Promise<void>;
}

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

function readView(view: unknown) {
  return {
    type: textAt(view, "type") === "home" ? ("home" as const) : ("modal" as const),
    callback: textAt(view, "callback_id"),
    hash: textAt(view, "hash"),
    privateMetadata: textAt(view, "private_metadata"),
    values: readValues(at(view, "state", "values")),
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

type InputValue = string | readonly string[] | undefined;

/** A view's `state.values` (block id → action id → element) as block id → value: a block holds one element. */
function readValues(values: unknown): Record<string, InputValue> {
  return Object.fromEntries(
    Object.entries(payloadOf(values)).map(([blockId, elements]) => [
      blockId,
      valueOf(Object.values(payloadOf(elements))[0]),
    ]),
  );
}

/** The value of an element, of the kinds that Gatehouse shows: a text, the value of an option, or a list of them. */
export function valueOf(element: unknown): InputValue {
  if (Array.isArray(at(element, "selected_options")))
    return listAt(element, "selected_options").map((one) => textAt(one, "value"));
  return (
    textAt(element, "selected_option", "value") ||
    textAt(element, "value") ||
    textAt(element, "selected_conversation") ||
    undefined
  );
}

interface ReplyOptions {
  web: Web;
  interaction: Interaction;
  /** Determines which response URLs are Slack's. */
  apiUrl: string;
  log: Log;
  now?: () => number;
  /** Slack accepted the answer nowhere. */
  onLostReply?: ((interaction: Interaction) => Promise<void>) | undefined;
}

/** Slack accepts five posts to a response URL within half an hour; a minute is kept in reserve. */
const maxUses = 5;
const usableForMs = 29 * 60_000;

export function createReply(options: ReplyOptions): Reply {
  const { web, interaction, apiUrl, log, now = Date.now } = options;
  let uses = 0;

  async function respond(response: EphemeralPost): Promise<boolean> {
    const { responseUrl: url, at: receivedAt } = interaction;
    if (!url || uses >= maxUses || now() - receivedAt > usableForMs) return false;
    uses += 1;
    const outcome = await postResponse(url, response, { apiUrl });
    if (outcome !== "done")
      log.info("slack.response-url", { interaction: interaction.id, outcome, uses });
    return outcome === "done";
  }

  /** Logs failures. */
  async function call(method: string, args?: WebData): Promise<WebAnswer> {
    const answer = await web.call(method, args);
    if (!answer.ok)
      log.warn("slack.reply-failed", { method, interaction: interaction.id, ...answer });
    return answer;
  }

  /**
   * Without a usable response URL: an ephemeral post in the channel, or else a direct message. When Slack is unreachable
   * or the answer is lost, no other way works better now: the person is told later.
   */
  async function post(message: Message): Promise<void> {
    const { channelId, threadTs, userId } = interaction;
    const postIn = (there: Place) => showOrSay(message, (one) => postMessage({ call }, there, one));
    let answer: WebAnswer | undefined;
    if (isDirect(interaction)) answer = await postIn({ channelId, threadTs });
    else if (channelId !== "") {
      const place = { channel: channelId, user: userId, ...(threadTs && { thread_ts: threadTs }) };
      answer = await showOrSay(message, ({ text, blocks }) =>
        call("chat.postEphemeral", { ...place, text, blocks }),
      );
    }
    if (answer === undefined || (!answer.ok && answer.kind === "refused"))
      answer = await postIn({ channelId: userId });
    if (answer.ok || (answer.kind === "refused" && !isBecauseOfUs(answer.error))) return;
    try {
      await options.onLostReply?.(interaction);
    } catch (error) {
      log.warn("slack.not-told-later", { interaction: interaction.id, error });
    }
  }

  async function privately(message: Message): Promise<void> {
    const { threadTs } = interaction;
    if (!(await respond({ show: message, replace: false, threadTs }))) await post(message);
  }

  // In a public message the response URL would replace that message for everyone.
  const mayReplace = interaction.kind === "button" && interaction.ephemeral;

  const replace = async (message: Message) =>
    mayReplace && (await respond({ show: message, replace: true }));

  return {
    privately,
    replace,
    async instead(message) {
      if (!(await replace(message))) await privately(message);
    },
    async open(view) {
      if (interaction.triggerId === undefined) return undefined;
      // Slack opens a modal over another one only with views.push.
      const onTop = interaction.kind === "button" && interaction.view?.type === "modal";
      const answer = await call(onTop ? "views.push" : "views.open", {
        trigger_id: interaction.triggerId,
        view,
      });
      return answer.ok ? textAt(answer.data, "view", "id") : undefined;
    },
    async update(viewId, view, hash) {
      await call("views.update", { view_id: viewId, view, ...(hash && { hash }) });
    },
  };
}

export function lostReply(what: Markdown): Message {
  const text = lines(
    md`Slack was unavailable when Gatehouse answered ${what}.`,
    md`If no message about it is in the channel, nothing was done. Please try again.`,
  );
  return makeMessage(
    news(md`Slack lost Gatehouse's answer to ${what}. Please try again.`),
    section(text),
  );
}

/**
 * Tells people later, by direct message, that Slack lost an answer. Never the answer itself: it may be short-lived (a
 * console's address), and the command can be repeated.
 */
export function createLostReplies(announce: Announce): (interaction: Interaction) => Promise<void> {
  return async (interaction) => {
    // The Home tab is simply opened again
    if (interaction.kind === "home") return;
    const what = interaction.kind === "command" ? name(`/${interaction.text}`) : md`you`;
    const message = lostReply(what);
    const { id, userId: channelId } = interaction;
    await announce({ id: `unheard:${id}`, channelId, message });
  };
}
