import { listOf, optionOf, textOf } from "../../../slack/fields.ts";
import type { SeenOption } from "../../../slack/seen.ts";
import { el, newId } from "../dom/dom.ts";
import { drawText } from "../text/draw-text.ts";
import { choose, type Control, focusKeyOf, valueOf } from "./surface.ts";

/** Checkboxes and radio buttons. */
export function drawChoices(control: Control): HTMLElement {
  const several = control.element["type"] === "checkboxes";
  const chosen = chosenIn(control, several);
  const name = newId();
  const group = el("div", {
    class: "choices",
    role: several ? "group" : "radiogroup",
    "data-control": true,
  });
  const changed = async () => {
    const values = [...group.querySelectorAll<HTMLInputElement>("input:checked")].map(
      (input) => input.value,
    );
    const done = await choose(control, several ? values : (values[0] ?? null));
    if (!done)
      for (const input of group.querySelectorAll("input")) input.checked = chosen.has(input.value);
  };
  group.append(
    ...listOf(control.element["options"])
      .map(optionOf)
      .map((option) => drawChoice(control, option, several, name, chosen, changed)),
  );
  return group;
}

function drawChoice(
  control: Control,
  option: SeenOption,
  several: boolean,
  name: string,
  chosen: ReadonlySet<string>,
  changed: () => unknown,
): HTMLElement {
  const { seen } = control.surface;
  const input = el("input", {
    type: several ? "checkbox" : "radio",
    name,
    value: option.value,
    checked: chosen.has(option.value),
    "data-focus": `${focusKeyOf(control)}/${option.value}`,
    onchange: changed,
  });
  return el(
    "label",
    { class: "choice" },
    input,
    el(
      "span",
      {},
      drawText(option.text, seen),
      option.description ? el("small", {}, drawText(option.description, seen)) : null,
    ),
  );
}

function chosenIn(control: Control, several: boolean): Set<string> {
  const value = valueOf(control);
  if (value) {
    const options = several
      ? (value.selected_options ?? [])
      : value.selected_option
        ? [value.selected_option]
        : [];
    return new Set(options.map((option) => option.value));
  }
  const { initial_option: one, initial_options: many } = control.element;
  return new Set(
    several ? listOf(many).map((option) => optionOf(option).value) : [textOf(optionOf(one).value)],
  );
}
