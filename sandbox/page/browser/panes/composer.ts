import type { Seen } from "../../../slack/seen.ts";
import { el, icon } from "../dom/dom.ts";
import { openMenu } from "../dom/menu.ts";
import type { Do } from "../elements/surface.ts";
import { createHints } from "./hints.ts";

export interface Composer {
  node: HTMLElement;
  /** Shows who writes where. Words not sent yet are kept apart by `key`. */
  update(spec: {
    key: string;
    label: string;
    channelId: string;
    threadTs?: string;
    refusal?: string;
    seen: Seen;
  }): void;
  focus(): void;
  /** Puts words there, to be sent by the person. */
  write(text: string): void;
}

/** What was sent, newest last, by person: ↑ brings it back. */
const history = new Map<string, string[]>();

/** Where a person writes: Enter sends, Shift+Enter makes a new line, ↑ brings back what was sent before. */
export function createComposer(act: Do, onSend: () => void): Composer {
  let spec: Parameters<Composer["update"]>[0] | undefined;
  let back = 0;
  const unsent = new Map<string, string>();
  const input = el("textarea", {
    rows: 1,
    class: "composer-input",
    autocomplete: "off",
    spellcheck: "false",
    "data-focus": "composer",
  });
  const hints = createHints(input);
  const send = el(
    "button",
    {
      type: "button",
      class: "send",
      "aria-label": "Send",
      title: "Send (Enter)",
      onclick: () => submit(),
    },
    el("span", {}, "Send"),
    icon("send"),
  );
  const shortcuts = el(
    "button",
    {
      type: "button",
      class: "icon-button",
      "aria-label": "Shortcuts",
      title: "Shortcuts",
      "aria-haspopup": "menu",
      onclick: () => showShortcuts(),
    },
    icon("bolt"),
  );
  const refusal = el("p", { class: "composer-refusal" });
  /** What to do with words that the person didn't write. */
  const hint = el("p", { class: "composer-hint", role: "status" });
  const box = el("div", { class: "composer-box" }, shortcuts, input, send);
  const node = el("div", { class: "composer" }, hints.node, box, hint, refusal);

  const showShortcuts = () => {
    const offered = spec?.seen.shortcuts.filter((shortcut) => shortcut.type === "global") ?? [];
    openMenu(
      shortcuts,
      "Shortcuts",
      offered.map((one) => ({
        label: one.name,
        hint: spec?.seen.bot.name ?? "",
        run: () => act("picksShortcut", { shortcut: one.callbackId, channel: spec?.channelId }),
      })),
    );
  };
  const resize = () => {
    input.style.setProperty("height", "auto");
    // Hidden, it has no height to go by
    if (input.scrollHeight > 0)
      input.style.setProperty("height", `${Math.min(input.scrollHeight, 200)}px`);
    if (input.value === "") hint.textContent = "";
    send.disabled = input.value.trim() === "";
    if (spec) unsent.set(spec.key, input.value);
  };
  const put = (text: string) => {
    input.value = text;
    resize();
    input.setSelectionRange(text.length, text.length);
  };
  const submit = async () => {
    const text = input.value.trim();
    if (text === "" || !spec) return;
    const { key, channelId: channel, threadTs, seen } = spec;
    const sent = history.get(seen.me.id) ?? [];
    history.set(seen.me.id, [...sent.filter((old) => old !== text), text]);
    back = 0;
    put("");
    hints.update(seen);
    onSend();
    const outcome = await act("types", {
      channel,
      text,
      ...(threadTs === undefined ? {} : { threadTs }),
    });
    // It was refused: the words come back, unless new ones are being written.
    const refused =
      outcome === undefined ||
      (outcome.error !== undefined && !outcome.acked && outcome.deliveryId === undefined);
    if (refused && spec?.key === key && input.value === "") put(text);
  };
  const recall = (by: number) => {
    const sent = history.get(spec?.seen.me.id ?? "") ?? [];
    back = Math.max(0, Math.min(sent.length, back + by));
    put(sent.at(-back) ?? "");
    if (back === 0) put("");
  };
  input.addEventListener("input", () => {
    back = 0;
    resize();
    if (spec) hints.update(spec.seen);
  });
  input.addEventListener("blur", () => hints.close());
  input.addEventListener("keydown", (event) => {
    if (hints.takes(event)) {
      resize();
      if (spec) hints.update(spec.seen);
    } else if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      void submit();
    } else if (event.key === "ArrowUp" && (input.value === "" || back > 0)) {
      event.preventDefault();
      recall(1);
    } else if (event.key === "ArrowDown" && back > 0) {
      event.preventDefault();
      recall(-1);
    }
  });
  return {
    node,
    update: (next) => {
      const moved = spec?.key !== next.key;
      spec = next;
      input.setAttribute("aria-label", next.label);
      input.placeholder = next.label;
      box.hidden = next.refusal !== undefined;
      refusal.hidden = next.refusal === undefined;
      refusal.textContent = next.refusal ?? "";
      if (moved) {
        put(unsent.get(next.key) ?? "");
        hint.textContent = "";
      }
    },
    focus: () => input.focus(),
    write: (text) => {
      put(text);
      const name = spec?.seen.me.realName.split(" ")[0] ?? "";
      hint.textContent = `Press Enter or Send to run it as ${name}.`;
      input.focus();
    },
  };
}
