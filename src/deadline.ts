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
