import { type Canvas, createCanvas } from "@napi-rs/canvas";
import { type ChartConfiguration, Chart as Picture, type Tick } from "chart.js";
import { plain } from "../messages/text.ts";
import { type Chart, type CountChart, type LineChart, type Point, shortNumber } from "./chart.ts";
import { colorOf, family, palette } from "./look.ts";

/** Returns a PNG. */
export function draw(chart: Chart): Buffer {
  const picture = layOut(chart);
  const png = (picture.canvas as unknown as Canvas).toBuffer("image/png");
  picture.destroy();
  return png;
}

interface Layout {
  height: number;
  config: ChartConfiguration;
  /** The number beside the end of each line or bar. */
  ends: readonly { text: string; color: string }[];
}

export function layOut(chart: Chart): Picture {
  const { height, config, ends } = chart.kind === "lines" ? lines(chart) : bars(chart);
  const canvas = createCanvas(600, height) as unknown as HTMLCanvasElement;
  const card = {
    id: "card",
    beforeDraw({ ctx, width }: Picture) {
      ctx.fillStyle = palette.background;
      ctx.fillRect(0, 0, width, height);
    },
    afterDraw: (picture: Picture) => writeEnds(picture, chart.kind, ends),
  };
  return new Picture(canvas, { ...config, plugins: [card] });
}

function writeEnds(picture: Picture, kind: Chart["kind"], ends: Layout["ends"]): void {
  const { ctx, chartArea, data } = picture;
  const isLine = kind === "lines";
  const points = data.datasets.flatMap((_, index) =>
    picture.getDatasetMeta(index).data.slice(isLine ? -1 : 0),
  );
  const placed = ends
    .map((end, index) => ({ ...end, x: points[index]?.x ?? 0, y: points[index]?.y ?? 0, textY: 0 }))
    .toSorted((a, b) => a.y - b.y);
  // Move labels down where two would overlap, and all up where the last would leave the chart
  let lowest = -Infinity;
  for (const end of placed) lowest = end.textY = Math.max(end.y, lowest + 22);
  const overhang = Math.max(0, lowest - chartArea.bottom);
  ctx.font = `700 18px "${family}"`;
  ctx.textAlign = "left";
  ctx.textBaseline = "middle";
  for (const { text, color, x, y, textY } of placed) {
    ctx.fillStyle = color;
    ctx.beginPath();
    if (isLine) ctx.arc(x, y, 4.5, 0, 2 * Math.PI);
    ctx.fill();
    ctx.fillText(text, x + 10, textY - overhang, 70);
  }
}

function lines({ title, subtitle, series }: LineChart): Layout {
  const known = series.filter(({ points }) => points.length > 0);
  const times = known.flatMap(({ points }) => [points[0]?.at ?? 0, points.at(-1)?.at ?? 0]);
  const [first, last] = [Math.min(...times), Math.max(...times)];
  // A single sample is in the middle of two minutes
  const [min, max] = first < last ? [first, last] : [first - 60_000, last + 60_000];
  const sizes = known.map(({ points }) => sizeOf(points));
  // Lines whose highest values differ more would be flat on a shared axis: each gets its own panel
  const isSplit = Math.min(...sizes) > 0 && Math.max(...sizes) > 8 * Math.min(...sizes);
  const axes = isSplit ? known.map((_, index) => `y${index}`) : ["y"];
  const display = known.length > 0;
  const about = display ? "times in UTC" : "no samples in this period";
  const panel = {
    display,
    stack: "panels",
    beginAtZero: true,
    grid: {
      drawTicks: false,
      color: ({ tick }: { tick?: Tick }) => (tick?.value === 0 ? palette.axis : palette.grid),
    },
    ticks: { callback: shortNumber, maxTicksLimit: isSplit ? 3 : 5 },
  };
  const hidden = { ticks: { display: false }, grid: { display: false } };
  const spacer = { stack: "panels", stackWeight: 0.06 * axes.length, ...hidden };
  // Stacked from the bottom
  const panels = axes
    .toReversed()
    .flatMap((id) => [[id, panel] as const, [`${id}-spacer`, spacer] as const]);
  const colorAt = (index: number) => palette.lines[index % palette.lines.length] ?? palette.text;
  const config: ChartConfiguration<"line"> = {
    type: "line",
    data: {
      datasets: series.map((one, index) => ({
        ...lineOf(one, colorAt(index)),
        yAxisID: axes[known.indexOf(one)] ?? axes[0] ?? "y",
      })),
    },
    options: {
      parsing: false,
      normalized: true,
      clip: false,
      plugins: {
        title: { text: plain(title, 45) },
        subtitle: { text: plain(subtitle ? `${subtitle} · ${about}` : about, 80) },
      },
      scales: {
        x: {
          type: "linear",
          display,
          min,
          max,
          afterBuildTicks: (axis) => {
            axis.ticks = timeTicks(min, max);
          },
          ticks: {
            callback: (_value, index, ticks) => ticks[index]?.label,
            autoSkipPadding: 14,
            padding: 2,
          },
          grid: { drawOnChartArea: false, color: palette.axis, tickLength: 6 },
        },
        ...Object.fromEntries(panels),
      },
    },
  };
  const ends = series.flatMap(({ points }, index) =>
    points.slice(-1).map(({ value }) => ({ text: shortNumber(value), color: colorAt(index) })),
  );
  return { height: display ? 400 : 130, config: config as ChartConfiguration, ends };
}

