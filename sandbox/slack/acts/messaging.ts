import type { Outcome } from "../actions.ts";
import { maySee } from "../state/channels.ts";
import { deleteMessage, findMessage } from "../state/messages.ts";
import type { Message } from "../state/records.ts";
import { type Act, mustBeActive, nothingSent } from "./act.ts";

/** People delete their own messages; administrators any. */
export function removeMessage(act: Act, ts: string): Outcome {
  const message = visibleMessage(act, ts);
  const mayDelete =
    message.userId === act.person.id || act.person.role === "admin" || act.person.role === "owner";
  if (!mayDelete) throw new Error(`${act.person.name} may not delete that message`);
  deleteMessage(act.workspace, message);
  return nothingSent;
}

function visibleMessage(act: Act, ts: string): Message {
  mustBeActive(act);
  for (const channel of act.workspace.channels.values()) {
    const message = maySee(channel, act.person)
      ? findMessage(act.workspace, channel.id, ts)
      : undefined;
    if (message) return message;
  }
  throw new Error(`${act.person.name} sees no message ${ts}`);
}
