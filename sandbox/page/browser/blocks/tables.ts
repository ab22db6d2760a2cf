import { type Fields, fieldsOf, isFields, textOf } from "../../../slack/fields.ts";
import { el } from "../dom/dom.ts";
import type { Names } from "../text/draw-text.ts";
import { drawRichText } from "../text/rich-text.ts";

const rowsOf = (block: Fields): Fields[][] =>
  Array.isArray(block["rows"])
    ? block["rows"].map((row) => (Array.isArray(row) ? row.map(fieldsOf) : []))
    : [];

function drawCell(cell: Fields, names: Names): Node {
  if (cell["type"] === "rich_text") return drawRichText(cell, names);
  return document.createTextNode(textOf(cell["text"]) || textOf(cell["value"]));
}

/** A table block: the first row is its head. */
export function drawTable(block: Fields, names: Names): HTMLElement {
  const [head = [], ...rows] = rowsOf(block);
  const settings = Array.isArray(block["column_settings"])
    ? block["column_settings"].map(fieldsOf)
    : [];
  const classOf = (cell: Fields, column: number) =>
    `${textOf(settings[column]?.["align"]) || (cell["type"] === "raw_number" ? "right" : "left")}${settings[column]?.["is_wrapped"] === true ? " wrapped" : ""}`;
  return scrolling(
    "Table",
    el(
      "table",
      {},
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          head.map((cell, column) =>
            el(
              "th",
              { scope: "col", class: classOf(rows[0]?.[column] ?? cell, column) },
              drawCell(cell, names),
            ),
          ),
        ),
      ),
      el(
        "tbody",
        {},
        rows.map((row) =>
          el(
            "tr",
            {},
            row.map((cell, column) =>
              el("td", { class: classOf(cell, column) }, drawCell(cell, names)),
            ),
          ),
        ),
      ),
    ),
  );
}

/**
 * A table wider than the page is scrolled inside its own box, by keyboard too. It is no landmark: a
 * channel may show the same table many times.
 */
function scrolling(label: string, table: HTMLElement): HTMLElement {
  return el("div", { class: "table-box", role: "group", "aria-label": label, tabindex: 0 }, table);
}

/** A data_table block: pages of rows, sorted by the column whose head is pressed. */
export function drawDataTable(block: Fields, names: Names): HTMLElement {
  const [head = [], ...rows] = rowsOf(block);
  const size = Math.max(1, Number(block["page_size"] ?? 5) || 5);
  const rowHead = Number(block["row_header_column_index"] ?? 0);
  let page = 0;
  let sorted: { column: number; up: boolean } | undefined;
  const box = el("div", { class: "data-table" });
  const draw = () => {
    const ordered = sorted
      ? rows.toSorted(
          (a, b) => (sorted?.up ? 1 : -1) * compare(a[sorted?.column ?? 0], b[sorted?.column ?? 0]),
        )
      : rows;
    const shown = ordered.slice(page * size, (page + 1) * size);
    const sort = (column: number) => {
      sorted = { column, up: sorted?.column === column ? !sorted.up : true };
      page = 0;
      draw();
    };
    const table = el(
      "table",
      {},
      el("caption", {}, textOf(block["caption"])),
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          head.map((cell, column) =>
            drawHead(
              cell,
              sorted?.column === column ? sorted.up : undefined,
              () => sort(column),
              names,
            ),
          ),
        ),
      ),
      el(
        "tbody",
        {},
        shown.map((row) =>
          el(
            "tr",
            {},
            row.map((cell, column) =>
              el(
                column === rowHead ? "th" : "td",
                {
                  class: cell["type"] === "raw_number" ? "right" : "left",
                  scope: column === rowHead && "row",
                },
                drawCell(cell, names),
              ),
            ),
          ),
        ),
      ),
    );
    const turn = (by: number) => () => {
      page += by;
      draw();
    };
    box.replaceChildren(scrolling(textOf(block["caption"]) || "Table", table));
    if (rows.length > size) box.append(drawPager(page, size, rows.length, turn));
  };
  draw();
  return box;
}

function drawHead(
  cell: Fields,
  up: boolean | undefined,
  sort: () => void,
  names: Names,
): HTMLElement {
  const order = up === undefined ? "none" : up ? "ascending" : "descending";
  const arrow = up === undefined ? "" : up ? " ↑" : " ↓";
  return el(
    "th",
    { scope: "col", "aria-sort": order },
    el("button", { type: "button", onclick: sort }, drawCell(cell, names), arrow),
  );
}

function drawPager(
  page: number,
  size: number,
  all: number,
  turn: (by: number) => () => void,
): HTMLElement {
  const last = Math.min(all, (page + 1) * size);
  return el(
    "div",
    { class: "pager" },
    el(
      "button",
      { type: "button", class: "button", disabled: page === 0, onclick: turn(-1) },
      "Previous",
    ),
    el("span", { role: "status" }, `${page * size + 1}–${last} of ${all}`),
    el(
      "button",
      { type: "button", class: "button", disabled: last === all, onclick: turn(1) },
      "Next",
    ),
  );
}

function compare(a: unknown, b: unknown): number {
  const [one, other] = [sortedBy(a), sortedBy(b)];
  if (typeof one === "number" && typeof other === "number") return one - other;
  return textOf(one).localeCompare(textOf(other), undefined, { numeric: true });
}

function sortedBy(cell: unknown): unknown {
  return isFields(cell) ? (cell["value"] ?? cell["text"]) : undefined;
}
