import { addAbortListener } from "node:events";

/**
 * Limits how many calls run at once, before they start, so that the timeout of a call begins when
 * it may be sent. Resolves with undefined when the caller gave up before its turn.
 */
export function createSlots(count: number) {
  let free = count;
  const waiting = new Set<() => void>();

  return async <T>(work: () => Promise<T>, signal: AbortSignal | undefined) => {
    if (signal?.aborted) return undefined;
    if (free > 0) free -= 1;
    else {
      const { promise: isOurs, resolve } = Promise.withResolvers<boolean>();
      const begin = () => end(true);
      const end = (began: boolean) => {
        waiting.delete(begin);
        resolve(began);
      };
      waiting.add(begin);
      const listening = signal && addAbortListener(signal, () => end(false));
      const isTurn = await isOurs;
      listening?.[Symbol.dispose]();
      if (!isTurn) return undefined;
    }
    try {
      return await work();
    } finally {
      const [next] = waiting;
      if (next) next();
      else free += 1;
    }
  };
}
