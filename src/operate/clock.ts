import type { Log } from "../log/log.ts";
import { duration } from "../messages/message.ts";

/**
 * The most that the clock of a process may differ from that of Redis (ms). BullMQ delays jobs by the clocks of processes,
 * and Gatehouse decides by that of Redis: a process whose clock differs more takes no jobs.
 */
export const mostClockOffMs = 2_000;

/** How far a process's clock is from Redis's, in words: `3 h ahead of Redis's`. */
export const offInWords = (offMs: number): string =>
  `${duration(Math.abs(offMs))} ${offMs > 0 ? "ahead of" : "behind"} Redis's`;

export const isClockOff = (offMs: number): boolean => Math.abs(offMs) > mostClockOffMs;

export type Clock = ReturnType<typeof createClock>;

/** This process's clock, as compared with that of Redis. */
export function createClock(log: Log) {
  let offMs = 0;
  const listeners: ((isOff: boolean) => void)[] = [];

  return {
    /** By how much this clock is ahead, negative where it is behind (ms); 0 until they were compared. */
    offMs: () => offMs,

    /** The time by Redis's clock, as near as this process knows it (ms). */
    now: () => Date.now() - offMs,

    /** Called when the clocks begin to differ too much, and when they agree again. */
    onChange: (listener: (isOff: boolean) => void) => void listeners.push(listener),

    /**
     * Redis told `redisMs` at some time between `askedAt` and `answeredAt` by this clock, so only what lies outside of
     * that is sure to be a difference: a slow answer is none.
     */
    compare(askedAt: number, redisMs: number, answeredAt: number): void {
      const was = isClockOff(offMs);
      offMs = Math.max(0, askedAt - redisMs) + Math.min(0, answeredAt - redisMs);
      const is = isClockOff(offMs);
      if (is === was) return;
      if (is) log.warn("clock.off", { offMs, why: `this machine's clock is ${offInWords(offMs)}` });
      else log.info("clock.agrees", { offMs });
      for (const listener of listeners) listener(is);
    },
  };
}

/** Why this process takes no work, or undefined. */
export const clockProblem = ({ offMs }: Pick<Clock, "offMs">): string | undefined =>
  isClockOff(offMs()) ? `this machine's clock is ${offInWords(offMs())}` : undefined;

/** What takes jobs, and can be told not to. */
interface Holdable {
  take(): void;
  hold(): Promise<void>;
}

/**
 * Lets the workers of this process take jobs while its clock agrees with that of Redis: BullMQ delays jobs by the clocks of processes,
 * so one whose clock differs would put them off for too long, or not at all. Closed first, so that a process that stops takes no more.
 */
export function createTaking(clock: Clock) {
  const workers: { worker: Holdable; untilClosed: boolean }[] = [];
  let isStopping = false;
  const mayTake = ({ untilClosed }: { untilClosed: boolean }) =>
    clockProblem(clock) === undefined && (untilClosed || !isStopping);

  async function holdOthers(): Promise<void> {
    const others = workers.filter((one) => !mayTake(one));
    await Promise.allSettled(others.map(({ worker }) => worker.hold()));
  }

  clock.onChange((isOff) => {
    if (isOff) void holdOthers();
    else for (const one of workers) if (mayTake(one)) one.worker.take();
  });
  return {
    /** `untilClosed`: while the process stops, too. What ends then is told. */
    add(worker: Holdable, { untilClosed = false } = {}): void {
      workers.push({ worker, untilClosed });
      if (mayTake({ untilClosed })) worker.take();
    },
    async close(): Promise<void> {
      isStopping = true;
      await holdOthers();
    },
  };
}
