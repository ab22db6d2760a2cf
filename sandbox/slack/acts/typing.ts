import type { Outcome, TypeOptions } from "../actions.ts";
import { commandPayload } from "../deliver/payloads.ts";
import { isFields } from "../fields.ts";
import { isReadOnly } from "../state/channels.ts";
import { announceFile } from "../state/files.ts";
import { findMessage, messageObject, postMessage } from "../state/messages.ts";
import { mentionsOf, showToast } from "../state/notifications.ts";
import type { Channel, Message } from "../state/records.ts";
import { postAnswer, refusalOf } from "../state/response-urls.ts";
import type { Workspace } from "../state/workspace.ts";
import { invite } from "./messaging.ts";
import {
  type Act,
  mustBeActive,
  nothingSent,
  outcomeOf,
  refusedBySlack,
  sendEvent,
  visibleChannel,
} from "./act.ts";

/** A person writes into a channel: a slash command when it begins with `/`, else a message. */
export async function typeText(
  act: Act,
  channelName: string,
  typed: string,
  options: TypeOptions = {},
): Promise<Outcome> {
  mustBeActive(act);
  const channel = visibleChannel(act, channelName);
  if (!channel.memberIds.has(act.person.id))
    throw new Error(`${act.person.name} isn't in #${channel.name} and can't write there`);
  if (channel.archived) throw new Error(`#${channel.name} is archived: nobody can write there`);
  if (isReadOnly(act.workspace, channel))
    throw new Error("Sending messages to this app has been turned off");
  act.workspace.viewing.set(act.person.id, channel.id);
  const text = options.phone ? phoneText(typed) : typed;
  return text.startsWith("/")
    ? runCommand(act, channel, text, options)
    : say(act, channel, text, options);
}

async function runCommand(
  act: Act,
  channel: Channel,
  typed: string,
  options: TypeOptions,
): Promise<Outcome> {
  const [, name = "", rest = ""] = /^(\S+)\s*([\s\S]*)$/.exec(typed) ?? [];
  if (options.threadTs !== undefined) {
    return refusedBySlack(
      act,
      "not_supported_in_threads",
      `${name} is not supported in threads. Sorry!`,
      channel.id,
    );
  }
  if (name === "/invite") return invite(act, channel, rest);
  const command = act.workspace.app.commands.find((one) => one.name === name);
  if (!command)
    return refusedBySlack(act, "invalid_command", `${name} is not a valid command.`, channel.id);
  const text = command.shouldEscape ? linked(act.workspace, rest.trimEnd(), true) : rest.trimEnd();
  const payload = commandPayload(act.workspace, act.person, channel, name, text);
  const acked = await act.deliveries.deliver("command", payload, true);
  const place = { userId: act.person.id, channelId: channel.id };
  if (!acked.acked) {
    const error = acked.error ?? "dispatch_failed";
    showToast(act.workspace, act.person.id, {
      text: `${name} failed with the error "${error}"`,
      error,
      channelId: channel.id,
    });
    return outcomeOf(acked);
  }
  const answer = isFields(acked.body) ? acked.body : { text: acked.body };
  const isEmpty =
    Object.keys(answer).length === 0 ||
    (!isFields(acked.body) && (acked.body === "" || acked.body === undefined));
  if (isEmpty) return outcomeOf(acked);
  const refusal = refusalOf(act.workspace, answer);
  if (refusal) {
    showToast(act.workspace, act.person.id, {
      text: `${name} failed with the error "${refusal}"`,
      error: refusal,
      channelId: channel.id,
    });
    return { ...outcomeOf(acked), error: refusal };
  }
  postAnswer(act.workspace, place, answer);
  return outcomeOf(acked);
}

