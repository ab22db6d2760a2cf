import { el, link } from "../dom/dom.ts";
import { parseMarkdown, type Part, type Span } from "./markdown.ts";

export function drawMarkdown(text: string): HTMLElement {
  return el("div", { class: "markdown" }, parseMarkdown(text).map(drawPart));
}

function drawPart(part: Part): Node {
  switch (part.kind) {
    case "heading":
      return el(part.level <= 2 ? "h3" : "h4", {}, part.inner.map(drawSpan));
    case "quote":
      return el("blockquote", {}, part.inner.map(drawSpan));
    case "list":
      return el(
        part.ordered ? "ol" : "ul",
        {},
        part.items.map((item) => el("li", {}, item.map(drawSpan))),
      );
    case "fence":
      return el("pre", {}, part.text);
    case "rule":
      return el("hr");
    case "table":
      return drawTable(part.rows);
    default:
      return el("p", {}, part.inner.map(drawSpan));
  }
}

function drawTable([head = [], ...rows]: readonly Span[][][]): HTMLElement {
  return el(
    "div",
    { class: "table-box", role: "group", "aria-label": "Table", tabindex: 0 },
    el(
      "table",
      {},
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          head.map((cell) => el("th", { scope: "col" }, cell.map(drawSpan))),
        ),
      ),
      el(
        "tbody",
        {},
        rows.map((row) =>
          el(
            "tr",
            {},
            row.map((cell) => el("td", {}, cell.map(drawSpan))),
          ),
        ),
      ),
    ),
  );
}

const tags = { bold: "b", italic: "i", strike: "s" } as const;

function drawSpan(span: Span): Node {
  if (span.kind === "text") return document.createTextNode(span.text);
  if (span.kind === "code") return el("code", {}, span.text);
  if (span.kind === "link") return link(span.url, span.inner.map(drawSpan));
  return el(tags[span.kind], {}, span.inner.map(drawSpan));
}
