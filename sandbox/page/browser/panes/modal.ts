import { textOf } from "../../../slack/fields.ts";
import type { Seen, SeenView } from "../../../slack/seen.ts";
import { drawBlock } from "../blocks/blocks.ts";
import { drawKeyed, el, newId, icon } from "../dom/dom.ts";
import { draftOf, forgetDrafts } from "../elements/text-inputs.ts";
import type { Do, Surface } from "../elements/surface.ts";

export interface Modals {
  update(seen: Seen): void;
}

/** The open modal: the view on top of the stack, in a dialog that keeps the focus. */
export function createModals(act: Do, settled: () => Promise<unknown>): Modals {
  let top: SeenView | undefined;
  let busy = false;
  let opener: Element | null = null;
  const titleId = newId();
  const title = el("h2", { id: titleId });
  const back = el(
    "button",
    {
      type: "button",
      class: "icon-button",
      "aria-label": "Back",
      onclick: () => act("closes", {}),
    },
    icon("back"),
  );
  const cross = el(
    "button",
    {
      type: "button",
      class: "icon-button cross",
      "aria-label": "Close",
      onclick: () => act("closes", { all: true }),
    },
    icon("close"),
  );
  const body = el("div", { class: "modal-body" });
  const close = el("button", { type: "button", class: "button", onclick: () => act("closes", {}) });
  const submit = el("button", { type: "submit", class: "button primary" });
  const form = el(
    "form",
    { novalidate: true, onsubmit: (event: Event) => sent(event) },
    el("header", {}, back, title, cross),
    body,
    el("footer", {}, close, submit),
  );
  const dialog = el(
    "dialog",
    {
      class: "modal",
      "aria-labelledby": titleId,
      oncancel: (event: Event) => escaped(event),
      onclose: () => top && act("closes", {}),
    },
    form,
  );
  document.body.append(dialog);

  const escaped = (event: Event) => {
    event.preventDefault();
    if (top) void act("closes", {});
  };
  // Browsers ask only once before they close a dialog by themselves; it closes when the workspace says so.
  dialog.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !event.defaultPrevented) escaped(event);
  });
  const sent = async (event: Event) => {
    event.preventDefault();
    if (!top || busy || top.submit === "") return;
    busy = true;
    submit.setAttribute("aria-busy", "true");
    try {
      // What was chosen a moment ago is part of it.
      await settled();
      await act("submits", { values: typedInto(top) });
    } finally {
      busy = false;
      submit.removeAttribute("aria-busy");
    }
  };
  const show = (view: SeenView, seen: Seen) => {
    const fresh = view.id !== top?.id;
    const before = top?.errors ?? {};
    const newlyWrong = Object.keys(view.errors).some((id) => view.errors[id] !== before[id]);
    top = view;
    title.textContent = view.title;
    close.textContent = view.close || "Close";
    submit.textContent = view.submit;
    submit.hidden = view.submit === "";
    back.hidden = seen.modals.length < 2;
    const surface: Surface = {
      seen,
      where: "modal",
      id: view.id,
      state: view.state,
      errors: view.errors,
      do: act,
    };
    drawKeyed(
      body,
      view.blocks.map((block, index) => {
        const id = textOf(block.block_id) || String(index);
        return {
          key: `${view.id} ${id}`,
          signature: JSON.stringify([block, view.errors[id], view.state[id]]),
          draw: () => drawBlock(block, surface),
        };
      }),
    );
    if (!dialog.open) {
      opener = document.activeElement;
      dialog.showModal();
    }
    if (newlyWrong) focusFirstError(body);
    // The form may come a moment after the dialog
    else if (fresh || document.activeElement === cross) focusFirst(body, cross);
  };
  const hide = () => {
    top = undefined;
    if (!dialog.open) return;
    dialog.close();
    body.replaceChildren();
    if (opener instanceof HTMLElement && opener.isConnected) opener.focus();
  };
  return {
    update: (seen) => {
      const view = seen.modals.at(-1);
      const open = new Set(seen.modals.map(({ id }) => id));
      if (top && !open.has(top.id)) forgetDrafts(top.id);
      if (view) show(view, seen);
      else hide();
    },
  };
}

/** Words typed into inputs; everything else was told when it was chosen. */
function typedInto(view: SeenView): Record<string, string> {
  const values: Record<string, string> = {};
  for (const block of view.blocks) {
    const id = textOf(block.block_id);
    const draft = block.type === "input" ? draftOf(view.id, id) : undefined;
    if (draft !== undefined) values[id] = draft;
  }
  return values;
}

/** The first that is still empty: what is typed must not replace what was chosen already. */
function focusFirst(body: HTMLElement, otherwise: HTMLElement): void {
  const fields = body.querySelectorAll<HTMLInputElement>(
    "[data-control]:not(div), [data-control] input",
  );
  const first =
    body.querySelector<HTMLElement>("[autofocus]") ??
    [...fields].find(({ value }) => value === "") ??
    fields[0] ??
    otherwise;
  first.focus();
}

function focusFirstError(body: HTMLElement): void {
  body.querySelector<HTMLElement>("[aria-invalid=true]")?.focus();
}