async function say(
  act: Act,
  channel: Channel,
  typed: string,
  { threadTs, file, alsoInChannel = false }: TypeOptions,
): Promise<Outcome> {
  const { workspace, person } = act;
  if (threadTs !== undefined && !findMessage(workspace, channel.id, threadTs)) {
    throw new Error(`There is no message ${threadTs} in #${channel.name} to reply to`);
  }
  if (alsoInChannel && threadTs === undefined)
    throw new Error("Only a reply in a thread can also be sent to the channel");
  const text = linked(workspace, typed, false);
  const subtype = file === undefined ? alsoInChannel && "thread_broadcast" : "file_share";
  const message = postMessage(workspace, {
    channelId: channel.id,
    userId: person.id,
    text,
    ...(threadTs === undefined ? {} : { threadTs }),
    ...(file === undefined ? {} : { fileIds: [attached(act, file)] }),
    ...(subtype ? { subtype } : {}),
  });
  const outcomes = [await announce(act, channel, message), await sayMention(act, channel, message)];
  const sent = outcomes.findLast((outcome) => outcome !== undefined);
  return { ...(sent ?? nothingSent), ts: message.ts };
}

/** Uploads a small file of this person. */
function attached({ workspace, person }: Act, name: string): string {
  const bytes = Buffer.from(`${name}\n`);
  const file = announceFile(workspace, {
    name,
    size: bytes.length,
    altText: "",
    userId: person.id,
  });
  file.bytes = bytes;
  file.completedAt = workspace.now();
  return file.id;
}

function announce(act: Act, channel: Channel, message: Message): Promise<Outcome | undefined> {
  if (!channel.memberIds.has(act.workspace.app.botUserId)) return Promise.resolve(undefined);
  const kind = { public: "channels", private: "groups", direct: "im", group: "mpim" }[channel.kind];
  const type = { public: "channel", private: "group", direct: "im", group: "mpim" }[channel.kind];
  const event = {
    ...messageObject(act.workspace, message),
    channel: channel.id,
    channel_type: type,
    event_ts: message.ts,
  };
  return sendEvent(act, `message.${kind}`, event, channel);
}

function sayMention(act: Act, channel: Channel, message: Message): Promise<Outcome | undefined> {
  const { botUserId } = act.workspace.app;
  if (channel.kind === "direct" || !mentionsOf(message.text).has(botUserId))
    return Promise.resolve(undefined);
  if (!channel.memberIds.has(botUserId)) {
    showToast(act.workspace, act.person.id, {
      text: `You mentioned @${act.workspace.app.botName}, but they're not in this channel.`,
      error: "not_in_channel",
      channelId: channel.id,
    });
    return Promise.resolve(undefined);
  }
  const event = {
    ...messageObject(act.workspace, message),
    type: "app_mention",
    channel: channel.id,
    event_ts: message.ts,
  };
  return sendEvent(act, "app_mention", event, channel);
}

/** Names become links like the composer makes them: `@olivia`, `@oncall`, `#ops`. Commands carry the name along. */
function linked(workspace: Workspace, typed: string, named: boolean): string {
  const safe = typed.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  return safe.replaceAll(/(?<![\w@#])([@#])([\w.-]*\w)/g, (whole, sign: string, name: string) => {
    if (sign === "#") {
      const channel = [...workspace.channels.values()].find((one) => one.name === name);
      return channel ? `<#${channel.id}${named ? `|${name}` : ""}>` : whole;
    }
    if (/^(?:channel|here|everyone)$/.test(name)) return `<!${name}>`;
    const person = [...workspace.people.values()].find((one) => one.name === name.toLowerCase());
    if (person) return `<@${person.id}${named ? `|${person.name}` : ""}>`;
    const group = [...workspace.groups.values()].find((one) => one.handle === name);
    return group ? `<!subteam^${group.id}${named ? `|@${name}` : ""}>` : whole;
  });
}

/** What a phone's keyboard makes of plain typing: curly quotes, and a dash for two hyphens. */
export function phoneText(typed: string): string {
  return typed
    .replaceAll(/(^|[\s([{=])"/g, "$1“")
    .replaceAll('"', "”")
    .replaceAll(/(^|[\s([{=])'/g, "$1‘")
    .replaceAll("'", "’")
    .replaceAll("--", "—");
}
