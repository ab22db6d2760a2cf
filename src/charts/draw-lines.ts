import { type Context, fitted, newCanvas, widthOf, width, write } from "./canvas.ts";
import type { LineChart, Point, Series } from "./chart.ts";
import { palette } from "./palette.ts";
import { downsample, rangeOf, stretches, tidy } from "./points.ts";
import { valueScale, timeTicks } from "./scale.ts";
import { shortNumber } from "./usage.ts";

const height = 380;
const edge = { left: 62, right: 76, top: 92, bottom: 42 };
/** As many points as there are pixels to tell them apart. */
const mostPoints = 1200;
/** Lines whose highest values differ by more would crush each other on one axis: each gets a panel of its own. */
const mostRatio = 8;

interface Line extends Series {
  colour: string;
}

/** Draws lines over time and returns the PNG. Any input is drawn; what can't be read is left out. */
export function drawLines(chart: LineChart): Buffer {
  const { canvas, context } = newCanvas(height);
  const lines = chart.series.map(
    (one, index): Line => ({
      name: one.name,
      points: downsample(tidy(one.points), mostPoints),
      colour: palette.lines[index % palette.lines.length] ?? palette.text,
    }),
  );
  drawHead(context, chart, lines);
  const known = lines.filter(({ points }) => rangeOf(points) !== undefined);
  if (known.length === 0) {
    const middle = (edge.top + height - edge.bottom) / 2;
    write(context, "No samples in this period", width / 2, middle, { size: 20, align: "center" });
    return canvas.toBuffer("image/png");
  }
  const span = spanOf(known);
  const panels = inPanels(known);
  const gap = 18;
  const room = (height - edge.top - edge.bottom - gap * (panels.length - 1)) / panels.length;
  const x = (at: number) =>
    edge.left + ((at - span.from) / (span.to - span.from)) * (width - edge.left - edge.right);
  for (const [index, panel] of panels.entries())
    drawPanel(context, panel, x, edge.top + index * (room + gap), room);
  drawTimes(context, span, x);
  return canvas.toBuffer("image/png");
}

function drawHead(context: Context, chart: LineChart, lines: readonly Line[]): void {
  const asideStyle = { size: 19, bold: true, colour: palette.text } as const;
  const aside = chart.aside ? fitted(context, chart.aside, 220, asideStyle) : "";
  write(context, aside, width - 20, 30, { ...asideStyle, align: "right" });
  const title = { size: 22, bold: true, colour: palette.text } as const;
  const room = width - 40 - (aside ? widthOf(context, aside, asideStyle) + 20 : 0);
  write(context, fitted(context, chart.title, room, title), 20, 30, title);
  let x = 20;
  for (const { name, colour, points } of lines) {
    const label = rangeOf(points) ? name : `${name}: no samples`;
    context.fillStyle = colour;
    context.fillRect(x, 60, 22, 4);
    write(context, label, x + 30, 62, { colour: palette.text });
    x += 30 + widthOf(context, label) + 26;
  }
}

/** From the first known sample to the last; a lone sample stands in the middle of two minutes. */
function spanOf(lines: readonly Line[]): { from: number; to: number } {
  const times = lines.flatMap(({ points }) => [points[0]?.at ?? 0, points.at(-1)?.at ?? 0]);
  const [from, to] = [Math.min(...times), Math.max(...times)];
  return from < to ? { from, to } : { from: from - 60_000, to: to + 60_000 };
}

function inPanels(lines: readonly Line[]): Line[][] {
  const sizes = lines.map(({ points }) => {
    const { low, high } = rangeOf(points) ?? { low: 0, high: 0 };
    return Math.max(Math.abs(low), Math.abs(high));
  });
  const [least, most] = [Math.min(...sizes), Math.max(...sizes)];
  const isCrushed = least > 0 && most / least > mostRatio;
  return isCrushed ? lines.map((line) => [line]) : [[...lines]];
}

function drawPanel(
  context: Context,
  lines: readonly Line[],
  x: (at: number) => number,
  top: number,
  room: number,
): void {
  const { low, high } = rangeOf(lines.flatMap(({ points }) => [...points])) ?? { low: 0, high: 1 };
  const scale = valueScale(low, high, room > 150 ? 4 : 2);
  const y = (value: number) =>
    top + room - ((value - scale.from) / (scale.to - scale.from)) * room;
  for (const tick of scale.ticks) {
    context.fillStyle = tick === 0 ? palette.axis : palette.grid;
    context.fillRect(edge.left, Math.round(y(tick)) - 0.5, width - edge.left - edge.right, 1);
    const label = fitted(context, shortNumber(tick), edge.left - 14, {});
    write(context, label, edge.left - 10, y(tick), { align: "right" });
  }
  for (const line of lines) drawLine(context, line, x, y);
  labelEnds(context, lines, x, y, top, room);
}

function drawLine(
  context: Context,
  { points, colour }: Line,
  x: (at: number) => number,
  y: (value: number) => number,
): void {
  context.strokeStyle = colour;
  context.fillStyle = colour;
  context.lineWidth = 3;
  context.lineJoin = "round";
  context.lineCap = "round";
  for (const stretch of stretches(points)) {
    const [first] = stretch;
    if (stretch.length === 1 && first) {
      dot(context, x(first.at), y(first.value), 4);
      continue;
    }
    context.beginPath();
    for (const { at, value } of stretch) context.lineTo(x(at), y(value));
    context.stroke();
  }
}

/** The last value of each line, beside its end, moved apart where two would overlap. */
function labelEnds(
  context: Context,
  lines: readonly Line[],
  x: (at: number) => number,
  y: (value: number) => number,
  top: number,
  room: number,
): void {
  const apart = 22;
  const ends = lines
    .flatMap(({ points, colour }) => {
      const last = points.findLast(({ value }) => Number.isFinite(value));
      return last ? [{ last, colour, at: y(last.value) }] : [];
    })
    .toSorted((a, b) => a.at - b.at);
  for (const [index, end] of ends.entries())
    end.at = Math.max(end.at, (ends[index - 1]?.at ?? -Infinity) + apart);
  const overhang = Math.max(0, (ends.at(-1)?.at ?? 0) - (top + room));
  for (const { last, colour, at } of ends) {
    dot(context, x(last.at), y(last.value), 4.5);
    const style = { size: 18, bold: true, colour } as const;
    const text = fitted(context, shortNumber(last.value), edge.right - 14, style);
    write(context, text, width - edge.right + 10, at - overhang, style);
  }

  function dot(on: Context, cx: number, cy: number, radius: number): void {
    const colour = ends.find(({ last }) => x(last.at) === cx && y(last.value) === cy)?.colour;
    on.fillStyle = colour ?? palette.text;
    fillDot(on, cx, cy, radius);
  }
}

const dot = fillDot;

function fillDot(context: Context, x: number, y: number, radius: number): void {
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  context.fill();
}

function drawTimes(
  context: Context,
  span: { from: number; to: number },
  x: (at: number) => number,
): void {
  const y = height - edge.bottom + 20;
  let free = edge.left + 34;
  write(context, "UTC", 20, y, { size: 15 });
  for (const { at, label } of timeTicks(span.from, span.to)) {
    const half = widthOf(context, label) / 2;
    context.fillStyle = palette.axis;
    context.fillRect(x(at) - 0.5, height - edge.bottom, 1, 6);
    if (x(at) - half < free || x(at) + half > width - 8) continue;
    write(context, label, x(at), y, { align: "center" });
    free = x(at) + half + 14;
  }
}

export type { Point };
