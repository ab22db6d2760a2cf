import { fitted, newCanvas, widthOf, width, write } from "./canvas.ts";
import { plain } from "../messages/text.ts";
import type { Count, CountChart } from "./chart.ts";
import { palette, toneColours } from "./palette.ts";

const side = 20;
const rowHeight = 30;
/** The rest goes into one last kind, so that the picture stays small. */
const mostKinds = 8;

/** Draws one bar split by kind, its legend below with the numbers, and returns the PNG. */
export function drawCounts(chart: CountChart): Buffer {
  const counts = shown(chart.counts);
  const rows = inRows(counts);
  const { canvas, context } = newCanvas(126 + Math.max(1, rows.length) * rowHeight);
  const total = counts.reduce((sum, { count }) => sum + count, 0);
  const totalStyle = { size: 22, bold: true, colour: palette.text } as const;
  const totalText = total.toLocaleString("en-US");
  write(context, totalText, width - side, 30, { ...totalStyle, align: "right" });
  const room = width - 3 * side - widthOf(context, totalText, totalStyle);
  write(context, fitted(context, chart.title, room, totalStyle), side, 30, totalStyle);
  let x = side;
  for (const [count, length] of lengths(counts, width - 2 * side)) {
    context.fillStyle = toneColours[count.tone];
    context.fillRect(x, 62, Math.max(1, length - 2), 28);
    x += length;
  }
  if (total === 0) {
    context.fillStyle = palette.grid;
    context.fillRect(side, 62, width - 2 * side, 28);
    write(context, "None", side, 124);
  }
  for (const [index, row] of rows.entries()) {
    for (const { count, at } of row) {
      const y = 124 + index * rowHeight;
      context.fillStyle = toneColours[count.tone];
      context.fillRect(at, y - 7, 14, 14);
      const bold = { bold: true, colour: palette.text } as const;
      const number = count.count.toLocaleString("en-US");
      write(context, number, at + 22, y, bold);
      write(context, labelOf(count), at + 30 + widthOf(context, number, bold), y);
    }
  }
  return canvas.toBuffer("image/png");

  function inRows(all: readonly Count[]): { count: Count; at: number }[][] {
    const measure = newCanvas(1).context;
    const found: { count: Count; at: number }[][] = [];
    let next = Infinity;
    for (const count of all) {
      const text = `${count.count.toLocaleString("en-US")} ${labelOf(count)}`;
      const wide = 30 + widthOf(measure, text, { bold: true });
      if (next + wide > width - side) {
        found.push([]);
        next = side;
      }
      found.at(-1)?.push({ count, at: next });
      next += wide + 20;
    }
    return found;
  }
}

const labelOf = ({ label }: Count) => plain(label, 24);

/** Only what there is; what is too much goes together. */
function shown(counts: readonly Count[]): Count[] {
  const there = counts.filter(({ count }) => Number.isFinite(count) && count > 0);
  if (there.length <= mostKinds) return there;
  const others = there.slice(mostKinds - 1);
  const sum = others.reduce((all, { count }) => all + count, 0);
  const tone = others.some((one) => one.tone === "bad") ? "bad" : "other";
  return [...there.slice(0, mostKinds - 1), { label: "others", count: sum, tone }];
}

/** One ERROR among thousands must still be seen: nothing is narrower than this. */
const leastLength = 8;

function lengths(counts: readonly Count[], room: number): [Count, number][] {
  const total = counts.reduce((sum, { count }) => sum + count, 0);
  const small = counts.filter(({ count }) => (count / total) * room < leastLength);
  const left = room - small.length * leastLength;
  const rest = total - small.reduce((sum, { count }) => sum + count, 0);
  return counts.map((one) => [one, small.includes(one) ? leastLength : (one.count / rest) * left]);
}
