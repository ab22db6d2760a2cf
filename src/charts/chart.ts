/** One value at one moment, milliseconds since the epoch. A value that isn't finite is a gap. */
export interface Point {
  at: number;
  value: number;
}

export interface Series {
  name: string;
  points: readonly Point[];
}

/** Lines over time. Nothing in it knows a unit: the service gives none. */
export interface LineChart {
  kind: "lines";
  title: string;
  /** Beside the title: a number that isn't a line, such as `Disk 43.2`. */
  aside?: string;
  /** Beside the legend: what time it is about, such as `last 1h`. */
  period?: string;
  series: readonly Series[];
}

/** How many there are of each kind, as one bar: VMs by status. */
export interface CountChart {
  kind: "counts";
  title: string;
  counts: readonly Count[];
}

export interface Count {
  label: string;
  count: number;
  tone: Tone;
}

export type Tone = "good" | "quiet" | "busy" | "bad" | "other";

export type Chart = LineChart | CountChart;

const tones: Readonly<Record<string, Tone>> = {
  RUNNING: "good",
  ACTIVE: "good",
  STOPPED: "quiet",
  CREATING: "busy",
  REBOOTING: "busy",
  DELETING: "busy",
  ERROR: "bad",
};

/** The bar of a list of statuses; the most frequent first, trouble always told. */
export function countsOf(title: string, statuses: readonly string[]): CountChart {
  const counted = new Map<string, number>();
  for (const status of statuses) counted.set(status, (counted.get(status) ?? 0) + 1);
  const counts = [...counted]
    .map(([label, count]): Count => ({ label, count, tone: tones[label] ?? "other" }))
    .toSorted((a, b) => b.count - a.count || (a.label < b.label ? -1 : 1));
  return { kind: "counts", title, counts };
}
