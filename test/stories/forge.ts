import { channelOf } from "../../sandbox/slack/state/channels.ts";
import { findMessage } from "../../sandbox/slack/state/messages.ts";
import { blockActionsPayload } from "../../sandbox/slack/deliver/payloads.ts";
import { personOf } from "../../sandbox/slack/state/people.ts";
import type { SeenMessage } from "../../sandbox/slack/seen.ts";
import type { World } from "../../demo/world.ts";

type Payload = Record<string, unknown>;

/** A button that was or wasn't there. */
export interface Pressed {
  action: string;
  value: string;
}

/** What Slack sends when this person presses that on this message: signed like Slack's, with whatever it should say. */
export function pressPayload(
  world: Pick<World, "slack">,
  who: string,
  on: SeenMessage,
  pressed: Pressed,
): Payload {
  const { workspace } = world.slack;
  const channel = channelOf(workspace, on.channelId);
  const message = findMessage(workspace, on.channelId, on.ts);
  if (!message) throw new Error(`there is no message ${on.ts}`);
  const action = {
    type: "button",
    action_id: pressed.action,
    block_id: "b",
    value: pressed.value,
    text: { type: "plain_text", text: "Approve" },
  };
  const place = { kind: "message", message, ephemeral: false, channel } as const;
  return blockActionsPayload(workspace, personOf(workspace, who), place, action, {});
}

/** Posts it to the app with a right signature. The world must receive over HTTP. */
export async function sendSigned(world: Pick<World, "slack">, payload: Payload): Promise<number> {
  const body = new URLSearchParams({ payload: JSON.stringify(payload) }).toString();
  const seconds = Math.floor(Date.now() / 1000);
  const { status } = await world.slack.sendRaw(body, {
    "content-type": "application/x-www-form-urlencoded",
    "x-slack-request-timestamp": String(seconds),
    "x-slack-signature": world.slack.sign(seconds, body),
  });
  return status;
}

/** A button of a message, by its label or action. */
export function buttonOn(message: SeenMessage, label: string): Pressed {
  for (const block of message.blocks) {
    for (const element of (block["elements"] ?? []) as Record<string, unknown>[]) {
      const text = (element["text"] as { text?: string } | undefined)?.text;
      if (text === label || element["action_id"] === label) {
        return { action: String(element["action_id"]), value: String(element["value"]) };
      }
    }
  }
  throw new Error(`there is no ${label} on ${message.text}`);
}
