import type { LineChart, Point } from "./chart.ts";
import { tidy } from "./points.ts";

/** What the service measured, as it came: `value` without a unit, `timestamp` in ISO 8601. */
export interface Usage {
  cpuUsage: readonly Sample[];
  memoryUsage: readonly Sample[];
  diskUsage?: number;
}

export interface Sample {
  timestamp: string;
  value: number;
}

/** CPU and memory as lines, disk as a number. `period` is what was asked for, in the words of the API: `1h`. */
export function chartOf(usage: Usage, title: string, period = ""): LineChart {
  const disk = usage.diskUsage;
  return {
    kind: "lines",
    title,
    ...(period ? { period: `last ${period}` } : {}),
    ...(isShown(disk) ? { aside: `Disk ${shortNumber(disk)}` } : {}),
    series: [
      { name: "CPU", points: pointsOf(usage.cpuUsage) },
      { name: "Memory", points: pointsOf(usage.memoryUsage) },
    ],
  };
}

function pointsOf(samples: readonly Sample[]): Point[] {
  return tidy(samples.map(({ timestamp, value }) => ({ at: Date.parse(timestamp), value })));
}

/** The picture in words, for a screen reader and for a notification. */
export function altText(usage: Usage): string {
  const { series } = chartOf(usage, "");
  const disk = usage.diskUsage;
  const parts = series.map(({ name, points }) => inWords(name, points));
  return [...parts, isShown(disk) ? `Disk: ${shortNumber(disk)}.` : "Disk: no value."].join(" ");
}

function inWords(name: string, points: readonly Point[]): string {
  const known = points.filter(({ value }) => Number.isFinite(value));
  const last = known.at(-1);
  if (!last) return `${name}: no samples.`;
  const values = known.map(({ value }) => value);
  const [least, most] = [values, values].map((all, index) =>
    all.reduce((a, b) => (index === 0 ? Math.min(a, b) : Math.max(a, b))),
  );
  const when = `${new Date(last.at).toISOString().slice(0, 16).replace("T", " ")} UTC`;
  return `${name}: minimum ${shortNumber(least ?? 0)}, maximum ${shortNumber(most ?? 0)}, last ${shortNumber(last.value)} at ${when}.`;
}

const isShown = (value: number | undefined): value is number =>
  value !== undefined && Number.isFinite(value);

/**
 * A number as short as it can be read: three digits that count, `12.3`, `0.042`, `1,234`, `8.19M`, `3e-7`. The letters
 * are the usual thousands (k, M, G, T) and no unit.
 */
export function shortNumber(value: number): string {
  const size = Math.abs(value);
  if (value === 0) return "0";
  if (size < 0.001 || size >= 1e15) return value.toExponential(2).replace(/\.?0+e\+?/, "e");
  if (size < 1) return String(Number(value.toPrecision(3)));
  if (size < 1000) return String(Number(value.toFixed(1)));
  if (size < 100_000) return Math.round(value).toLocaleString("en-US");
  const power = Math.min(4, Math.floor(Math.log10(size) / 3));
  return `${Number((value / 1000 ** power).toPrecision(3))}${["", "k", "M", "G", "T"][power] ?? ""}`;
}
