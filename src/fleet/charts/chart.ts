import { clockWords, dayWords, momentWords, zoneWords } from "../../text/time-words.ts";
import type { Metrics } from "../compute/compute.ts";
import { duration, plain } from "../../messages/markdown.ts";
import type { ChartPart } from "../../messages/parts.ts";
import { compareNames } from "../../text/compare-names.ts";
import { parseTime } from "../../text/parse-time.ts";
import { shortNumber } from "../../text/short-number.ts";

/** Points are finite and in order of time; `at` is in milliseconds. */
interface Series {
  name: string;
  points: readonly { at: number; value: number }[];
}

/** Slack's limits: https://docs.slack.dev/reference/block-kit/blocks/data-visualization-block */
const limits = { points: 20, label: 20, title: 50 } as const;

/** Lines whose highest values differ by a larger factor would look flat on a shared axis. */
const mostApart = 8;

/**
 * Charts of CPU and memory over time: one chart, or one each when they can't share an axis. Slack
 * also requires a value of every line at every point, and a line may have no samples for some of
 * the time. Times are those of `zone`. Empty without samples.
 */
export function usageCharts(usage: Metrics, title: string, zone = "UTC"): ChartPart[] {
  const series = seriesOf(usage).filter(({ points }) => points.length > 0);
  if (series.length === 0) return [];
  const { peaks } = peaksOf(series, zone);
  const sizes = peaks.map((buckets) => Math.max(...[...buckets.values()].map(Math.abs)));
  const isApart = Math.min(...sizes) > 0 && Math.max(...sizes) > mostApart * Math.min(...sizes);
  const all = new Set(peaks.flatMap((buckets) => [...buckets.keys()]));
  const hasHoles = peaks.some((buckets) => buckets.size < all.size);
  return isApart || hasHoles
    ? series.map((line) => lineChart(`${line.name} of ${title}`, [line], zone))
    : [lineChart(title, series, zone)];
}

function lineChart(title: string, series: readonly Series[], zone: string): ChartPart {
  const { from, bucketMs, peaks } = peaksOf(series, zone);
  const categories = [...(peaks[0]?.keys() ?? [])].map((bucket) =>
    timeLabel(from + bucket * bucketMs, bucketMs, zone),
  );
  return {
    kind: "chart",
    form: "line",
    title: titleOf(title),
    series: series.map(({ name }, which) => ({
      name,
      values: [...(peaks[which]?.values() ?? [])].map((peak) => Number(peak.toPrecision(4))),
    })),
    categories,
    xLabel: `Peak of each ${duration(bucketMs)}, time in ${zoneWords(zone)}`,
  };
}

const titleOf = (title: string): string => plain(title, limits.title) || "Chart";

const [second, minute, hour, day] = [1000, 60_000, 3_600_000, 86_400_000];
/** Round intervals. Labels can't distinguish times less than a second apart. */
const steps = [
  ...[1, 2, 5, 10, 15, 30].map((n) => n * second),
  ...[1, 2, 5, 10, 15, 30].map((n) => n * minute),
  ...[1, 2, 3, 6, 12].map((n) => n * hour),
  ...[1, 2, 7, 30, 90, 365, 3650, 36_500].map((n) => n * day),
];

/**
 * Divides the time into at most 20 equal buckets, which begin at round times of the zone. For each
 * series, it finds the peak of each bucket with samples, so that spikes stay visible.
 */
