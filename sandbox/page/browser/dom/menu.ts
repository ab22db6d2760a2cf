import { el } from "./dom.ts";

export interface MenuItem {
  label: string;
  hint?: string;
  picture?: Node;
  checked?: boolean;
  run: () => unknown;
}

/** Opens a menu under a button: arrow keys move, Enter chooses, Escape or a click elsewhere closes. */
export function openMenu(anchor: HTMLElement, label: string, items: readonly MenuItem[]): void {
  const menu = el(
    "div",
    { class: "menu", role: "menu", "aria-label": label, popover: "manual" },
    items.length === 0 ? el("p", { class: "menu-empty" }, "Nothing here yet.") : null,
    items.map((item) => drawItem(item, () => close())),
  );
  const outside = (event: Event) => {
    if (
      event.target instanceof Node &&
      !menu.contains(event.target) &&
      !anchor.contains(event.target)
    )
      close(false);
  };
  const close = (refocus = true) => {
    document.removeEventListener("pointerdown", outside, true);
    menu.remove();
    anchor.setAttribute("aria-expanded", "false");
    if (refocus && anchor.isConnected) anchor.focus();
  };
  menu.addEventListener("keydown", (event) => {
    if (event.key === "Escape" || event.key === "Tab") {
      event.preventDefault();
      event.stopPropagation();
      close();
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      move(menu, event.key === "ArrowDown" ? 1 : -1);
    }
  });
  anchor.setAttribute("aria-expanded", "true");
  // Beside the button, so that it belongs to the dialog the button is in.
  anchor.after(menu);
  menu.showPopover();
  placeUnder(menu, anchor);
  document.addEventListener("pointerdown", outside, true);
  const first =
    menu.querySelector<HTMLElement>("[aria-checked=true]") ??
    menu.querySelector<HTMLElement>("button");
  first?.focus();
}

function drawItem(item: MenuItem, close: () => void): HTMLElement {
  return el(
    "button",
    {
      type: "button",
      role: item.checked === undefined ? "menuitem" : "menuitemradio",
      "aria-checked": item.checked === undefined ? undefined : String(item.checked),
      tabindex: -1,
      onclick: () => {
        close();
        return item.run();
      },
    },
    item.picture,
    el(
      "span",
      { class: "menu-label" },
      item.label,
      item.hint === undefined ? null : el("small", {}, item.hint),
    ),
  );
}

function move(menu: HTMLElement, by: number): void {
  const all = [...menu.querySelectorAll<HTMLElement>("button")];
  const now = all.findIndex((item) => item === document.activeElement);
  all[(now + by + all.length) % all.length]?.focus();
}

/** Puts a popover under its anchor, or above where there is more room, and never outside the window. */
export function placeUnder(popover: HTMLElement, anchor: HTMLElement): void {
  const room = 8;
  const at = anchor.getBoundingClientRect();
  popover.style.setProperty("min-width", `${at.width}px`);
  const below = innerHeight - at.bottom - room;
  const above = at.top - room;
  const upwards = below < Math.min(popover.scrollHeight, 220) && above > below;
  popover.style.setProperty(
    "max-height",
    `${Math.max(120, Math.min(360, upwards ? above : below))}px`,
  );
  const { width, height } = popover.getBoundingClientRect();
  popover.style.setProperty(
    "left",
    `${Math.max(room, Math.min(at.left, innerWidth - width - room))}px`,
  );
  popover.style.setProperty("top", `${upwards ? at.top - height - 4 : at.bottom + 4}px`);
}
