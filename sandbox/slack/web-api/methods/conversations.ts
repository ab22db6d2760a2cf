import type { Fields } from "../../fields.ts";
import { channelObject, directChannel, maySee } from "../../state/channels.ts";
import { findMessage, messageObject, messagesIn, repliesOf } from "../../state/messages.ts";
import type { Channel, Message } from "../../state/records.ts";
import { type Call, channelScope, type Method, page, Refused } from "./method.ts";

const read = {
  scopes: ["channels:read", "groups:read", "im:read", "mpim:read"],
  token: "bot",
} as const;
const history = {
  scopes: ["channels:history", "groups:history", "im:history", "mpim:history"],
  token: "bot",
} as const;

export const conversations: Record<string, Method> = {
  "conversations.info": {
    ...read,
    run: (call) => {
      const channel = call.channel();
      call.needsScope(channelScope(channel, "read"));
      return { channel: channelObject(call.workspace, channel, call.bot.id) };
    },
  },

  "conversations.list": {
    ...read,
    run: (call) => {
      const types = (call.text("types") || "public_channel").split(",").map((type) => type.trim());
      const kinds = {
        public: "public_channel",
        private: "private_channel",
        direct: "im",
        group: "mpim",
      };
      const shown = [...call.workspace.channels.values()].filter(
        (channel) =>
          types.includes(kinds[channel.kind]) &&
          maySee(channel, call.bot) &&
          call.workspace.app.scopes.includes(channelScope(channel, "read")) &&
          !(channel.archived && call.flag("exclude_archived")),
      );
      const { items, next_cursor } = page(call, shown, call.number("limit", 100, 999));
      return {
        channels: items.map((channel) => channelObject(call.workspace, channel, call.bot.id)),
        response_metadata: { next_cursor },
      };
    },
  },

  "conversations.members": {
    ...read,
    run: (call) => {
      const channel = call.channel();
      call.needsScope(channelScope(channel, "read"));
      const { items, next_cursor } = page(
        call,
        [...channel.memberIds],
        call.number("limit", 100, 999),
      );
      return { members: items, response_metadata: { next_cursor } };
    },
  },

  "conversations.open": {
    scopes: ["im:write", "mpim:write"],
    token: "bot",
    run: (call) => {
      const users = call.text("users").split(",").filter(Boolean);
      const [id] = users;
      if (id === undefined) throw new Refused("users_list_not_supplied");
      // Group messages aren't part of this workspace.
      if (users.length > 1) throw new Refused("not_enough_users");
      const person = call.workspace.people.get(id);
      if (!person) throw new Refused("user_not_found");
      if (!person.active) throw new Refused("user_disabled");
      const channel = directChannel(call.workspace, call.bot.id, person.id);
      const full = call.flag("return_im")
        ? channelObject(call.workspace, channel, call.bot.id)
        : { id: channel.id };
      return { no_op: true, already_open: true, channel: full };
    },
  },

  "conversations.join": {
    scopes: ["channels:join"],
    token: "bot",
    run: (call) => {
      const channel = call.channel();
      if (channel.kind !== "public") throw new Refused("method_not_supported_for_channel_type");
      if (channel.archived) throw new Refused("is_archived");
      const already = channel.memberIds.has(call.bot.id);
      channel.memberIds.add(call.bot.id);
      call.workspace.changed();
      return {
        channel: channelObject(call.workspace, channel, call.bot.id),
        ...(already ? { warning: "already_in_channel" } : {}),
      };
    },
  },

  "conversations.history": {
    ...history,
    run: (call) => {
      const channel = readable(call);
      const top = messagesIn(call.workspace, channel.id).filter(
        (message) => message.threadTs === undefined,
      );
      return listing(call, within(call, top).toReversed(), call.number("limit", 100, 999));
    },
  },

  "conversations.replies": {
    ...history,
    run: (call) => {
      call.required("channel", "ts");
      const channel = readable(call);
      const message = findMessage(call.workspace, channel.id, call.text("ts"));
      const root =
        message?.threadTs === undefined
          ? message
          : findMessage(call.workspace, channel.id, message.threadTs);
      if (!root) throw new Refused("thread_not_found");
      return listing(
        call,
        [root, ...within(call, repliesOf(call.workspace, root))],
        call.number("limit", 1000, 1000),
      );
    },
  },
};

function readable(call: Call): Channel {
  const channel = call.joinedChannel();
  call.needsScope(channelScope(channel, "history"));
  return channel;
}

/** A ts, given with or without decimals, so that times compare as strings. */
function padded(ts: string): string {
  const [seconds = "", rest = ""] = ts.split(".");
  return `${seconds.padStart(12, "0")}.${rest.padEnd(6, "0")}`;
}

/** Between `oldest` and `latest`; both ends only with `inclusive`. */
function within(call: Call, messages: readonly Message[]): Message[] {
  const oldest = padded(call.text("oldest") || "0");
  const latest = padded(call.text("latest") || "999999999999");
  const inclusive = call.flag("inclusive");
  return messages.filter(({ ts }) => {
    const at = padded(ts);
    return inclusive ? at >= oldest && at <= latest : at > oldest && at < latest;
  });
}

function listing(call: Call, messages: readonly Message[], limit: number): Fields {
  const { items, next_cursor } = page(call, messages, limit);
  const withMetadata = call.flag("include_all_metadata");
  return {
    messages: items.map((message) => messageObject(call.workspace, message, withMetadata)),
    has_more: next_cursor !== "",
    pin_count: 0,
    response_metadata: { next_cursor },
  };
}
