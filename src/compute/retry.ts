/** 10 % of calls, at most 100 saved up; a quiet bot may always retry a little: ten at once, then one every 2 seconds. */
const share = 0.1;
const most = 100;
const floor = 10;
const floorRefillMs = 2000;

export interface RetryBudget {
  /** A call was made: it earns a tenth of a retry. */
  earn(): void;
  /** Takes one retry if there is one. */
  spend(): boolean;
}

/** Keeps retries from multiplying the load on a service in trouble. Share one between clients of the same service. */
export function createRetryBudget(now: () => number = () => performance.now()): RetryBudget {
  let tokens = floor;
  let filledAt = now();
  return {
    earn() {
      tokens = Math.min(most, tokens + share);
    },
    spend() {
      const at = now();
      if (tokens < floor) tokens = Math.min(floor, tokens + (at - filledAt) / floorRefillMs);
      filledAt = at;
      if (tokens < 1) return false;
      tokens -= 1;
      return true;
    },
  };
}

export interface RetryDelays {
  /** Upper bound of the first wait; doubles with each. */
  baseMs: number;
  /** No wait is longer, and a service that asks for a longer one gets no retry. */
  mostMs: number;
  /** 0 ≤ random < 1. */
  random: () => number;
}

export const defaultDelays: RetryDelays = { baseMs: 250, mostMs: 5000, random: Math.random };
export const mostTries = 4;

/** How long to wait before trying a read again, or undefined: give up. Full jitter; `Retry-After` comes first. */
export function retryWaitMs(
  failed: { again: boolean; tries: number; retryAfterMs?: number | undefined },
  delays: RetryDelays,
): number | undefined {
  if (!failed.again || failed.tries >= mostTries) return undefined;
  const jitter = delays.random() * Math.min(delays.mostMs, delays.baseMs * 2 ** (failed.tries - 1));
  if (failed.retryAfterMs === undefined) return jitter;
  if (failed.retryAfterMs > delays.mostMs) return undefined;
  return Math.min(delays.mostMs, failed.retryAfterMs + jitter);
}

const mostRetryAfterMs = 3_600_000;

/** `Retry-After` in seconds or as a date (RFC 9110), as milliseconds from now, at most an hour; undefined if neither. */
export function parseRetryAfter(
  value: string | undefined,
  now: number = Date.now(),
): number | undefined {
  if (value === undefined) return undefined;
  const text = value.trim();
  if (/^\d{1,9}(\.\d+)?$/.test(text))
    return Math.min(mostRetryAfterMs, Math.round(Number(text) * 1000));
  const at = /[a-z]{3}/i.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(at) ? undefined : Math.min(mostRetryAfterMs, Math.max(0, at - now));
}
