import { type Context, fitted, width, write } from "./canvas.ts";
import type { Point, Series } from "./chart.ts";
import { palette } from "./palette.ts";
import { rangeOf } from "./points.ts";
import { valueScale } from "./scale.ts";
import { shortNumber } from "./usage.ts";

/** Room around the plot: values at the left, last values at the right, title and legend above, times below. */
export const edge = { left: 62, right: 76, top: 92, bottom: 42 } as const;

/** A series ready to be drawn: all its points in order, and the stretches without a gap, thinned out. */
export interface Line extends Series {
  stretches: readonly (readonly Point[])[];
  colour: string;
}

/** So many samples in a noisy line would make a thick band of it. */
const thinFrom = 300;

interface Place {
  x: (at: number) => number;
  top: number;
  room: number;
}

/** Lines on one value axis. At least one of them has a value. */
export function drawPanel(context: Context, lines: readonly Line[], place: Place): void {
  const { top, room, x } = place;
  const { low, high } = rangeOf(lines.flatMap(({ points }) => points)) ?? { low: 0, high: 1 };
  const scale = valueScale(low, high, room > 150 ? 4 : 2);
  const y = (value: number) => top + room - ((value - scale.from) / (scale.to - scale.from)) * room;
  for (const tick of scale.ticks) {
    context.fillStyle = tick === 0 ? palette.axis : palette.grid;
    context.fillRect(edge.left, Math.round(y(tick)) - 0.5, width - edge.left - edge.right, 1);
    const label = fitted(context, shortNumber(tick), edge.left - 14, {});
    write(context, label, edge.left - 10, y(tick), { align: "right" });
  }
  for (const line of lines) drawLine(context, line, x, y);
  drawEnds(context, lines, place, y);
}

function drawLine(
  context: Context,
  { points, stretches, colour }: Line,
  x: (at: number) => number,
  y: (value: number) => number,
): void {
  context.strokeStyle = colour;
  context.lineWidth = points.length > thinFrom ? 1.5 : 3;
  context.lineJoin = "round";
  context.lineCap = "round";
  for (const stretch of stretches) {
    const [first, ...others] = stretch;
    if (!first) continue;
    // a round cap makes a stretch of one sample a dot
    context.beginPath();
    context.moveTo(x(first.at), y(first.value));
    context.lineTo(x(first.at) + 0.01, y(first.value));
    for (const { at, value } of others) context.lineTo(x(at), y(value));
    context.stroke();
  }
}

/** The last value of each line beside its end, moved apart where two would overlap. */
function drawEnds(
  context: Context,
  lines: readonly Line[],
  { x, top, room }: Place,
  y: (value: number) => number,
): void {
  const apart = 22;
  const ends = lines
    .flatMap(({ points, colour }) => {
      const last = points.findLast(({ value }) => Number.isFinite(value));
      return last ? [{ last, colour, labelY: y(last.value) }] : [];
    })
    .toSorted((a, b) => a.labelY - b.labelY);
  for (const [index, end] of ends.entries())
    end.labelY = Math.max(end.labelY, (ends[index - 1]?.labelY ?? -Infinity) + apart);
  const overhang = Math.max(0, (ends.at(-1)?.labelY ?? 0) - (top + room));
  for (const { last, colour, labelY } of ends) {
    context.fillStyle = colour;
    context.beginPath();
    context.arc(x(last.at), y(last.value), 4.5, 0, 2 * Math.PI);
    context.fill();
    const style = { size: 18, bold: true, colour } as const;
    const text = fitted(context, shortNumber(last.value), edge.right - 14, style);
    write(context, text, width - edge.right + 10, labelY - overhang, style);
  }
}
