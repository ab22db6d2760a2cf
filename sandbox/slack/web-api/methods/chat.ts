import { withIds } from "../../blocks/walk.ts";
import type { Fields } from "../../fields.ts";
import { directChannel } from "../../state/channels.ts";
import {
  deleteMessage,
  everyMessage,
  findMessage,
  messageObject,
  postEphemeral,
  postMessage,
} from "../../state/messages.ts";
import type { Channel, Message } from "../../state/records.ts";
import { messageBody } from "./message-body.ts";
import { type Call, type Method, Refused } from "./method.ts";

const write = { scopes: ["chat:write"], token: "bot" } as const;

export const chat: Record<string, Method> = {
  "chat.postMessage": {
    ...write,
    run: (call) => {
      const channel = target(call);
      refuseBeyondLimit(call);
      const body = messageBody(call);
      const message = postMessage(call.workspace, {
        ...author(call),
        ...content(body),
        channelId: channel.id,
        ...thread(call, channel),
      });
      return {
        channel: channel.id,
        ts: message.ts,
        message: messageObject(call.workspace, message, true),
      };
    },
  },

  "chat.update": {
    ...write,
    run: (call) => {
      call.required("channel", "ts");
      const channel = call.joinedChannel();
      if (channel.archived) throw new Refused("is_inactive");
      const message = own(call, channel, "cant_update_message");
      const { editWindowMs = Infinity } = call.workspace.rules;
      if (call.workspace.now() - Number(message.ts) * 1000 > editWindowMs)
        throw new Refused("edit_window_closed");
      const body = messageBody(call);
      message.text = body.text;
      // Text without blocks drops the blocks the message had.
      message.blocks = withIds(body.blocks);
      message.attachments = body.attachments;
      // Without metadata what was there stays; an empty object removes it.
      if (body.metadata !== undefined) {
        if (Object.keys(body.metadata).length === 0) delete message.metadata;
        else message.metadata = body.metadata;
      }
      message.edited = { userId: call.bot.id, ts: call.workspace.newTs() };
      call.workspace.changed();
      return {
        channel: channel.id,
        ts: message.ts,
        text: message.text,
        message: messageObject(call.workspace, message, true),
      };
    },
  },

  "chat.delete": {
    ...write,
    run: (call) => {
      call.required("channel", "ts");
      const channel = call.channel();
      const message = own(call, channel, "cant_delete_message");
      deleteMessage(call.workspace, message);
      return { channel: channel.id, ts: message.ts };
    },
  },

  "chat.postEphemeral": {
    ...write,
    run: (call) => {
      call.required("channel", "user");
      const channel = call.joinedChannel();
      if (channel.archived) throw new Refused("is_archived");
      const person = call.workspace.people.get(call.text("user"));
      if (!person || !channel.memberIds.has(person.id)) throw new Refused("user_not_in_channel");
      const draft = {
        ...author(call),
        ...content(messageBody(call)),
        channelId: channel.id,
        ...thread(call, channel),
      };
      return { message_ts: postEphemeral(call.workspace, person.id, draft).ts };
    },
  },

  "chat.getPermalink": {
    scopes: [],
    token: "bot",
    run: (call) => {
      call.required("channel", "message_ts");
      const channel = call.channel();
      const message = findMessage(call.workspace, channel.id, call.text("message_ts"));
      if (!message) throw new Refused("message_not_found");
      const inThread =
        message.threadTs === undefined ? "" : `?thread_ts=${message.threadTs}&cid=${channel.id}`;
      const path = `archives/${channel.id}/p${message.ts.replace(".", "")}`;
      return {
        channel: channel.id,
        permalink: `https://${call.workspace.team.domain}.slack.com/${path}${inThread}`,
      };
    },
  },
};

/** Where a message goes: a channel the bot is in, or a person, which means the direct message with them. */
function target(call: Call): Channel {
  const id = call.text("channel");
  const person = /^[UW]/.test(id) ? call.workspace.people.get(id) : undefined;
  if (person) {
    if (!person.active) throw new Refused("user_disabled");
    return directChannel(call.workspace, call.bot.id, person.id);
  }
  const channel = call.channel();
  const open = channel.kind === "public" && call.workspace.app.scopes.includes("chat:write.public");
  if (!open && !channel.memberIds.has(call.bot.id)) throw new Refused("not_in_channel");
  if (channel.archived) throw new Refused("is_archived");
  return channel;
}

function author(call: Call): { userId: string; botId: string } {
  return { userId: call.bot.id, botId: call.workspace.app.botId };
}

function content(body: {
  text: string;
  blocks: Fields[];
  attachments: Fields[];
  metadata: Fields | undefined;
}) {
  const { metadata, ...rest } = body;
  return metadata && Object.keys(metadata).length > 0 ? { ...rest, metadata } : rest;
}

/** https://docs.slack.dev/reference/methods/chat.postMessage#errors */
function refuseBeyondLimit({ workspace }: Call): void {
  const { messagesPerMinute } = workspace.rules;
  if (messagesPerMinute === undefined) return;
  const since = (workspace.now() - 60_000) / 1000;
  const sent = everyMessage(workspace).filter(({ ts }) => Number(ts) > since).length;
  if (sent >= messagesPerMinute) throw new Refused("message_limit_exceeded");
}

function thread(call: Call, channel: Channel): { threadTs?: string } {
  if (!call.has("thread_ts")) return {};
  const ts = call.args["thread_ts"];
  if (typeof ts !== "string" || !/^\d+\.\d{6}$/.test(ts)) throw new Refused("invalid_thread_ts");
  if (channel.isNonThreadable) throw new Refused("restricted_action_non_threadable_channel");
  if (findMessage(call.workspace, channel.id, ts)?.isLocked)
    throw new Refused("restricted_action_thread_locked");
  return { threadTs: ts };
}

/** The bot's own message. Ephemerals are not found here: they can't be changed. */
function own(call: Call, channel: Channel, error: string): Message {
  const message = findMessage(call.workspace, channel.id, call.text("ts"));
  if (!message || message.tombstone) throw new Refused("message_not_found");
  if (message.botId !== call.workspace.app.botId) throw new Refused(error);
  return message;
}
