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
