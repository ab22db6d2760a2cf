import { type Fields, fieldsOf, isFields, textOf, wordsOf } from "../../../slack/fields.ts";
import { el, newId } from "../dom/dom.ts";
import { drawElement } from "../elements/elements.ts";
import type { Surface } from "../elements/surface.ts";

/** An input block: label, control, hint, and what is wrong with what was filled in. */
export function drawInput(block: Fields, surface: Surface): HTMLElement {
  const error = surface.errors[textOf(block["block_id"])];
  const hint = isFields(block["hint"]) ? wordsOf(block["hint"]) : "";
  const [labelId, hintId, errorId] = [newId(), newId(), newId()];
  const element = fieldsOf(block["element"]);
  const drawn = drawElement(element, block, surface);
  const control = controlIn(drawn);
  if (control) {
    control.id ||= newId();
    control.setAttribute("aria-labelledby", labelId);
    const described = [hint === "" ? "" : hintId, error === undefined ? "" : errorId].filter(
      (id) => id !== "",
    );
    if (described.length > 0) control.setAttribute("aria-describedby", described.join(" "));
    if (block["optional"] !== true) control.setAttribute("aria-required", "true");
    if (error !== undefined) control.setAttribute("aria-invalid", "true");
  }
  return el(
    "div",
    { class: error === undefined ? undefined : "invalid" },
    el(
      "label",
      { for: control?.id },
      el("span", { id: labelId }, wordsOf(block["label"])),
      block["optional"] === true ? el("span", { class: "optional" }, " (optional)") : null,
    ),
    drawn,
    hint === "" ? null : el("p", { id: hintId, class: "hint" }, hint),
    error === undefined ? null : el("p", { id: errorId, class: "error", role: "alert" }, error),
  );
}

/** The node that takes the label: the field itself, or the group around radio buttons. */
function controlIn(node: Node): HTMLElement | undefined {
  if (!(node instanceof HTMLElement)) return undefined;
  if (node.dataset["control"] !== undefined) return node;
  return node.querySelector<HTMLElement>("[data-control]") ?? undefined;
}
