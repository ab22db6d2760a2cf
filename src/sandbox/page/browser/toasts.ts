import type { Seen } from "../../slack/seen.ts";
import { el } from "./dom.ts";
import { icon } from "./icons.ts";

export interface Toasts {
  update(seen: Seen): void;
  /** Says something of the page's own. */
  say(text: string): void;
}

const lifeMs = 10_000;

/** What Slack's words for a failure mean here. */
const meanings: Record<string, string> = {
  operation_timeout: "The app did not answer within 3 seconds.",
  dispatch_failed: "The app isn't running, or couldn't take it.",
};

/** Lines of Slack's own: what failed, said for ten seconds, or until they are sent away. */
export function createToasts(): Toasts {
  const box = el("div", { class: "toasts", role: "status", popover: "manual" });
  document.body.append(box);
  const known = new Set<string>();
  const add = (text: string, error = "") => {
    const drop = () => {
      clearTimeout(timer);
      toast.remove();
      if (box.childElementCount === 0 && box.matches(":popover-open")) box.hidePopover();
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
    settle(true);
  };
  /** Toasts lie over everything; while a dialog is open only what is inside it can be read and pressed. */
  const settle = (anew: boolean) => {
    const host =
      [...document.querySelectorAll<HTMLElement>("dialog[open]")].at(-1) ?? document.body;
    if (box.parentElement === host && !anew) return;
    if (box.matches(":popover-open")) box.hidePopover();
    host.append(box);
    if (box.childElementCount > 0) box.showPopover();
  };
  return {
    say: (text) => add(text),
    update: (seen) => {
      settle(false);
      for (const toast of seen.toasts) {
        const id = `${seen.me.id} ${toast.id}`;
        if (known.has(id)) continue;
        known.add(id);
        if (seen.at - toast.at < lifeMs) add(toast.text, toast.error);
      }
    },
  };
}
