import { type Fields, isFields, listOf, textOf, wordsOf } from "../../../slack/fields.ts";
import { el, icon } from "../dom/dom.ts";
import { drawElement } from "../elements/elements.ts";
import { drawImage, drawVideo } from "../elements/images.ts";
import type { Surface } from "../elements/surface.ts";
import { drawMarkdown } from "../text/draw-markdown.ts";
import { drawText } from "../text/draw-text.ts";
import { drawRichText } from "../text/rich-text.ts";
import { drawCard, drawContainer, drawTask } from "./cards.ts";
import { drawChart } from "./chart.ts";
import { drawInput } from "./input.ts";
import { drawDataTable, drawTable } from "./tables.ts";

export function drawBlocks(blocks: readonly Fields[], surface: Surface): HTMLElement[] {
  return blocks.map((block) => drawBlock(block, surface));
}

/** Everything of Block Kit (https://docs.slack.dev/reference/block-kit/blocks); an unknown block says that it is one. */
export function drawBlock(block: Fields, surface: Surface): HTMLElement {
  const type = textOf(block["type"]);
  const node = drawByType(type, block, surface);
  node.classList.add("block", `block-${/^[a-z_]+$/.test(type) ? type : "unknown"}`);
  return node;
}

function drawByType(type: string, block: Fields, surface: Surface): HTMLElement {
  switch (type) {
    case "section":
      return drawSection(block, surface);
    case "header":
      // Right below the name of Home; elsewhere below the day or the title of a dialog
      return el(surface.where === "home" ? "h2" : "h3", {}, wordsOf(block["text"]));
    case "context":
    case "actions":
    case "context_actions":
      return el(
        "div",
        {},
        listOf(block["elements"]).map((element) => drawElement(element, block, surface)),
      );
    case "divider":
      return el("hr");
    case "input":
      return drawInput(block, surface);
    case "image":
      return drawPicture(block, surface);
    case "table":
      return drawTable(block, surface.seen);
    case "data_table":
      return drawDataTable(block, surface.seen);
    case "data_visualization":
      return drawChart(block);
    case "rich_text":
      return drawRichText(block, surface.seen);
    case "markdown":
      return drawMarkdown(textOf(block["text"]));
    case "alert":
      return drawAlert(block, surface);
    case "card":
      return drawCard(block, surface);
    case "carousel":
      return el(
        "div",
        { tabindex: 0, role: "group", "aria-label": "Cards" },
        listOf(block["elements"]).map((card) => drawBlock({ ...card, type: "card" }, surface)),
      );
    case "container":
      return drawContainer(block, surface, drawBlocks);
    case "plan":
      return el(
        "div",
        {},
        el("b", {}, wordsOf(block["title"])),
        listOf(block["tasks"]).map((task) => drawTask(task, surface)),
      );
    case "task_card":
      return drawTask(block, surface);
    case "video":
      return drawVideo(block);
    default:
      return el("p", { class: "unknown" }, `(A block of type ${type || "none"} isn't drawn here)`);
  }
}

function drawSection(block: Fields, surface: Surface): HTMLElement {
  const { text, fields, accessory } = block;
  return el(
    "div",
    {},
    el(
      "div",
      { class: "section-body" },
      text === undefined ? null : el("div", { class: "text" }, drawText(text, surface.seen)),
      fields === undefined
        ? null
        : el(
            "div",
            { class: "fields" },
            listOf(fields).map((field) =>
              el("div", { class: "text" }, drawText(field, surface.seen)),
            ),
          ),
    ),
    isFields(accessory)
      ? el("div", { class: "accessory" }, drawElement(accessory, block, surface))
      : null,
  );
}

function drawPicture(block: Fields, surface: Surface): HTMLElement {
  const title = wordsOf(block["title"]);
  return el(
    "figure",
    {},
    title === "" ? null : el("figcaption", {}, title),
    drawImage(block, surface, "full"),
  );
}

const alertIcons: Record<string, string> = { info: "ℹ", warning: "⚠", error: "✕", success: "✓" };

function drawAlert(block: Fields, surface: Surface): HTMLElement {
  const level = textOf(block["level"], "default");
  const known = Object.hasOwn(alertIcons, level) ? level : "default";
  return el(
    "div",
    { class: `alert-${known}`, role: "note" },
    el("span", { class: "alert-icon", "aria-hidden": "true" }, alertIcons[known] ?? icon("bolt")),
    el("div", { class: "text" }, drawText(block["text"], surface.seen)),
  );
}
