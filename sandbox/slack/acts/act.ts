import type { Outcome } from "../actions.ts";
import type { Acked, Deliveries } from "../deliver/deliveries.ts";
import { eventPayload } from "../deliver/payloads.ts";
import type { Fields } from "../fields.ts";
import { channelOf, directChannel, maySee } from "../state/channels.ts";
import { showToast } from "../state/notifications.ts";
import type { Channel, Person } from "../state/records.ts";
import type { Workspace } from "../state/workspace.ts";

/** Who acts, and where. */
export interface Act {
  workspace: Workspace;
  deliveries: Deliveries;
  person: Person;
}

/** Nothing had to be handed to the app. */
export const nothingSent: Outcome = { acked: true, ackMs: 0 };

/** Slack itself refused: the person is told, the app hears nothing. */
export function refusedBySlack(act: Act, error: string, text: string, channelId?: string): Outcome {
  showToast(act.workspace, act.person.id, {
    text,
    error,
    ...(channelId === undefined ? {} : { channelId }),
  });
  return { acked: false, ackMs: 0, error };
}

/** Without the ack's body. */
export function outcomeOf(acked: Acked): Outcome {
  const { body: _, ...outcome } = acked;
  return outcome;
}

/** A channel this person sees, by id or name; `@` and the bot's name is the direct message with it. */
export function visibleChannel({ workspace, person }: Act, idOrName: string): Channel {
  const name = idOrName.replace(/^[@#]/, "");
  const { botName, botUserId } = workspace.app;
  const channel =
    name === botName || name === botUserId
      ? directChannel(workspace, person.id, botUserId)
      : channelOf(workspace, name);
  if (!maySee(channel, person)) throw new Error(`${person.name} can't see ${idOrName}`);
  return channel;
}

export function mustBeActive({ person }: Act): void {
  if (!person.active) throw new Error(`${person.name} is deactivated and can't do anything`);
}

/** Hands an event to the app when it is subscribed to it; undefined when it isn't. */
export async function sendEvent(
  act: Pick<Act, "workspace" | "deliveries">,
  subscription: string,
  event: Fields,
  channel?: Channel,
): Promise<Outcome | undefined> {
  if (!act.workspace.app.events.includes(subscription)) return undefined;
  const payload = eventPayload(act.workspace, event, channel);
  return outcomeOf(await act.deliveries.deliver("event", payload, false));
}
