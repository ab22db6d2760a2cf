/** Few enough per call that neither Redis nor this process blocks. */
export function* batches<T>(all: readonly T[]): Iterable<readonly T[]> {
  for (let from = 0; from < all.length; from += atOnce) yield all.slice(from, from + atOnce);
}

export const atOnce = 100;
