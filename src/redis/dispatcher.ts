import { setTimeout as sleep } from "node:timers/promises";
import { within } from "../deadline.ts";
import type { Log } from "../log/log.ts";
import type { DueList } from "./due-list.ts";

/** What is done with the IDs of a due list. */
export interface DueWork {
  /** For the log: what failed, and what its IDs name. */
  name: string;
  of: string;
  due: Pick<DueList, "takeDue" | "onRing">;
  /** How many at a time. */
  atOnce: number;
  visibilityTimeoutMs(): number;
  /**
   * Ends with the ID off the list, or due later: then in how many milliseconds. What throws is due again after the visibility
   * timeout.
   */
  handle(id: string): Promise<number | undefined>;
}

export type Dispatcher = ReturnType<typeof startDispatcher>;

/**
 * Takes what is due and does it: at once what this process puts on a list, and what others left within `everyMs`. One ID is
 * never worked on twice at the same time here; two processes may work on the same one.
 */
export function startDispatcher(
  works: readonly DueWork[],
  options: { everyMs(): number; log: Log },
) {
  const closing = new AbortController();
  const running = Promise.all(works.map((work) => runWork(work, closing.signal, options)));
  return {
    /** Takes nothing more, and waits for what is in flight. */
    async close(deadlineMs: number): Promise<void> {
      closing.abort();
      await within(deadlineMs, running, () => undefined);
    },
  };
}

/** Resolves once the signal is aborted and what is in flight has ended. */
async function runWork(
  work: DueWork,
  closing: AbortSignal,
  { everyMs, log }: { everyMs(): number; log: Log },
): Promise<void> {
  const { due, atOnce, handle } = work;
  const inFlight = new Map<string, Promise<void>>();
  /** Of those in flight: put on the list again, or taken again, since they were begun. */
  const again = new Set<string>();
  let rest = new AbortController();
  const wake = () => rest.abort();
  closing.addEventListener("abort", wake);
  due.onRing((id) => {
    if (id !== undefined && inFlight.has(id)) again.add(id);
    else wake();
  });
  while (!closing.aborted) {
    const pauseMs = Math.min(everyMs(), await takeDue());
    if (pauseMs <= 0 || closing.aborted) continue;
    await Promise.allSettled([sleep(pauseMs, undefined, { signal: rest.signal })]);
    rest = new AbortController();
  }
  await Promise.all(inFlight.values());

  /** Resolves with when to look again (ms). */
  async function takeDue(): Promise<number> {
    const room = atOnce - inFlight.size;
    if (room <= 0) return Infinity;
    try {
      const { ids, nextMs } = await due.takeDue(room, work.visibilityTimeoutMs());
      for (const id of ids)
        if (inFlight.has(id)) again.add(id);
        else begin(id);
      return nextMs;
    } catch {
      // Redis is unavailable: its connection reports it, and the lists persist
      return Infinity;
    }
  }

  function begin(id: string): void {
    const mine = handle(id)
      .catch((error: unknown) => log.error(`${work.name}.failed`, { [work.of]: id, error }))
      .then((dueInMs) => {
        const wasFull = inFlight.size >= atOnce;
        inFlight.delete(id);
        if (again.delete(id) && !closing.aborted) begin(id);
        else if (wasFull) wake();
        else if (typeof dueInMs === "number") setTimeout(wake, dueInMs).unref();
      });
    inFlight.set(id, mine);
  }
}
