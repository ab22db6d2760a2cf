let stretch = 1;

/**
 * Multiplies the deadlines of this process from now on. Tests call it, so that no deadline passes only because a
 * machine is slow. It is for deadlines that someone else must meet, not for the pace of work.
 */
export function stretchDeadlines(factor: number): void {
  stretch = factor;
}

/** Returns the deadline (ms) as this process keeps it. */
export const deadlineMs = (ms: number): number => ms * stretch;

/** Returns a signal that aborts once the deadline has passed. */
export const deadlineSignal = (ms: number): AbortSignal =>
  AbortSignal.timeout(Math.ceil(deadlineMs(ms)));

/**
 * Resolves or rejects as `promise` does. When that takes longer than `ms`, the result is what
 * `late` returns or throws; the promise itself continues, and its outcome is ignored. The timer
 * doesn't keep the process alive.
 */
export async function within<T, L>(ms: number, promise: Promise<T>, late: () => L): Promise<T | L> {
  const { promise: timeout, resolve } = Promise.withResolvers<L>();
  const timer = setTimeout(() => resolve(Promise.try(late)), Math.max(0, ms)).unref();
  try {
    return await Promise.race([promise, timeout]);
  } finally {
    clearTimeout(timer);
  }
}
