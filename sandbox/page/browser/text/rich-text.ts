import { type Fields, fieldsOf, listOf, textOf } from "../../../slack/fields.ts";
import { el, link } from "../dom/dom.ts";
import { drawMention, type Names } from "./draw-text.ts";
import { emojiOf } from "./emoji.ts";
import { dateInWords } from "./time.ts";

/** A rich_text block: nothing in it is parsed, styles stand beside the words. */
export function drawRichText(block: Fields, names: Names): HTMLElement {
  return el(
    "div",
    { class: "rich-text" },
    listOf(block["elements"]).map((part) => drawPart(part, names)),
  );
}

function drawPart(part: Fields, names: Names): Node {
  const inner = () => listOf(part["elements"]).map((run) => drawRun(run, names));
  switch (part["type"]) {
    case "rich_text_list":
      return drawList(part, names);
    case "rich_text_preformatted":
      return el("pre", {}, inner());
    case "rich_text_quote":
      return el("blockquote", {}, inner());
    default:
      return el("span", { class: "words" }, inner());
  }
}

function drawList(part: Fields, names: Names): HTMLElement {
  const ordered = part["style"] === "ordered";
  const indent = Math.min(8, Math.max(0, Number(part["indent"] ?? 0) || 0));
  return el(
    ordered ? "ol" : "ul",
    { class: `indent-${indent}`, start: ordered ? Number(part["offset"] ?? 0) + 1 : undefined },
    listOf(part["elements"]).map((item) => el("li", {}, drawPart(item, names))),
  );
}

function drawRun(run: Fields, names: Names): Node {
  const style = fieldsOf(run["style"]);
  let node: Node = drawBare(run, names);
  if (style["code"] === true) node = el("code", {}, node);
  if (style["bold"] === true) node = el("b", {}, node);
  if (style["italic"] === true) node = el("i", {}, node);
  if (style["strike"] === true) node = el("s", {}, node);
  if (style["underline"] === true) node = el("u", {}, node);
  return node;
}

function drawBare(run: Fields, names: Names): Node {
  const text = textOf(run["text"]);
  switch (run["type"]) {
    case "link":
      return link(textOf(run["url"]), text || textOf(run["url"]));
    case "user":
      return drawMention("person", textOf(run["user_id"]), names);
    case "usergroup":
      return drawMention("group", textOf(run["usergroup_id"]), names);
    case "channel":
      return drawMention("channel", textOf(run["channel_id"]), names);
    case "broadcast":
      return el("span", { class: "mention me" }, `@${textOf(run["range"])}`);
    case "emoji":
      return document.createTextNode(emojiOf(textOf(run["name"])));
    case "date":
      return el(
        "time",
        {},
        dateInWords(Number(run["timestamp"]), textOf(run["format"])) ?? textOf(run["fallback"]),
      );
    case "color":
      return el("code", {}, textOf(run["value"]));
    default:
      return document.createTextNode(text);
  }
}
