import type { Log } from "../log/log.ts";
import { duration } from "../messages/markdown.ts";
import type { DatedAnswer } from "../slack/web.ts";

/**
 * How much the clock of a process may differ from Redis's (ms). BullMQ delays jobs by the clocks of
 * processes, while Gatehouse decides by Redis's clock, so a process whose clock differs more takes
 * no jobs.
 */
const mostClockOffMs = 2_000;

/** How far a process's clock is from Redis's or Slack's, in words: `3 h ahead of Redis's`. */
export const offInWords = (offMs: number, whose: "Redis's" | "Slack's" = "Redis's"): string =>
  `${duration(Math.abs(offMs))} ${offMs > 0 ? "ahead of" : "behind"} ${whose}`;

export const isClockOff = (offMs: number): boolean => Math.abs(offMs) > mostClockOffMs;

export type Clock = ReturnType<typeof createClock>;

/** Tracks how far this process's clock is from Redis's. */
export function createClock(log: Log) {
  let offMs = 0;
  /** Redis's time at the last comparison (ms), and when that was by the monotonic clock. */
  let compared: { redisMs: number; at: number } | undefined;
  const listeners: ((isOff: boolean) => void)[] = [];

  return {
    /** How far this clock is ahead (ms), negative when it is behind. 0 until they were compared. */
    offMs: () => offMs,

    /**
     * The time by Redis's clock, as exactly as this process knows it (ms). Since the last comparison
     * it is counted by the monotonic clock, so that a step of this machine's clock, which only the
     * next comparison shows, dates nothing wrongly until then.
     */
    now: () =>
      compared === undefined
        ? Date.now()
        : Math.round(compared.redisMs + performance.now() - compared.at),

    /**
     * Registers a listener for when the clocks begin to differ too much, and when they agree again.
     */
    onChange: (listener: (isOff: boolean) => void) => void listeners.push(listener),

    /**
     * Compares the clocks. Redis read `redisMs` at some time between `askedAt` and `answeredAt` by
     * this clock. Only what lies outside of that interval is certainly a difference, so a slow
     * answer doesn't count as one.
     */
    compare(askedAt: number, redisMs: number, answeredAt: number): void {
      const was = isClockOff(offMs);
      offMs = Math.max(0, askedAt - redisMs) + Math.min(0, answeredAt - redisMs);
      compared = { redisMs: answeredAt - offMs, at: performance.now() };
      const isOff = isClockOff(offMs);
      if (isOff === was) return;
      if (isOff) log.warn("clock.off", { offMs, why: ownClockWords(offMs) });
      else log.info("clock.agrees", { offMs });
      for (const listener of listeners) listener(isOff);
    },
  };
}

/**
 * How much the clock of a process may differ from Slack's (ms). Slack's signatures are valid for
 * five minutes.
 */
const mostOffSlackMs = 60_000;

export const isOffSlack = (offMs: number): boolean => Math.abs(offMs) > mostOffSlackMs;

export type SlackClock = ReturnType<typeof createSlackClock>;

/** Tracks how far this process's clock is from Slack's, by the dates of Slack's answers. */
export function createSlackClock() {
  let offMs = 0;
  return {
    /** How far this clock is ahead (ms), negative when it is behind. 0 until Slack answered. */
    offMs: () => offMs,
    /** As with Redis's clock, only what the time of the answer can't explain is a difference. */
    compare({ askedAt, date, answeredAt }: DatedAnswer): void {
      if (Number.isNaN(date)) return;
      offMs = Math.max(0, askedAt - date - 1_000) + Math.min(0, answeredAt - date);
    },
  };
}

/** Says how far this machine's clock is from another. */
export const ownClockWords = (offMs: number, whose?: "Slack's"): string =>
  `this machine's clock is ${offInWords(offMs, whose)}`;

/** Why this process takes no work because of its clock. Undefined when it agrees. */
export const clockProblem = ({ offMs }: Pick<Clock, "offMs">): string | undefined =>
  isClockOff(offMs()) ? ownClockWords(offMs()) : undefined;

/** Something that takes jobs, and can be put on hold. */
interface Holdable {
  take(): void;
  hold(): Promise<void>;
}

/**
 * Lets the workers of this process take jobs while its clock agrees with Redis's. BullMQ delays
 * jobs by the clocks of processes, so a process with a wrong clock would delay them too long, or
 * not at all. It is closed first, so that a stopping process takes no more jobs.
 */
export function createTaking(clock: Clock) {
  const workers: { worker: Holdable; untilClosed: boolean }[] = [];
  let isStopping = false;
  const mayTake = ({ untilClosed }: { untilClosed: boolean }) =>
    clockProblem(clock) === undefined && (untilClosed || !isStopping);

  async function holdOthers(): Promise<void> {
    const others = workers.filter((entry) => !mayTake(entry));
    await Promise.allSettled(others.map(({ worker }) => worker.hold()));
  }

  clock.onChange((isOff) => {
    if (isOff) void holdOthers();
    else for (const entry of workers) if (mayTake(entry)) entry.worker.take();
  });
  return {
    /**
     * With `untilClosed`, the worker also takes jobs while the process stops, so that results from
     * that time are delivered.
     */
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
