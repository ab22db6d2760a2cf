/** Works off what is added, at most `width` at a time, and starts nothing more once it is over or something broke. */
export interface Pool<T> {
  add(items: Iterable<T>): void;
  /** Resolves when nothing runs and nothing will start; rejects with the first thing thrown. */
  drained(): Promise<void>;
}

/**
 * `work` may call `leave` before it ends: another item then takes its place while it does what is left. At most twice
 * the width is unfinished, so that who leaves early and takes long holds the others up.
 */
export function createPool<T>(
  width: number,
  work: (item: T, leave: () => void) => Promise<void>,
  isOver: () => boolean,
): Pool<T> {
  const queue: T[] = [];
  let next = 0;
  let running = 0;
  let unfinished = 0;
  let broken: { error: unknown } | undefined;
  let waiting: PromiseWithResolvers<void> | undefined;

  const hasRoom = () => running < width && unfinished < 2 * width;

  function startMore(): void {
    while (hasRoom() && next < queue.length && !broken && !isOver()) {
      const item = queue[next];
      next += 1;
      if (item !== undefined) void start(item);
    }
    if (unfinished > 0 || !waiting) return;
    if (broken) waiting.reject(broken.error);
    else waiting.resolve();
  }

  async function start(item: T): Promise<void> {
    running += 1;
    unfinished += 1;
    let isHere = true;
    const leave = () => {
      if (isHere) running -= 1;
      isHere = false;
    };
    try {
      await work(item, () => {
        leave();
        startMore();
      });
    } catch (error) {
      broken ??= { error };
    }
    leave();
    unfinished -= 1;
    startMore();
  }

  return {
    add(items) {
      for (const item of items) queue.push(item);
      startMore();
    },
    drained() {
      waiting = Promise.withResolvers<void>();
      startMore();
      return waiting.promise;
    },
  };
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
