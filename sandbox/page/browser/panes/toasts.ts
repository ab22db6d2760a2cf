import type { Seen } from "../../../slack/seen.ts";
import { el, icon } from "../dom/dom.ts";

export interface Toasts {
  update(seen: Seen): void;
  /** Says something of the page's own. */
  say(text: string): void;
}

const lifeMs = 10_000;

/** What Slack's words for a failure mean here. */
const meanings: Record<string, string> = {
  operation_timeout: "The app did not answer within 3 seconds.",
  dispatch_failed: "The app isn't running, or rejected it.",
};

/**
 * Lines of Slack's own: what failed, said for ten seconds, or until they are sent away. They stand in a line of their
 * own over the place to write, never over what is said.
 */
export function createToasts(): Toasts {
  const box = el("div", { class: "toasts", role: "status" });
  const known = new Set<string>();
  const add = (text: string, error = "") => {
    const drop = () => {
      clearTimeout(timer);
      toast.remove();
    };
    const toast = el(
      "div",
      { class: "toast" },
      el(
        "span",
        {},
        text,
        Object.hasOwn(meanings, error) ? el("small", {}, meanings[error]) : null,
      ),
      el(
        "button",
        { type: "button", class: "icon-button", "aria-label": "Dismiss", onclick: drop },
        icon("close"),
      ),
    );
    const timer = setTimeout(drop, lifeMs);
    box.append(toast);
    settle();
  };
  const settle = () => {
    const [host, before] = placeOfToasts();
    if (box.parentElement !== host || box.nextElementSibling !== before)
      host.insertBefore(box, before);
  };
  return {
    say: (text) => add(text),
    update: (seen) => {
      settle();
      for (const toast of seen.toasts) {
        const id = `${seen.me.id} ${toast.id}`;
        if (known.has(id)) continue;
        known.add(id);
        if (seen.at - toast.at < lifeMs) add(toast.text, toast.error);
      }
    },
  };
}

/** Where the eyes are: the dialog on top, else the pane on top. */
function placeOfToasts(): [Element, Element | null] {
  const dialog = [...document.querySelectorAll("dialog[open] form")].at(-1);
  if (dialog) return [dialog, dialog.querySelector("footer, .buttons:last-child")];
  const panes = matchMedia("(max-width: 820px)").matches ? ".thread, .weather, main" : "main";
  const pane = [...document.querySelectorAll(panes)]
    .filter((one) => !one.matches("[hidden]"))
    .at(-1);
  return [pane ?? document.body, pane?.querySelector(":scope > .composer") ?? null];
}
