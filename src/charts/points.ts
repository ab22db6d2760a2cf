import type { Point } from "./chart.ts";

/** Dates end there (https://tc39.es/ecma262/#sec-time-values-and-time-range). */
const lastDate = 8.64e15;
/** Larger values would overflow when subtracted; nobody reads them anyway. */
const largest = 1e300;

/** In the order of their time, without those whose time can't be read. What isn't finite stays: it is a gap. */
export function tidy(points: readonly Point[]): Point[] {
  return points
    .filter(({ at }) => Math.abs(at) <= lastDate)
    .map(({ at, value }) => ({
      at,
      value: Number.isFinite(value) ? Math.max(-largest, Math.min(largest, value)) : Number.NaN,
    }))
    .toSorted((a, b) => a.at - b.at);
}

/**
 * Fewer points of a stretch, about `most`: of each part of its time the lowest and the highest stay, so that no spike is
 * lost, and so do its ends. Takes finite values in order.
 */
export function downsample(points: readonly Point[], most: number): readonly Point[] {
  const [first, last] = [points[0], points.at(-1)];
  if (points.length <= most || !first || !last) return points;
  const buckets = Math.max(1, Math.floor(most / 2));
  const width = (last.at - first.at) / buckets || 1;
  const kept: Point[] = [first];
  let bucket: Point[] = [];
  let index = 0;
  for (const point of points.slice(1, -1)) {
    const its = Math.min(buckets - 1, Math.floor((point.at - first.at) / width));
    if (its !== index) kept.push(...extremes(bucket));
    if (its !== index) bucket = [];
    index = its;
    bucket.push(point);
  }
  return [...kept, ...extremes(bucket), last];
}

function extremes(bucket: readonly Point[]): Point[] {
  const [first] = bucket;
  if (!first) return [];
  let [low, high] = [first, first];
  for (const point of bucket) {
    if (point.value < low.value) low = point;
    if (point.value > high.value) high = point;
  }
  if (low === high) return [low];
  return low.at <= high.at ? [low, high] : [high, low];
}

/**
 * The stretches without a gap. A gap is a value that isn't finite, or a pause of more than three times the usual
 * (median) distance between samples.
 */
export function stretches(points: readonly Point[]): Point[][] {
  const pauses = points.slice(1).map(({ at }, index) => at - (points[index]?.at ?? at));
  const usual = pauses.toSorted((a, b) => a - b)[Math.floor(pauses.length / 2)] ?? 0;
  const found: Point[][] = [];
  let current: Point[] = [];
  for (const point of points) {
    const before = current.at(-1);
    const isLate = before !== undefined && usual > 0 && point.at - before.at > 3 * usual;
    const isKnown = Number.isFinite(point.value);
    if ((isLate || !isKnown) && current.length > 0) {
      found.push(current);
      current = [];
    }
    if (isKnown) current.push(point);
  }
  return current.length > 0 ? [...found, current] : found;
}

/** Lowest and highest finite value; undefined when there is none. */
export function rangeOf(points: Iterable<Point>): { low: number; high: number } | undefined {
  let [low, high] = [Infinity, -Infinity];
  for (const { value } of points) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low <= high ? { low, high } : undefined;
}
