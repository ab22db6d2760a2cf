import type { Outcome } from "../actions.ts";
import { messageShortcutPayload, shortcutPayload } from "../deliver/payloads.ts";
import { directChannel, maySee } from "../state/channels.ts";
import { findMessage } from "../state/messages.ts";
import { showToast } from "../state/notifications.ts";
import { viewObject } from "../state/views.ts";
import {
  type Act,
  mustBeActive,
  nothingSent,
  outcomeOf,
  sendEvent,
  visibleChannel,
} from "./act.ts";

export async function pickShortcut(act: Act, shortcut: string, channel?: string): Promise<Outcome> {
  mustBeActive(act);
  if (channel !== undefined)
    act.workspace.viewing.set(act.person.id, visibleChannel(act, channel).id);
  return deliver(
    act,
    shortcutPayload(act.workspace, act.person, callbackId(act, "global", shortcut)),
    shortcut,
  );
}

export async function pickMessageShortcut(
  act: Act,
  shortcut: string,
  ts: string,
): Promise<Outcome> {
  mustBeActive(act);
  const { workspace, person } = act;
  const channels = [...workspace.channels.values()].filter((one) => maySee(one, person));
  const channel = channels.find((one) => findMessage(workspace, one.id, ts));
  const message = channel && findMessage(workspace, channel.id, ts);
  if (!channel || !message)
    throw new Error(`${person.name} sees no message ${ts} that has shortcuts`);
  workspace.viewing.set(person.id, channel.id);
  const payload = messageShortcutPayload(
    workspace,
    person,
    callbackId(act, "message", shortcut),
    channel,
    message,
  );
  return deliver(act, payload, shortcut);
}

async function deliver(
  act: Act,
  payload: Record<string, unknown>,
  shortcut: string,
): Promise<Outcome> {
  const acked = await act.deliveries.deliver("interaction", payload, false);
  if (!acked.acked) {
    const error = acked.error ?? "dispatch_failed";
    showToast(act.workspace, act.person.id, {
      text: `${shortcut} failed with the error "${error}"`,
      error,
    });
  }
  return outcomeOf(acked);
}

function callbackId({ workspace }: Act, type: "global" | "message", wanted: string): string {
  const offered = workspace.app.shortcuts.filter((one) => one.type === type);
  const found = offered.find((one) => one.name === wanted || one.callbackId === wanted);
  if (!found)
    throw new Error(
      `There is no ${type} shortcut ${wanted}. There are: ${offered.map(({ name }) => name).join(", ")}`,
    );
  return found.callbackId;
}

export async function openHome(act: Act): Promise<Outcome> {
  mustBeActive(act);
  const { workspace, person } = act;
  const channel = directChannel(workspace, person.id, workspace.app.botUserId);
  const home = workspace.homes.get(person.id);
  const event = {
    type: "app_home_opened",
    user: person.id,
    channel: channel.id,
    tab: "home",
    event_ts: workspace.newTs(),
    ...(home ? { view: viewObject(workspace, home) } : {}),
  };
  return (await sendEvent(act, "app_home_opened", event)) ?? nothingSent;
}
