import { type Fields, fieldsOf, listOf, textOf } from "../../../slack/fields.ts";
import { el, svg } from "../dom/dom.ts";

const width = 480;
const height = 200;
const edge = { left: 44, right: 12, top: 10, bottom: 26 };

interface Series {
  name: string;
  values: number[];
}

/** A data_visualization block. https://docs.slack.dev/reference/block-kit/blocks/data-visualization-block */
export function drawChart(block: Fields): HTMLElement {
  const chart = fieldsOf(block["chart"]);
  const title = textOf(block["title"]);
  const type = textOf(chart["type"], "line");
  const { categories, series } = type === "pie" ? piece(chart) : axes(chart);
  return el(
    "figure",
    { class: "chart" },
    el("figcaption", {}, title),
    plot(type, categories, series, `${title}: ${inWords(series)}`),
    series.length > 1
      ? el(
          "ul",
          { class: "legend" },
          series.map(({ name }, index) => el("li", { class: `series-${index % 6}` }, name)),
        )
      : null,
  );
}

function axes(chart: Fields): { categories: string[]; series: Series[] } {
  const all = listOf(chart["series"]);
  const named = fieldsOf(chart["axis_config"])["categories"];
  const categories = Array.isArray(named)
    ? named.map((name) => textOf(name))
    : listOf(all[0]?.["data"]).map((point) => textOf(point["label"]));
  const series = all.map((one) => ({
    name: textOf(one["name"]),
    values: listOf(one["data"]).map((point) => Number(point["value"])),
  }));
  return { categories, series };
}

/** A pie is drawn as bars: easier to compare, and to read. */
function piece(chart: Fields): { categories: string[]; series: Series[] } {
  const segments = listOf(chart["segments"]);
  return {
    categories: segments.map((segment) => textOf(segment["label"])),
    series: [{ name: "", values: segments.map((segment) => Number(segment["value"])) }],
  };
}

function inWords(series: readonly Series[]): string {
  return series
    .map(({ name, values }) => {
      const known = values.filter(Number.isFinite);
      if (known.length === 0) return `${name} no values`;
      return `${name} from ${Math.min(...known)} to ${Math.max(...known)}, last ${known.at(-1) ?? ""}`.trim();
    })
    .join("; ");
}

function plot(
  type: string,
  categories: readonly string[],
  series: readonly Series[],
  label: string,
): SVGElement {
  const values = series.flatMap((one) => one.values).filter(Number.isFinite);
  const top = niceTop(Math.max(1, ...values));
  const bottom = Math.min(0, ...values);
  const bars = type === "bar" || type === "pie";
  const steps = Math.max(1, categories.length - (bars ? 0 : 1));
  const x = (index: number) => edge.left + ((width - edge.left - edge.right) * index) / steps;
  const y = (value: number) =>
    edge.top + (height - edge.top - edge.bottom) * (1 - (value - bottom) / (top - bottom));
  const mark = bars
    ? drawBars(series, x, y, y(0))
    : series.map((one, index) =>
        drawLine(one, index, x, y, type === "area" ? y(bottom) : undefined),
      );
  return svg(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label },
    [0, 0.5, 1].map((part) => drawGrid(bottom + (top - bottom) * part, y)),
    mark,
    drawLabels(categories, (index) => (bars ? (x(index) + x(index + 1)) / 2 : x(index))),
  );
}

function drawGrid(value: number, y: (value: number) => number): SVGElement[] {
  return [
    svg("line", {
      class: "grid",
      x1: edge.left,
      x2: width - edge.right,
      y1: y(value),
      y2: y(value),
    }),
    svg(
      "text",
      { class: "axis", x: edge.left - 6, y: y(value) + 4, "text-anchor": "end" },
      String(Math.round(value * 100) / 100),
    ),
  ];
}

/** As many labels as fit beside each other. */
function drawLabels(categories: readonly string[], x: (index: number) => number): SVGElement[] {
  const every = Math.max(1, Math.ceil(categories.length / 6));
  return categories.flatMap((name, index) =>
    index % every === 0
      ? [svg("text", { class: "axis", x: x(index), y: height - 8, "text-anchor": "middle" }, name)]
      : [],
  );
}

function drawLine(
  one: Series,
  index: number,
  x: (index: number) => number,
  y: (value: number) => number,
  ground: number | undefined,
): SVGElement {
  const points = one.values.flatMap((value, at) =>
    Number.isFinite(value) ? [`${x(at)},${y(value)}`] : [],
  );
  const line = svg("polyline", { class: `line series-${index % 6}`, points: points.join(" ") });
  if (ground === undefined) return line;
  const area = [`${x(0)},${ground}`, ...points, `${x(one.values.length - 1)},${ground}`];
  return svg(
    "g",
    {},
    svg("polygon", { class: `area series-${index % 6}`, points: area.join(" ") }),
    line,
  );
}

function drawBars(
  series: readonly Series[],
  x: (index: number) => number,
  y: (value: number) => number,
  ground: number,
): SVGElement[] {
  const room = (x(1) - x(0)) * 0.7;
  const each = room / Math.max(1, series.length);
  return series.flatMap((one, index) =>
    one.values.map((value, at) =>
      svg("rect", {
        class: `bar series-${index % 6}`,
        x: x(at) + (x(1) - x(0)) * 0.15 + each * index,
        width: Math.max(1, each - 1),
        y: Math.min(y(value), ground),
        height: Math.abs(ground - y(value)),
      }),
    ),
  );
}

/** The next of 1, 2, 5 times a power of ten. */
function niceTop(most: number): number {
  const power = 10 ** Math.floor(Math.log10(most));
  return ([1, 2, 5, 10].find((step) => step * power >= most) ?? 10) * power;
}
