import type { Outcome } from "../actions.ts";
import { maySee } from "../state/channels.ts";
import { deleteMessage, findMessage } from "../state/messages.ts";
import type { Channel, Message } from "../state/records.ts";
import { type Act, mustBeActive, nothingSent, sendEvent } from "./act.ts";

export async function react(act: Act, ts: string, emoji: string): Promise<Outcome> {
  const { channel, message } = visibleMessage(act, ts);
  const name = emoji.replaceAll(":", "");
  const users = message.reactions.get(name) ?? new Set<string>();
  message.reactions.set(name, users.add(act.person.id));
  act.workspace.changed();
  const event = {
    type: "reaction_added",
    user: act.person.id,
    reaction: name,
    item: { type: "message", channel: channel.id, ts },
    item_user: message.userId,
    event_ts: act.workspace.newTs(),
  };
  return (await sendEvent(act, "reaction_added", event, channel)) ?? nothingSent;
}

/** People delete their own messages; administrators any. */
export function removeMessage(act: Act, ts: string): Outcome {
  const { message } = visibleMessage(act, ts);
  const mayDelete =
    message.userId === act.person.id || act.person.role === "admin" || act.person.role === "owner";
  if (!mayDelete) throw new Error(`${act.person.name} may not delete that message`);
  deleteMessage(act.workspace, message);
  return nothingSent;
}

function visibleMessage(act: Act, ts: string): { channel: Channel; message: Message } {
  mustBeActive(act);
  for (const channel of act.workspace.channels.values()) {
    const message = maySee(channel, act.person)
      ? findMessage(act.workspace, channel.id, ts)
      : undefined;
    if (message) return { channel, message };
  }
  throw new Error(`${act.person.name} sees no message ${ts}`);
}
