import type { Seen, SeenChannel } from "../../slack/seen.ts";
import { createComposer } from "./composer.ts";
import { drawKeyed, el } from "./dom.ts";
import { icon } from "./icons.ts";
import { createList, keepAtEnd, type Pane, refusalIn } from "./message-list.ts";
import { listMessages } from "./messages.ts";
import type { Do } from "./surface.ts";

/** A thread beside its channel. */
export function createThreadPane(
  act: Do,
  close: () => void,
): Pane<[Seen, SeenChannel, string | undefined]> & { focus(): void } {
  const list = createList("Thread");
  const composer = createComposer(act);
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
    list,
    composer.node,
  );
  node.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !event.defaultPrevented) close();
  });
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
      keepAtEnd(list, moved, () =>
        drawKeyed(list, listMessages(messages, { seen, channel, do: act })),
      );
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
