import type { Journalled } from "./count-effects.ts";

/** Where a process was killed that had this request in hand, and when (ms). */
interface Hit {
  what: string;
  at: number;
}

/**
 * How long requests stood still that a killed process had in hand (ms): from the kill to the next move that another process
 * made. The start of that process is in it.
 */
export function recoveries(hits: readonly Hit[], journal: readonly Journalled[]): number[] {
  return hits.flatMap(({ what, at }) => {
    const request = journal.find(({ id }) => id === what);
    const next = request?.movedAt.find((movedAt) => movedAt > at);
    return next === undefined ? [] : [next - at];
  });
}

/** The value that `share` of all are at most; NaN of nothing. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
