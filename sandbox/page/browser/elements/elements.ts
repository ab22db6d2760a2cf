import { type Fields, fieldsOf, listOf, optionOf, textOf, wordsOf } from "../../../slack/fields.ts";
import { el, link, safeUrl, icon } from "../dom/dom.ts";
import { openMenu } from "../dom/menu.ts";
import { drawText } from "../text/draw-text.ts";
import { drawChoices } from "./choices.ts";
import { drawImage } from "./images.ts";
import { drawPicker } from "./pickers.ts";
import { drawSelect } from "./selects.ts";
import { choose, type Control, focusKeyOf, press, type Surface } from "./surface.ts";
import { drawTextInput } from "./text-inputs.ts";

/** An element of Block Kit: what can be pressed, chosen or filled in, and small pictures and texts between. */
export function drawElement(element: Fields, block: Fields, surface: Surface): Node {
  const control: Control = { element, block, surface };
  const type = textOf(element["type"]);
  if (type === "button" || type === "workflow_button") return drawButton(control);
  if (type === "overflow") return drawOverflow(control);
  if (type === "icon_button") return drawIconButton(control);
  if (type === "feedback_buttons") return drawFeedback(control);
  if (type === "image") return drawImage(element, surface, "thumb");
  if (type === "plain_text" || type === "mrkdwn")
    return el("span", { class: "text" }, drawText(element, surface.seen));
  if (type === "checkboxes" || type === "radio_buttons") return drawChoices(control);
  if (/^(?:date|time|datetime)picker$/.test(type)) return drawPicker(control);
  if (type.endsWith("_select")) return drawSelect(control);
  if (type.endsWith("_input")) return drawTextInput(control);
  if (type === "url")
    return link(textOf(element["url"]), textOf(element["text"]) || textOf(element["url"]));
  return el(
    "span",
    { class: "unknown" },
    `(${type || "an element without a type"} isn't drawn here)`,
  );
}

function drawButton(control: Control): HTMLElement {
  const { element } = control;
  const style = textOf(element["style"]);
  const button: HTMLElement = el(
    "button",
    {
      type: "button",
      class: style === "primary" || style === "danger" ? `button ${style}` : "button",
      "data-focus": focusKeyOf(control),
      "aria-label": textOf(element["accessibility_label"]) || undefined,
      onclick: () => pressed(control, button),
    },
    wordsOf(element["text"]),
    element["url"] === undefined ? null : icon("open"),
  );
  return button;
}

/** A button with an address opens it, and tells the app as well. */
async function pressed(control: Control, button: HTMLElement): Promise<void> {
  const address = safeUrl(textOf(control.element["url"]));
  const outcome = await press(control, button);
  if (outcome && address !== undefined) window.open(address, "_blank", "noopener,noreferrer");
}

function drawIconButton(control: Control): HTMLElement {
  const label = textOf(control.element["accessibility_label"]) || wordsOf(control.element["text"]);
  const button: HTMLElement = el(
    "button",
    {
      type: "button",
      class: "icon-button",
      "aria-label": label,
      title: label,
      onclick: () => press(control, button),
    },
    icon("trash"),
  );
  return button;
}

function drawFeedback(control: Control): HTMLElement {
  const answer = (key: string) => {
    const side = fieldsOf(control.element[key]);
    const label = textOf(side["accessibility_label"]) || wordsOf(side["text"]);
    const button: HTMLElement = el(
      "button",
      {
        type: "button",
        class: "icon-button",
        title: label,
        "aria-label": label,
        onclick: () => press(control, button, wordsOf(side["text"])),
      },
      key === "positive_button" ? "👍" : "👎",
    );
    return button;
  };
  return el("span", { class: "buttons" }, answer("positive_button"), answer("negative_button"));
}

function drawOverflow(control: Control): HTMLElement {
  const options = listOf(control.element["options"]).map(optionOf);
  const addresses = Array.isArray(control.element["options"])
    ? control.element["options"].map((option) => textOf(fieldsOf(option)["url"]))
    : [];
  const button: HTMLElement = el(
    "button",
    {
      type: "button",
      class: "icon-button",
      "aria-label": "More actions",
      "aria-haspopup": "menu",
      "data-focus": focusKeyOf(control),
      onclick: () =>
        openMenu(
          button,
          "More actions",
          options.map((option, index) => ({
            label: option.text.text,
            ...(option.description ? { hint: option.description.text } : {}),
            run: async () => {
              const address = safeUrl(addresses[index] ?? "");
              if ((await choose(control, option.value)) && address !== undefined)
                window.open(address, "_blank", "noopener,noreferrer");
            },
          })),
        ),
    },
    icon("more"),
  );
  return button;
}
