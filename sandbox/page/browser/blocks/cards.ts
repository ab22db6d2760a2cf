import { type Fields, fieldsOf, isFields, listOf, textOf, wordsOf } from "../../../slack/fields.ts";
import { el } from "../dom/dom.ts";
import { drawElement } from "../elements/elements.ts";
import { drawImage } from "../elements/images.ts";
import type { Surface } from "../elements/surface.ts";
import { drawText } from "../text/draw-text.ts";
import { drawRichText } from "../text/rich-text.ts";

/** A card: a picture, a title, a few words and buttons. */
export function drawCard(block: Fields, surface: Surface): HTMLElement {
  const text = (key: string, style: string) =>
    isFields(block[key])
      ? el("div", { class: `text ${style}` }, drawText(block[key], surface.seen))
      : null;
  return el(
    "article",
    {},
    isFields(block["hero_image"])
      ? el("div", { class: "card-hero" }, drawImage(block["hero_image"], surface, "full"))
      : null,
    el(
      "div",
      { class: "card-head" },
      isFields(block["icon"]) ? drawImage(block["icon"], surface, "thumb") : null,
      el("div", {}, text("title", "card-title"), text("subtitle", "card-subtitle")),
    ),
    text("body", "card-body"),
    el(
      "div",
      { class: "buttons" },
      listOf(block["actions"]).map((button) => drawElement(button, block, surface)),
    ),
  );
}

/** A titled box around other blocks, which may fold. */
export function drawContainer(
  block: Fields,
  surface: Surface,
  drawBlocks: (blocks: readonly Fields[], surface: Surface) => HTMLElement[],
): HTMLElement {
  const title = isFields(block["rich_text_title"])
    ? drawRichText(block["rich_text_title"], surface.seen)
    : el("b", {}, wordsOf(block["title"]));
  const subtitle = isFields(block["subtitle"])
    ? el("div", { class: "text card-subtitle" }, drawText(block["subtitle"], surface.seen))
    : null;
  const inner = drawBlocks(listOf(block["child_blocks"]), surface);
  if (block["is_collapsible"] !== true) return el("section", {}, title, subtitle, inner);
  return el(
    "details",
    { open: block["default_collapsed"] !== true },
    el("summary", {}, title, subtitle),
    inner,
  );
}

const states: Record<string, string> = {
  pending: "○",
  in_progress: "◐",
  complete: "●",
  error: "✕",
};

/** One step of a plan. */
export function drawTask(task: Fields, surface: Surface): HTMLElement {
  const status = textOf(task["status"]);
  const known = Object.hasOwn(states, status) ? status : "pending";
  return el(
    "div",
    { class: `task task-${known}` },
    el("span", { "aria-hidden": "true" }, states[known] ?? "○"),
    el(
      "div",
      {},
      textOf(task["title"]),
      el("small", {}, known.replace("_", " ")),
      isFields(task["details"]) ? drawRichText(fieldsOf(task["details"]), surface.seen) : null,
      isFields(task["output"]) ? drawRichText(fieldsOf(task["output"]), surface.seen) : null,
    ),
  );
}