function peaksOf(series: readonly Series[], zone: string) {
  const first = Math.min(...series.map(({ points }) => points[0]?.at ?? 0));
  const until = Math.max(...series.map(({ points }) => points.at(-1)?.at ?? 0));
  const longest = Math.max(...series.map(({ points }) => points.length));
  const most = Math.min(limits.points, longest + 1);
  const aheadMs = aheadOfUtc(first, zone);
  // JavaScript has no earlier time.
  const startOf = (step: number) =>
    Math.max(-8.64e15, Math.floor((first + aheadMs) / step) * step - aheadMs);
  const fits = (step: number) => (until - startOf(step)) / step < most;
  const bucketMs = steps.find(fits) ?? Math.ceil((until - first + 1) / (most - 1));
  const from = startOf(bucketMs);
  const peaks = series.map(({ points }) => {
    const highest = new Map<number, number>();
    for (const { at, value } of points) {
      const bucket = Math.floor((at - from) / bucketMs);
      highest.set(bucket, Math.max(highest.get(bucket) ?? -Infinity, value));
    }
    return highest;
  });
  return { from, bucketMs, peaks };
}

/** How far a zone's clocks are ahead of UTC (ms); negative where they are behind. */
function aheadOfUtc(at: number, zone: string): number {
  const { offsetNanoseconds } = Temporal.Instant.fromEpochMilliseconds(at).toZonedDateTimeISO(zone);
  return offsetNanoseconds / 1e6;
}

/** `2:30 PM`; over days `Nov 20, 2:30 PM`; over months `Nov 20, 2026`; within a minute `2:30:05 PM`. */
function timeLabel(at: number, bucketMs: number, zone: string): string {
  if (bucketMs >= day) return dayWords(at, zone, { hasYear: true });
  const clock = clockWords(at, zone, { hasSeconds: bucketMs < minute });
  return bucketMs >= hour ? `${dayWords(at, zone)}, ${clock}` : clock;
}

/** A chart of how often each label occurs, the 20 most frequent first. Empty without labels. */
export function countChart(title: string, name: string, labels: readonly string[]): ChartPart[] {
  if (labels.length === 0) return [];
  const data = [...Map.groupBy(labels, (label) => plain(label, limits.label) || "–")]
    .map(([label, same]) => ({ label, value: same.length }))
    .toSorted((a, b) => b.value - a.value || compareNames(a.label, b.label))
    .slice(0, limits.points);
  return [
    {
      kind: "chart",
      form: "bar",
      title: titleOf(title),
      series: [{ name, values: data.map(({ value }) => value) }],
      categories: data.map(({ label }) => label),
      yLabel: name,
    },
  ];
}

function seriesOf({ cpuUsage, memoryUsage }: Metrics): Series[] {
  return [
    { name: "CPU", points: pointsOf(cpuUsage) },
    { name: "Memory", points: pointsOf(memoryUsage) },
  ];
}

/** Samples in order of time, without invalid ones. Beyond 1e300, rounding overflows. */
export function pointsOf(samples: Metrics["cpuUsage"]): Series["points"] {
  return samples
    .map(({ timestamp, value }) => ({ at: parseTime(timestamp) ?? Number.NaN, value }))
    .filter(({ at, value }) => Number.isFinite(at) && Math.abs(value) < 1e300)
    .toSorted((a, b) => a.at - b.at);
}

/** The last value of each series that has samples. */
export function valuesNow(usage: Metrics): [name: string, value: number][] {
  const all = seriesOf(usage).map(({ name, points }) => [name, points.at(-1)?.value] as const);
  return [...all, ["Disk", usage.diskUsage] as const].flatMap(([name, value]) =>
    value === undefined ? [] : [[name, value]],
  );
}

/** CPU, memory, and disk in words, for screen readers and notifications. */
export function usageWords(usage: Metrics, zone = "UTC"): string {
  const disk = usage.diskUsage === undefined ? "no value" : shortNumber(usage.diskUsage);
  const lines = seriesOf(usage).map(({ name, points }) => {
    const last = points.at(-1);
    if (!last) return `${name}: no samples.`;
    const sorted = points.map(({ value }) => value).toSorted((a, b) => a - b);
    const [least, most] = [sorted.at(0) ?? 0, sorted.at(-1) ?? 0].map(shortNumber);
    return `${name}: minimum ${least}, maximum ${most}, last ${shortNumber(last.value)} at ${momentWords(last.at, zone)}.`;
  });
  return [...lines, `Disk: ${disk}.`].join(" ");
}
