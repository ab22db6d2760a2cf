/** `at` is in milliseconds. */
export interface Point {
  at: number;
  value: number;
}

/** Lines over time, without units: the compute service gives none. */
export interface LineChart {
  kind: "lines";
  title: string;
  /** `Disk 43.2 · last 1h`. */
  subtitle?: string;
  /** Points are finite and in order of time. */
  series: readonly { name: string; points: readonly Point[] }[];
}

/** VMs by status, for example. */
export interface CountChart {
  kind: "counts";
  title: string;
  counts: readonly { label: string; count: number }[];
}

export type Chart = LineChart | CountChart;

/** The most frequent label first. */
export function countsOf(title: string, labels: readonly string[]): CountChart {
  const counts = [...Map.groupBy(labels, (label) => label)]
    .map(([label, same]) => ({ label, count: same.length }))
    .toSorted((a, b) => b.count - a.count || (a.label < b.label ? -1 : 1));
  return { kind: "counts", title, counts };
}

/** As the compute service returns it: `value` without a unit, `timestamp` in ISO 8601. */
export interface Usage {
  cpuUsage: readonly Sample[];
  memoryUsage: readonly Sample[];
  diskUsage?: number;
}

export interface Sample {
  timestamp: string;
  value: number;
}

/** CPU and memory as lines, disk as a number. `period` as in the API: `1h`. */
export function chartOf(usage: Usage, title: string, period = ""): LineChart {
  const disk = usage.diskUsage === undefined ? "" : `Disk ${shortNumber(usage.diskUsage)}`;
  return {
    kind: "lines",
    title,
    subtitle: [disk, period && `last ${period}`].filter(Boolean).join(" · "),
    series: [
      { name: "CPU", points: pointsOf(usage.cpuUsage) },
      { name: "Memory", points: pointsOf(usage.memoryUsage) },
    ],
  };
}

/** Larger values would overflow when subtracted. */
const largest = 1e300;

/** In order of time, without invalid samples. */
export function pointsOf(samples: readonly Sample[]): Point[] {
  return samples
    .map(({ timestamp, value }) => ({
      at: Date.parse(timestamp),
      value: Math.max(-largest, Math.min(largest, value)),
    }))
    .filter(({ at, value }) => Number.isFinite(at) && Number.isFinite(value))
    .toSorted((a, b) => a.at - b.at);
}

/** The chart in words, for screen readers and notifications. */
export function altText(usage: Usage): string {
  const disk = usage.diskUsage === undefined ? "no value" : shortNumber(usage.diskUsage);
  const lines = chartOf(usage, "").series.map(({ name, points }) => {
    const last = points.at(-1);
    if (!last) return `${name}: no samples.`;
    const sorted = points.map(({ value }) => value).toSorted((a, b) => a - b);
    const [least, most] = [sorted.at(0) ?? 0, sorted.at(-1) ?? 0].map(shortNumber);
    const when = new Date(last.at).toISOString().slice(0, 16).replace("T", " ");
    return `${name}: minimum ${least}, maximum ${most}, last ${shortNumber(last.value)} at ${when} UTC.`;
  });
  return [...lines, `Disk: ${disk}.`].join(" ");
}

/** Three significant digits: `12.3`, `0.042`, `1,234`, `8.19M`, `3e-7`. The letters are powers of 1,000, not units. */
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
