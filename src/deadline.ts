/**
 * Milliseconds since now by whichever clock moved more. The monotonic one stands still while a machine is suspended, and
 * the wall clock may be set back.
 */
export function stopwatch(): () => number {
  const [began, beganAt] = [performance.now(), Date.now()];
  return () => Math.max(performance.now() - began, Date.now() - beganAt);
}

/**
 * The promise's outcome, or after `ms` what `late` returns or throws. The promise itself continues, its outcome ignored.
 * The timer keeps no process alive.
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
