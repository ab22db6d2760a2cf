import { el, newId, icon } from "../dom/dom.ts";
import { placeUnder } from "../dom/menu.ts";

export interface ComboOption {
  value: string;
  label: string;
  hint?: string;
  group?: string;
}

export interface ComboSpec {
  several: boolean;
  focusKey: string;
  placeholder: string;
  chosen: ComboOption[];
  /** What can be chosen, when it is all known. */
  offered?: ComboOption[];
  /** Else: asks for what fits the words typed so far; undefined when there was no answer. */
  load?: (typed: string) => Promise<ComboOption[] | undefined>;
  leastTyped?: number;
  /** No more can be chosen. */
  full: (count: number) => boolean;
  /** False takes the choice back. */
  choose: (values: string[]) => Promise<boolean>;
}

/**
 * A text field with a list under it: type to narrow, arrows and Enter to choose, Escape to leave it as it was.
 * https://www.w3.org/WAI/ARIA/apg/patterns/combobox/
 */
export function createCombobox(spec: ComboSpec): HTMLElement {
  let chosen = spec.chosen;
  let shown: ComboOption[] = [];
  let active = -1;
  let asked = 0;
  const listId = newId();
  const input = el("input", {
    type: "text",
    role: "combobox",
    class: "combo-input",
    autocomplete: "off",
    "aria-expanded": "false",
    "aria-controls": listId,
    "aria-autocomplete": "list",
    "data-control": true,
    "data-focus": spec.focusKey,
  });
  const list = el("div", {
    id: listId,
    role: "listbox",
    class: "menu combo-list",
    popover: "manual",
    "aria-multiselectable": spec.several,
  });
  const chips = el("span", { class: "chips" });
  const box = el("span", { class: "combo" }, chips, input, icon("down"), list);

  const isOpen = () => list.matches(":popover-open");
  const showChosen = () => {
    input.value = spec.several ? "" : (chosen[0]?.label ?? "");
    input.placeholder = spec.several && chosen.length > 0 ? "" : spec.placeholder;
    if (spec.several)
      chips.replaceChildren(...chosen.map((option) => drawChip(option, () => void take(option))));
  };
  const close = () => {
    if (isOpen()) list.hidePopover();
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
    active = -1;
    asked += 1;
    showChosen();
  };
  const say = (words: string) =>
    list.replaceChildren(el("p", { class: "menu-empty", role: "status" }, words));
  const show = (options: ComboOption[]) => {
    shown = options;
    if (options.length === 0) return say("No matches.");
    list.replaceChildren(...drawOptions(options, chosen, (option) => void take(option)));
    mark(options.length > 0 && input.value !== (chosen[0]?.label ?? "") ? 0 : -1);
  };
  const open = async () => {
    if (!isOpen()) list.showPopover();
    input.setAttribute("aria-expanded", "true");
    const typed =
      spec.several || input.value !== (chosen[0]?.label ?? "") ? input.value.trim() : "";
    if (spec.offered) show(narrowed(spec.offered, typed));
    else await load(typed);
    if (isOpen()) placeUnder(list, box);
  };
  const load = async (typed: string) => {
    const least = spec.leastTyped ?? 0;
    shown = [];
    if (typed.length < least)
      return say(`Type at least ${least} ${least === 1 ? "character" : "characters"}.`);
    asked += 1;
    const mine = asked;
    say("Looking…");
    const options = await spec.load?.(typed);
    // An answer to what was typed before last is of no interest any more.
    if (mine !== asked || !isOpen()) return undefined;
    return options ? show(options) : say("The app did not answer in time.");
  };
  const mark = (index: number) => {
    active = index;
    const options = [...list.querySelectorAll<HTMLElement>("[role=option]")];
    for (const [at, option] of options.entries()) option.classList.toggle("active", at === index);
    const now = options[index];
    if (now) {
      input.setAttribute("aria-activedescendant", now.id);
      now.scrollIntoView({ block: "nearest" });
    } else input.removeAttribute("aria-activedescendant");
  };
  const take = async (option: ComboOption) => {
    const before = chosen;
    const had = chosen.some((known) => known.value === option.value);
    if (!spec.several) chosen = [option];
    else if (had) chosen = chosen.filter((known) => known.value !== option.value);
    else if (!spec.full(chosen.length)) chosen = [...chosen, option];
    close();
    if (await spec.choose(chosen.map((known) => known.value))) return;
    chosen = before;
    showChosen();
  };

  input.addEventListener("input", () => void open());
  input.addEventListener("click", () => void (isOpen() || open()));
  input.addEventListener("focus", () => input.select());
  input.addEventListener("blur", () => close());
  input.addEventListener("keydown", (event) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step !== 0) {
      event.preventDefault();
      if (!isOpen()) void open();
      else if (shown.length > 0) mark((active + step + shown.length) % shown.length);
    } else if (event.key === "Enter" && isOpen()) {
      event.preventDefault();
      const option = shown[active];
      if (option) void take(option);
    } else if (event.key === "Escape" && isOpen()) {
      event.preventDefault();
      event.stopPropagation();
      close();
    } else if (event.key === "Backspace" && spec.several && input.value === "") {
      const last = chosen.at(-1);
      if (last) void take(last);
    }
  });
  // The list must not take the focus away from the field.
  list.addEventListener("pointerdown", (event) => event.preventDefault());
  showChosen();
  return box;
}

function narrowed(options: ComboOption[], typed: string): ComboOption[] {
  const words = typed.toLowerCase();
  return options.filter((option) =>
    `${option.label} ${option.hint ?? ""}`.toLowerCase().includes(words),
  );
}

function drawOptions(
  options: ComboOption[],
  chosen: ComboOption[],
  take: (option: ComboOption) => void,
): HTMLElement[] {
  let group: string | undefined;
  return options.flatMap((option) => {
    const heading =
      option.group !== undefined && option.group !== group
        ? [el("p", { class: "menu-group" }, option.group)]
        : [];
    group = option.group;
    const selected = chosen.some((known) => known.value === option.value);
    const hint = option.hint === undefined ? null : el("small", {}, option.hint);
    const row = el(
      "div",
      {
        role: "option",
        id: newId(),
        "aria-selected": String(selected),
        onclick: () => take(option),
      },
      el("span", { class: "menu-label" }, option.label, hint),
    );
    return [...heading, row];
  });
}

function drawChip(option: ComboOption, drop: () => void): HTMLElement {
  return el(
    "span",
    { class: "chip" },
    option.label,
    el(
      "button",
      { type: "button", "aria-label": `Remove ${option.label}`, onclick: drop },
      icon("close"),
    ),
  );
}
