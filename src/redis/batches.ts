/** Splits a list into batches that are small enough to block neither Redis nor this process. */
export function* batches<T>(all: readonly T[]): Iterable<readonly T[]> {
  for (let from = 0; from < all.length; from += atOnce) yield all.slice(from, from + atOnce);
}

export const atOnce = 100;
