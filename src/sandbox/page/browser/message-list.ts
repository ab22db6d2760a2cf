import type { Seen, SeenChannel } from "../../slack/seen.ts";
import { el } from "./dom.ts";

export interface Pane<T extends unknown[]> {
  node: HTMLElement;
  update(...what: T): void;
}

/** New messages at the end come into view, unless the person has scrolled up to read. */
export function keepAtEnd(list: HTMLElement, moved: boolean, draw: () => void): void {
  const atEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 60;
  draw();
  if (atEnd || moved) list.scrollTop = list.scrollHeight;
}

/** Where messages are listed; new ones are read out. */
export const createList = (label: string) => {
  const list = el("div", {
    class: "messages",
    role: "log",
    "aria-live": "polite",
    "aria-label": label,
    tabindex: 0,
  });
  // Pictures arrive late and make the list longer.
  list.addEventListener(
    "load",
    () => keepAtEnd(list, list.scrollHeight - list.scrollTop - list.clientHeight < 400, () => {}),
    true,
  );
  return list;
};

/** Why this person can't write in the channel. */
export function refusalIn(seen: Seen, channel: SeenChannel): { refusal?: string } {
  if (channel.archived) return { refusal: "This channel is archived." };
  if (!channel.member)
    return { refusal: `${seen.me.realName} isn't in this channel and can't write here.` };
  return {};
}
