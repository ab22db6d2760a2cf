/** At most `width` at a time, and no more once it is over. The first that throws ends it and is thrown. */
export async function inParallel<T>(
  items: readonly T[],
  width: number,
  work: (item: T) => Promise<void>,
  isOver: () => boolean,
): Promise<void> {
  const queue = items.values();
  let broken: { error: unknown } | undefined;
  const worker = async (): Promise<void> => {
    for (const item of queue) {
      if (broken || isOver()) return;
      try {
        // oxlint-disable-next-line no-await-in-loop -- the width is the number of these loops
        await work(item);
      } catch (error) {
        broken ??= { error };
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(width, items.length) }, worker));
  if (broken) throw broken.error;
}

export function shuffle<T>(items: readonly T[]): T[] {
  const mixed = [...items];
  for (let last = mixed.length - 1; last > 0; last--) {
    const other = Math.floor(Math.random() * (last + 1));
    const kept = mixed[last];
    const swapped = mixed[other];
    if (kept === undefined || swapped === undefined) continue;
    mixed[last] = swapped;
    mixed[other] = kept;
  }
  return mixed;
}