function lineOf({ name, points }: LineChart["series"][number], color: string) {
  const gap = shortestGap(points);
  const isAfterGap = (index: number) =>
    (points[index]?.at ?? Infinity) - (points[index - 1]?.at ?? -Infinity) > gap;
  const radii = points.map((_, index) => (isAfterGap(index) && isAfterGap(index + 1) ? 2.5 : 0));
  return {
    label: plain(points.length > 0 ? name : `${name}: no samples`, 24),
    data: points.map(({ at, value }) => ({ x: at, y: value })),
    borderColor: color,
    backgroundColor: color,
    // Many samples of a noisy line would make a thick band
    borderWidth: points.length > 300 ? 1.5 : 3,
    spanGaps: gap,
    // A sample between two gaps is a dot; thousands of points draw faster with one radius
    pointRadius: radii.some((radius) => radius > 0) ? radii : 0,
  };
}

const sizeOf = (points: readonly Point[]) =>
  points.reduce((most, { value }) => Math.max(most, Math.abs(value)), 0);

/** Three times the median distance between samples. */
function shortestGap(points: readonly Point[]): number {
  const pauses = points.slice(1).map(({ at }, index) => at - (points[index]?.at ?? at));
  const usual = pauses.toSorted((a, b) => a - b)[Math.floor(pauses.length / 2)] ?? 0;
  return usual > 0 ? 3 * usual : Infinity;
}

const [minute, hour, day] = [60_000, 3_600_000, 86_400_000] as const;
const timeSteps = [
  ...[1, 2, 5, 10, 15, 30].map((count) => count * 1000),
  ...[1, 2, 5, 10, 15, 30].map((count) => count * minute),
  ...[1, 2, 3, 6, 12].map((count) => count * hour),
  ...[1, 2, 7, 14, 30, 60, 90, 180, 365].map((count) => count * day),
];

/** About six round times between two, in UTC: `14:30`, at midnight `20 Nov`. */
export function timeTicks(from: number, to: number): { value: number; label: string }[] {
  const span = to - from;
  const step = timeSteps.find((one) => span / one <= 6) ?? Math.ceil(span / 6 / day) * day;
  const first = Math.ceil(from / step);
  return Array.from({ length: Math.floor(to / step) - first + 1 }, (_, index) => {
    const value = (first + index) * step;
    const [, date, month, year, time = ""] = new Date(value).toUTCString().split(" ");
    const isTime = step < minute || (step < day && value % day !== 0);
    const label = isTime ? time.slice(0, step < minute ? 8 : 5) : `${Number(date)} ${month}`;
    return { value, label: !isTime && span > 300 * day ? `${label} ${year}` : label };
  });
}

const maxBars = 8;

function bars({ title, counts }: CountChart): Layout {
  const rest = counts.length > maxBars ? counts.slice(maxBars - 1) : [];
  const others = { label: "others", count: sumOf(rest) };
  const rows = rest.length > 0 ? [...counts.slice(0, maxBars - 1), others] : counts;
  const worst = rest.some(({ label }) => label === "ERROR") ? "ERROR" : others.label;
  const config: ChartConfiguration<"bar"> = {
    type: "bar",
    data: {
      labels: rows.map(({ label }) => plain(label, 24)),
      datasets: [
        {
          data: rows.map(({ count }) => count),
          backgroundColor: rows.map((row) => colorOf(row === others ? worst : row.label)),
          barThickness: 18,
          // One ERROR among thousands must be visible
          minBarLength: 8,
        },
      ],
    },
    options: {
      indexAxis: "y",
      plugins: {
        legend: { display: false },
        title: { text: plain(title, 45) },
        subtitle: { text: `${sumOf(counts).toLocaleString("en-US")} in total` },
      },
      scales: {
        x: { display: false, max: Math.max(...rows.map(({ count }) => count)) },
        y: { grid: { display: false }, ticks: { color: palette.text, crossAlign: "far" } },
      },
    },
  };
  const ends = rows.map(({ count }) => ({
    text: count.toLocaleString("en-US"),
    color: palette.text,
  }));
  return { height: 86 + 28 * rows.length, config: config as ChartConfiguration, ends };
}

const sumOf = (counts: CountChart["counts"]) => counts.reduce((sum, { count }) => sum + count, 0);
