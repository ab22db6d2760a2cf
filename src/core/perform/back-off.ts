import type { Policy } from "../../config/policy-file.ts";

/** Full jitter, so that many requests that wait don't come again at the same time. */
export function jitter(ms: number): number {
  return Math.random() * ms;
}

/**
 * Returns 2, 4, 8 … times the first poll interval, at most the longest one. Half of it is jitter.
 */
export function backoff(times: number, timing: Policy["timing"]): number {
  const whole = Math.min(timing.pollMostMs, timing.pollFirstMs * 2 ** Math.min(times, 10));
  return whole / 2 + jitter(whole / 2);
}
