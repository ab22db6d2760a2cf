import { parseTime } from "../../text/parse-time.ts";

export type RetryDelays = typeof defaultDelays;

export const defaultDelays = {
  /** Upper bound of the first wait. It doubles each time. */
  baseMs: 250,
  /** The longest wait. A longer `Retry-After` means that there is no retry. */
  maxMs: 5000,
  /** Returns a number with 0 ≤ number < 1. */
  random: Math.random,
};
const maxTries = 4;

/**
 * How long to wait before a read is retried (ms): full jitter, added to `Retry-After`. Undefined
 * means that it is given up.
 */
export function retryWaitMs(
  tries: number,
  retryAfterMs: number | undefined,
  delays: RetryDelays,
): number | undefined {
  if (tries >= maxTries) return undefined;
  const jitter = delays.random() * Math.min(delays.maxMs, delays.baseMs * 2 ** (tries - 1));
  if (retryAfterMs === undefined) return jitter;
  if (retryAfterMs > delays.maxMs) return undefined;
  return Math.min(delays.maxMs, retryAfterMs + jitter);
}

const maxRetryAfterMs = 3_600_000;

/**
 * Parses `Retry-After` in seconds or as a date (RFC 9110) to milliseconds from now, at most an
 * hour. Undefined for anything else.
 */
export function parseRetryAfter(
  value: string | undefined,
  now: number = Date.now(),
): number | undefined {
  if (value === undefined) return undefined;
  const text = value.trim();
  if (/^\d{1,9}(\.\d+)?$/.test(text))
    return Math.min(maxRetryAfterMs, Math.round(Number(text) * 1000));
  const at = /[a-z]{3}/i.test(text) ? parseTime(text) : undefined;
  return at === undefined ? undefined : Math.min(maxRetryAfterMs, Math.max(0, at - now));
}
