import type { Seen, SeenChannel, SeenMessage } from "../../../slack/seen.ts";
import { drawKeyed, el, type Keyed } from "../dom/dom.ts";
import { dayOf, millisecondsOf } from "../text/time.ts";
import { drawMessage, type MessageSpec } from "./message.ts";

export interface Pane<T extends unknown[]> {
  node: HTMLElement;
  update(...what: T): void;
}

export interface MessageList {
  node: HTMLElement;
  /** `moved`: another list than before, shown from its end. */
  show(items: readonly Keyed[], messages: readonly SeenMessage[], me: string, moved: boolean): void;
  toEnd(): void;
}

/**
 * Where messages are listed; new ones are read out. What is new at the end comes into view, and always what the person
 * wrote; to whoever has scrolled up to read, a button says how much is new below.
 */
export function createList(label: string): MessageList {
  let atEnd = true;
  let top = 0;
  let unseen = 0;
  let newest = "";
  const list = el("div", {
    class: "messages",
    role: "log",
    "aria-live": "polite",
    "aria-label": label,
    tabindex: 0,
  });
  const toEnd = () => {
    list.scrollTop = list.scrollHeight;
    top = list.scrollTop;
    atEnd = true;
    count(0);
  };
  const pill = el("button", { type: "button", class: "new-below", hidden: true, onclick: toEnd });
  const count = (messages: number) => {
    unseen = messages;
    pill.hidden = unseen === 0;
    pill.textContent = unseen === 1 ? "1 new message ↓" : `${unseen} new messages ↓`;
  };
  const scrolled = () => {
    // Only up leads away from the end: a browser may move a list that gets shorter, too
    const isUp = list.scrollTop < top;
    top = list.scrollTop;
    atEnd = list.scrollHeight - top - list.clientHeight < 60 || (atEnd && !isUp);
    if (atEnd) count(0);
  };
  list.addEventListener("scroll", scrolled);
  // The event comes with the next frame, and what is new may come before that
  const noticeScroll = () => {
    if (list.clientHeight > 0 && list.scrollTop < top) scrolled();
  };
  // Pictures arrive late, and what stands around the list takes room and gives it back
  const keep = () => {
    noticeScroll();
    if (atEnd) toEnd();
  };
  list.addEventListener("load", keep, true);
  new ResizeObserver(keep).observe(list);
  return {
    node: el("div", { class: "list-box" }, list, pill),
    toEnd,
    show: (items, messages, me, moved) => {
      const fresh = messages.filter(({ ts }) => ts > newest);
      newest = messages.at(-1)?.ts ?? "";
      noticeScroll();
      drawKeyed(list, items);
      if (atEnd || moved || fresh.some(({ author }) => author.id === me)) toEnd();
      else count(unseen + fresh.length);
    },
  };
}

/** Why this person can't write in the channel. */
export function refusalIn(seen: Seen, channel: SeenChannel): { refusal?: string } {
  if (channel.readOnly) return { refusal: "Sending messages to this app has been turned off." };
  if (channel.archived) return { refusal: "This channel is archived." };
  if (!channel.member)
    return { refusal: `${seen.me.realName} isn't in this channel and can't write here.` };
  return {};
}

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
        draw: () => el("h2", { class: "day" }, el("span", {}, day)),
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
