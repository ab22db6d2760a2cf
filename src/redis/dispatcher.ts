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

export interface Dispatcher {
  /** Takes nothing more, and waits for what is in flight. */
  close(deadlineMs: number): Promise<void>;
}

interface Lane {
  work: DueWork;
  inFlight: Set<string>;
  /** Of those in flight: put on the list again, or taken again, since they were begun. */
  again: Set<string>;
}

/**
 * Takes what is due and does it: at once what this process puts on a list, and what others left within `everyMs`. One ID is
 * never worked on twice at the same time here; two processes may work on the same one.
 */
export function startDispatcher(
  works: readonly DueWork[],
  { everyMs, log }: { everyMs(): number; log: Log },
): Dispatcher {
  const closing = new AbortController();
  let woken = Promise.withResolvers<void>();
  const wake = () => woken.resolve();
  const lanes = works.map((work): Lane => ({ work, inFlight: new Set(), again: new Set() }));
  const running = new Set<Promise<void>>();
  for (const { work, inFlight, again } of lanes)
    work.due.onRing((id) => {
      if (id !== undefined && inFlight.has(id)) again.add(id);
      else wake();
    });
  const taking = loop();
  return {
    async close(deadlineMs) {
      closing.abort();
      wake();
      await within(deadlineMs, taking, () => undefined);
    },
  };

  async function loop(): Promise<void> {
    while (!closing.signal.aborted) {
      const pauses = await Promise.all(lanes.map(takeFor));
      const pauseMs = Math.min(everyMs(), ...pauses);
      if (pauseMs > 0 && !closing.signal.aborted) await pause(pauseMs);
    }
    await Promise.all(running);
  }

  /** Resolves with when to look again (ms). */
  async function takeFor(lane: Lane): Promise<number> {
    const room = lane.work.atOnce - lane.inFlight.size;
    if (room <= 0) return Infinity;
    try {
      const { ids, nextMs } = await lane.work.due.takeDue(room, lane.work.visibilityTimeoutMs());
      for (const id of ids) begin(lane, id);
      return nextMs ?? Infinity;
    } catch {
      // Redis is unavailable: its connection reports it, and the lists persist
      return Infinity;
    }
  }

  function begin(lane: Lane, id: string): void {
    const { work, inFlight, again } = lane;
    if (inFlight.has(id)) {
      again.add(id);
      return;
    }
    inFlight.add(id);
    const mine = work
      .handle(id)
      .catch((error: unknown) => log.error(`${work.name}.failed`, { [work.of]: id, error }))
      .then((dueInMs) => {
        running.delete(mine);
        const wasFull = inFlight.size >= work.atOnce;
        inFlight.delete(id);
        if (again.delete(id) && !closing.signal.aborted) begin(lane, id);
        else if (wasFull) wake();
        else if (typeof dueInMs === "number") setTimeout(wake, dueInMs).unref();
      });
    running.add(mine);
  }

  async function pause(ms: number): Promise<void> {
    const timer = setTimeout(wake, ms);
    await woken.promise;
    clearTimeout(timer);
    woken = Promise.withResolvers<void>();
  }
}
