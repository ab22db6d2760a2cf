import type { SeenMessage } from "../../slack/seen.ts";
import { el } from "./dom.ts";
import { icon } from "./icons.ts";
import { openMenu } from "./menu.ts";
import type { MessageSpec } from "./message.ts";

/** What can be done with a message: shown when the pointer or the focus is on it. */
export function drawTools(
  message: SeenMessage,
  { seen, do: act, openThread }: MessageSpec,
): HTMLElement {
  const shortcuts = seen.shortcuts.filter((shortcut) => shortcut.type === "message");
  const more: HTMLElement = el(
    "button",
    {
      type: "button",
      class: "icon-button",
      "aria-label": "More about this message",
      title: "More",
      "aria-haspopup": "menu",
      onclick: () =>
        openMenu(more, "Message", [
          ...(openThread ? [{ label: "Reply in thread", run: () => openThread(message.ts) }] : []),
          ...shortcuts.map((shortcut) => ({
            label: shortcut.name,
            hint: seen.bot.name,
            run: () =>
              act("picksMessageShortcut", { shortcut: shortcut.callbackId, ts: message.ts }),
          })),
          { label: "React with 👀", run: () => act("reacts", { ts: message.ts, emoji: "eyes" }) },
          ...(message.author.id === seen.me.id
            ? [{ label: "Delete message", run: () => act("deletesMessage", { ts: message.ts }) }]
            : []),
        ]),
    },
    icon("more"),
  );
  const reply = openThread
    ? el(
        "button",
        {
          type: "button",
          class: "icon-button",
          "aria-label": "Reply in thread",
          title: "Reply in thread",
          onclick: () => openThread(message.ts),
        },
        icon("reply"),
      )
    : null;
  return el("div", { class: "tools" }, reply, more);
}
