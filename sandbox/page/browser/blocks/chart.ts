import { type Fields, fieldsOf, listOf, textOf } from "../../../slack/fields.ts";
import { el, svg } from "../dom/dom.ts";

const width = 480;
const height = 220;
/** Room beside the plot: numbers to the left, categories below, and a line more for the name of an axis. */
const edge = { left: 50, right: 14, top: 18, bottom: 24, name: 20 };

interface Series {
  name: string;
  values: number[];
}

interface Plot {
  type: string;
  categories: readonly string[];
  series: readonly Series[];
  xLabel: string;
  yLabel: string;
}

/** A data_visualization block. https://docs.slack.dev/reference/block-kit/blocks/data-visualization-block */
export function drawChart(block: Fields): HTMLElement {
  const title = textOf(block["title"]);
  const plot = plotOf(fieldsOf(block["chart"]));
  const { series } = plot;
  return el(
    "figure",
    { class: "chart" },
    el("figcaption", {}, title),
    drawPlot(plot, `${title}: ${inWords(plot)}`),
    series.length > 1
      ? el(
          "ul",
          { class: "legend" },
          series.map(({ name }, index) => el("li", { class: `series-${index % 6}` }, name)),
        )
      : null,
  );
}

function plotOf(chart: Fields): Plot {
  const type = textOf(chart["type"], "line");
  const axis = fieldsOf(chart["axis_config"]);
  const labels = { xLabel: textOf(axis["x_label"]), yLabel: textOf(axis["y_label"]) };
  const valuesOf = (points: readonly Fields[]) => points.map(({ value }) => Number(value));
  if (type === "pie") {
    // Drawn as bars: easier to compare, and to read
    const segments = listOf(chart["segments"]);
    const categories = segments.map(({ label }) => textOf(label));
    return {
      type: "bar",
      categories,
      series: [{ name: "", values: valuesOf(segments) }],
      ...labels,
    };
  }
  const series = listOf(chart["series"]);
  const named = axis["categories"];
  return {
    type,
    categories: Array.isArray(named) ? named.map((name) => textOf(name)) : [],
    series: series.map(({ name, data }) => ({
      name: textOf(name),
      values: valuesOf(listOf(data)),
    })),
    ...labels,
  };
}

/** Each bar, or where each line goes: for who hears the page. */
function inWords({ type, categories, series }: Plot): string {
  if (type === "bar" && series.length === 1)
    return categories.map((name, at) => `${name} ${series[0]?.values[at] ?? ""}`).join(", ");
  return series
    .map(
      ({ name, values }) =>
        `${name} from ${Math.min(...values)} to ${Math.max(...values)}, last ${values.at(-1) ?? ""}`,
    )
    .join("; ");
}

const short = new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 2 });

function drawPlot(plot: Plot, label: string): SVGElement {
  const { type, categories, series, xLabel, yLabel } = plot;
  const left = edge.left + (yLabel ? edge.name : 0);
  const ground = height - edge.bottom - (xLabel ? edge.name : 0);
  const values = series.flatMap((one) => one.values);
  const top = niceTop(Math.max(0, ...values) || 1);
  const bottom = Math.min(0, ...values);
  const isBar = type === "bar";
  const step = (width - left - edge.right) / Math.max(1, categories.length - (isBar ? 0 : 1));
  const x = (index: number) => left + step * (isBar ? index + 0.5 : index);
  const y = (value: number) =>
    edge.top + (ground - edge.top) * (1 - (value - bottom) / (top - bottom));
  const name = { class: "axis", "text-anchor": "middle" };
  const middle = (edge.top + ground) / 2;
  return svg(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label },
    [0, 0.5, 1].map((part) => {
      const value = bottom + (top - bottom) * part;
      return [
        svg("line", {
          class: "grid",
          x1: left,
          x2: width - edge.right,
          y1: y(value),
          y2: y(value),
        }),
        svg(
          "text",
          { class: "axis", x: left - 6, y: y(value) + 4, "text-anchor": "end" },
          short.format(value),
        ),
      ];
    }),
    isBar
      ? drawBars(plot, step, x, y)
      : series.map((one, index) => drawLine(plot, one, index, x, y, y(bottom))),
    drawCategories(categories, step, x, ground + 19),
    xLabel && svg("text", { ...name, x: (left + width - edge.right) / 2, y: height - 6 }, xLabel),
    yLabel && svg("text", { ...name, transform: `translate(14 ${middle}) rotate(-90)` }, yLabel),
  );
}

/** As many as fit beside each other, counted back from the last, and none beyond the edge of the drawing. */
function drawCategories(
  categories: readonly string[],
  step: number,
  x: (index: number) => number,
  y: number,
): SVGElement[] {
  const longest = Math.max(...categories.map((name) => name.length));
  const room = longest * 8.5 + 10;
  const last = categories.length - 1;
  // A label that ends at the edge reaches further towards the one before it
  const reach = x(last) + room / 2 > width ? room * 1.5 - (width - x(last)) : room;
  const every = Math.max(1, Math.ceil(reach / step));
  const place = (at: number) => {
    if (at + room / 2 > width) return { x: width, "text-anchor": "end" };
    if (at - room / 2 < 0) return { x: 0, "text-anchor": "start" };
    return { x: at, "text-anchor": "middle" };
  };
  return categories.flatMap((name, index) =>
    (last - index) % every === 0
      ? [svg("text", { class: "axis category", ...place(x(index)), y }, name)]
      : [],
  );
}

function drawLine(
  { type, categories }: Plot,
  { name, values }: Series,
  index: number,
  x: (index: number) => number,
  y: (value: number) => number,
  ground: number,
): SVGElement {
  const points = values.map((value, at) => `${x(at)},${y(value)}`);
  const area = [`${x(0)},${ground}`, ...points, `${x(values.length - 1)},${ground}`];
  return svg(
    "g",
    { class: `series-${index % 6}` },
    type === "area" && svg("polygon", { class: "area", points: area.join(" ") }),
    svg("polyline", { class: "line", points: points.join(" ") }),
    values.map((value, at) =>
      svg(
        "circle",
        { class: "point", cx: x(at), cy: y(value), r: values.length > 1 ? 2.5 : 4 },
        svg("title", {}, `${name}, ${categories[at] ?? ""}: ${value}`),
      ),
    ),
  );
}

/** With its number above each, where a category has one bar. */
function drawBars(
  { categories, series }: Plot,
  step: number,
  x: (index: number) => number,
  y: (value: number) => number,
): SVGElement[] {
  const room = Math.min(step * 0.7, 90);
  const each = room / Math.max(1, series.length);
  return series.flatMap(({ name, values }, index) =>
    values.flatMap((value, at) => [
      svg(
        "rect",
        {
          class: `bar series-${index % 6}`,
          x: x(at) - room / 2 + each * index,
          width: Math.max(1, each - 1),
          y: Math.min(y(value), y(0)),
          height: Math.max(1, Math.abs(y(0) - y(value))),
        },
        svg("title", {}, `${name}, ${categories[at] ?? ""}: ${value}`),
      ),
      ...(series.length > 1
        ? []
        : [
            svg(
              "text",
              { class: "axis value", x: x(at), y: y(value) - 5, "text-anchor": "middle" },
              short.format(value),
            ),
          ]),
    ]),
  );
}

/** The next of 1, 2, 5 times a power of ten. */
function niceTop(most: number): number {
  const power = 10 ** Math.floor(Math.log10(most));
  return ([1, 2, 5, 10].find((step) => step * power >= most) ?? 10) * power;
}
