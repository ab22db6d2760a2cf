import type { Seen, SeenChannel } from "../../../slack/seen.ts";
import { el, icon } from "../dom/dom.ts";
import type { Do } from "../elements/surface.ts";
import { createComposer } from "./composer.ts";
import { createList, listMessages, type Pane, refusalIn } from "./message-list.ts";

/** A thread beside its channel. */
export function createThreadPane(
  act: Do,
  close: () => void,
): Pane<[Seen, SeenChannel, string | undefined]> & { focus(): void } {
  const list = createList("Thread");
  const composer = createComposer(act, () => list.toEnd());
  const about = el("p", { class: "about" });
  const cross = el(
    "button",
    { type: "button", class: "icon-button cross", "aria-label": "Close thread", onclick: close },
    icon("close"),
  );
  const node = el(
    "aside",
    { class: "thread", "aria-label": "Thread", hidden: true },
    el("header", { class: "bar" }, el("div", {}, el("h2", {}, "Thread"), about), cross),
    list.node,
    composer.node,
  );
  let shown = "";
  return {
    node,
    focus: () => composer.focus(),
    update: (seen, channel, ts) => {
      const messages =
        ts === undefined
          ? []
          : channel.messages.filter((message) => message.ts === ts || message.threadTs === ts);
      node.hidden = messages.length === 0;
      const key = `${seen.me.id} ${channel.id} ${ts ?? ""}`;
      const moved = shown !== key;
      shown = key;
      if (node.hidden || ts === undefined) return;
      about.textContent = `#${channel.name}`;
      list.show(listMessages(messages, { seen, channel, do: act }), messages, seen.me.id, moved);
      composer.update({
        key,
        label: "Reply in thread",
        channelId: channel.id,
        threadTs: ts,
        seen,
        ...refusalIn(seen, channel),
      });
    },
  };
}
