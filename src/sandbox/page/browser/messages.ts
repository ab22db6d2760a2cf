import type { SeenMessage } from "../../slack/seen.ts";
import { el, type Keyed } from "./dom.ts";
import { drawMessage, type MessageSpec } from "./message.ts";
import { dayOf, millisecondsOf } from "./time.ts";

const together = 5 * 60_000;

/** The messages as a list to draw: a line for each day, and no second heading for what follows soon from one author. */
export function listMessages(messages: readonly SeenMessage[], spec: MessageSpec): Keyed[] {
  const items: Keyed[] = [];
  let before: SeenMessage | undefined;
  for (const message of messages) {
    const day = dayOf(millisecondsOf(message.ts));
    const newDay = before === undefined || dayOf(millisecondsOf(before.ts)) !== day;
    if (newDay)
      items.push({
        key: `day ${day}`,
        signature: "",
        draw: () => el("h3", { class: "day" }, el("span", {}, day)),
      });
    const follows = !newDay && before !== undefined && belongTogether(before, message);
    const replies = repliesOf(message, spec);
    items.push({
      key: message.ts,
      signature: JSON.stringify([
        message,
        follows,
        replies.map((reply) => reply.ts),
        spec.seen.me.id,
      ]),
      draw: () => drawMessage(message, follows, replies, spec),
    });
    before = message;
  }
  return items;
}

function belongTogether(one: SeenMessage, other: SeenMessage): boolean {
  const soon = millisecondsOf(other.ts) - millisecondsOf(one.ts) < together;
  return (
    soon &&
    one.author.id === other.author.id &&
    one.ephemeral === other.ephemeral &&
    one.replyCount === 0 &&
    !one.deleted
  );
}

function repliesOf(message: SeenMessage, { channel, openThread }: MessageSpec): SeenMessage[] {
  return openThread ? channel.messages.filter((reply) => reply.threadTs === message.ts) : [];
}
