import type { Outcome } from "../actions.ts";
import { maySee } from "../state/channels.ts";
import { deleteMessage, findMessage, postMessage } from "../state/messages.ts";
import type { Message, Channel } from "../state/records.ts";
import { type Act, mustBeActive, nothingSent, refusedBySlack, sendEvent } from "./act.ts";

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

/** `/invite @somebody`: Slack's own command, which no app hears of unless it is subscribed to new members. */
export async function invite(act: Act, channel: Channel, words: string): Promise<Outcome> {
  const { workspace, person } = act;
  const refuse = (error: string, text: string) => refusedBySlack(act, error, text, channel.id);
  const name = words.trim().replace(/^@/, "").toLowerCase();
  const invited = [...workspace.people.values()].find((one) => one.name === name && one.active);
  if (channel.kind === "direct")
    return refuse("method_not_supported", "Nobody can be invited to a direct message.");
  if (!invited) return refuse("user_not_found", `Nobody here is called “${words.trim()}”.`);
  if (channel.memberIds.has(invited.id))
    return refuse("already_in_channel", `@${invited.name} is already in #${channel.name}.`);
  channel.memberIds.add(invited.id);
  const { ts } = postMessage(workspace, {
    channelId: channel.id,
    userId: invited.id,
    ...(invited.botId === undefined ? {} : { botId: invited.botId }),
    text: `was added to #${channel.name} by ${person.realName}.`,
  });
  const event = {
    type: "member_joined_channel",
    user: invited.id,
    channel: channel.id,
    channel_type: channel.kind === "public" ? "C" : "G",
    team: workspace.team.id,
    inviter: person.id,
    event_ts: ts,
  };
  return (await sendEvent(act, "member_joined_channel", event, channel)) ?? nothingSent;
}
