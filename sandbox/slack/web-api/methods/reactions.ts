import { findMessage } from "../../state/messages.ts";
import { type Method, Refused } from "./method.ts";

export const reactions: Record<string, Method> = {
  "reactions.add": {
    scopes: ["reactions:write"],
    token: "bot",
    run: (call) => {
      call.required("channel", "timestamp", "name");
      const channel = call.joinedChannel();
      if (channel.archived) throw new Refused("is_archived");
      const message = findMessage(call.workspace, channel.id, call.text("timestamp"));
      if (!message) throw new Refused("message_not_found");
      const name = call.text("name").replaceAll(":", "");
      if (!/^[a-z0-9_+'-]+$/.test(name)) throw new Refused("invalid_name");
      const users = message.reactions.get(name) ?? new Set<string>();
      if (users.has(call.bot.id)) throw new Refused("already_reacted");
      message.reactions.set(name, users.add(call.bot.id));
      call.workspace.changed();
      return {};
    },
  },
};
