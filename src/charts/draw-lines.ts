import { type Context, fitted, newCanvas, widthOf, width, write } from "./canvas.ts";
import type { LineChart, Point } from "./chart.ts";
import { drawPanel, edge, type Line } from "./draw-panel.ts";
import { palette } from "./palette.ts";
import { downsample, rangeOf, stretches, tidy } from "./points.ts";
import { timeTicks } from "./scale.ts";

const height = 380;
/** As many points as there are pixels to tell them apart. */
const mostPoints = 1200;
/** Lines whose highest values differ by more would crush each other on one axis: each gets a panel of its own. */
const mostRatio = 8;

/** Draws lines over time and returns the PNG. Any input is drawn; what can't be read is left out. */
export function drawLines(chart: LineChart): Buffer {
  const { canvas, context } = newCanvas(height);
  const lines = chart.series.map(({ name, points }, index) => toLine(name, points, index));
  drawHead(context, chart, lines);
  const known = lines.filter(({ points }) => rangeOf(points) !== undefined);
  if (known.length === 0) {
    const middle = (edge.top + height - edge.bottom) / 2;
    write(context, "No samples in this period", width / 2, middle, { size: 20, align: "center" });
    return canvas.toBuffer("image/png");
  }
  const span = spanOf(known);
  const panels = inPanels(known);
  const gap = 28;
  const room = (height - edge.top - edge.bottom - gap * (panels.length - 1)) / panels.length;
  const x = (at: number) =>
    edge.left + ((at - span.from) / (span.to - span.from)) * (width - edge.left - edge.right);
  for (const [index, panel] of panels.entries())
    drawPanel(context, panel, { x, top: edge.top + index * (room + gap), room });
  drawTimes(context, span, x);
  return canvas.toBuffer("image/png");
}

function toLine(name: string, points: readonly Point[], index: number): Line {
  const ordered = tidy(points);
  const share = mostPoints / Math.max(1, ordered.length);
  return {
    name,
    points: ordered,
    stretches: stretches(ordered).map((one) => downsample(one, Math.ceil(one.length * share))),
    colour: palette.lines[index % palette.lines.length] ?? palette.text,
  };
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
    const label = fitted(context, rangeOf(points) ? name : `${name}: no samples`, 220, {});
    context.fillStyle = colour;
    context.fillRect(x, 60, 22, 4);
    write(context, label, x + 30, 62, { colour: palette.text });
    x += 30 + widthOf(context, label) + 26;
  }
  const period = fitted(context, chart.period ?? "", Math.max(0, width - 20 - x), {});
  write(context, period, width - 20, 62, { align: "right" });
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
