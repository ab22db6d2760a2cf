import type { Job, Queue } from "bullmq";
import type { Log } from "../log/log.ts";
import type { RedisClient } from "../redis/redis.ts";
import { repeatHere } from "../redis/repeat.ts";
import { startQueueWorker } from "./queue-worker.ts";

/** What one worker does for the whole installation, again and again. Running it twice must be harmless. */
export interface Schedule {
  /** The ID of its job scheduler: dashboards show it. */
  name: string;
  /** At a local time (`pattern` is a cron expression), or after so many milliseconds. */
  repeat: { pattern: string; tz: string } | { every: number };
  /** Throws when it is to be tried again. */
  run(): Promise<unknown>;
  /** With `every`: how soon it is tried again after a failure (ms), until its next time comes. */
  retryAfterMs?: number;
}

/** A next time that is later than it can be by this much was worked out by a clock that was ahead (ms). */
const mostAheadMs = 5_000;
const atOnce = 5;

/**
 * Runs schedules with BullMQ's job schedulers, once it is told to `take` jobs: whichever worker is free runs the next one.
 * `schedules` are those of this moment: they may come and go. Those that nobody names any more are removed.
 */
export function startSchedules(options: {
  queue: Queue;
  connection: RedisClient;
  prefix: string;
  heartbeatMs: number;
  /** How often schedules are compared with those in Redis, which somebody may have removed by hand. */
  syncEveryMs: number;
  schedules(): Promise<readonly Schedule[]>;
  /** False in a process that lacks the current policy: what it knows of schedules is old. */
  isCurrent(): boolean;
  log: Log;
}) {
  const { queue, log } = options;
  /** What runs here: a task that takes longer than its pause isn't begun beside itself. */
  const running = new Set<string>();

  async function sync(): Promise<void> {
    // The next times that a clock which is off works out are wrong
    if (worker.isHeld() || !options.isCurrent()) return;
    const wanted = await options.schedules();
    for (const { key, next } of await queue.getJobSchedulers()) {
      const schedule = wanted.find(({ name }) => name === key);
      // `upsertJobScheduler` keeps the next time of one that stands
      if (!schedule || isPutOff(schedule, next)) await queue.removeJobScheduler(key);
    }
    for (const { name, repeat, retryAfterMs } of wanted)
      await queue.upsertJobScheduler(name, repeat, {
        name,
        opts:
          retryAfterMs === undefined || !("every" in repeat)
            ? {}
            : retrying(repeat.every, retryAfterMs),
      });
  }

  const worker = startQueueWorker({
    ...options,
    concurrency: atOnce,
    subjectOf: ({ name }) => ({ schedule: name }),
    async process(job) {
      const { name } = job;
      if (name === syncJob) return sync();
      const schedule = (await options.schedules()).find((one) => one.name === name);
      if (!schedule || running.has(name)) return;
      // Several that are slow and fail would pile up
      if (job.attemptsMade > 0 && hasBegunAnew(job, schedule)) return;
      running.add(name);
      try {
        await schedule.run();
      } finally {
        running.delete(name);
      }
    },
  });
  const syncing = repeatHere("schedules", options.syncEveryMs, sync, log);

  return {
    hold: worker.hold,
    /** Takes jobs from now on, and compares the schedules with those in Redis. */
    take(): void {
      worker.take();
      void syncing.now();
    },
    /** Compares the schedules with those in Redis, unless it is held. */
    sync: syncing.now,
    /** Takes nothing more, and waits for what runs, at most `deadlineMs`. */
    async close(deadlineMs: number): Promise<void> {
      await syncing.close();
      await worker.close(deadlineMs);
    },
  };
}

/** It is to run later than it ever can. */
const isPutOff = ({ repeat }: Schedule, next = 0): boolean =>
  "every" in repeat && next > Date.now() + repeat.every + mostAheadMs;

/** The next time of its schedule has come. */
const hasBegunAnew = ({ timestamp, opts }: Job, { repeat }: Schedule): boolean =>
  "every" in repeat && Date.now() >= timestamp + (opts.delay ?? 0) + repeat.every;

const syncJob = "sync";

/** Schedules have changed: one worker compares them with those in Redis now. */
export const requestSync = (queue: Queue): Promise<unknown> => queue.add(syncJob, {});

function retrying(everyMs: number, afterMs: number) {
  const tries = Math.floor(everyMs / afterMs);
  return { attempts: Math.max(1, tries), backoff: { type: "fixed", delay: afterMs } };
}
