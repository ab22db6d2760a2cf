import type { Job, Queue } from "bullmq";
import type { Log } from "../log/log.ts";
import type { RedisClient } from "../redis/redis.ts";
import { repeatHere } from "../redis/repeat.ts";
import { startQueueWorker } from "./queue-worker.ts";

/**
 * A task that one worker does for the whole installation, again and again. Running it twice must be
 * harmless.
 */
export interface Schedule {
  /** The ID of its job scheduler, which dashboards show. */
  name: string;
  /** Either a local time (`pattern` is a cron expression) or an interval in milliseconds. */
  repeat: { pattern: string; tz: string } | { every: number };
  /** Throws when it should be tried again. */
  run(): Promise<unknown>;
  /** With `every`: how soon it is tried again after a failure (ms), until its next time comes. */
  retryAfterMs?: number;
}

/**
 * A next time that lies this much further ahead than it should was computed by a clock that was
 * ahead (ms).
 */
const mostAheadMs = 5_000;
const atOnce = 5;

/**
 * Runs schedules with BullMQ's job schedulers, once `take` was called on the result. Whichever
 * worker is free runs the next one. `schedules` returns the schedules of the moment, which may
 * change; those that it no longer returns are removed.
 */
export function startSchedules(options: {
  queue: Queue;
  connection: RedisClient;
  prefix: string;
  heartbeatMs: number;
  /**
   * How often the schedules are compared with those in Redis, which somebody may have removed by
   * hand.
   */
  syncEveryMs: number;
  schedules(): Promise<readonly Schedule[]>;
  /** False in a process without the current policy, whose schedules are outdated. */
  isCurrent(): boolean;
  log: Log;
}) {
  const { queue, log } = options;
  /**
   * The schedules that run in this process. A task that takes longer than its interval isn't
   * started a second time.
   */
  const running = new Set<string>();

  async function sync(): Promise<void> {
    // A process with a wrong clock is on hold, because the next times that it would compute are
    // wrong.
    if (worker.isHeld() || !options.isCurrent()) return;
    const wanted = await options.schedules();
    for (const { key, next } of await queue.getJobSchedulers()) {
      const schedule = wanted.find(({ name }) => name === key);
      // `upsertJobScheduler` keeps the next time of an existing scheduler, so one with a wrong time
      // is removed first.
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
      const schedule = (await options.schedules()).find((candidate) => candidate.name === name);
      if (!schedule || running.has(name)) return;
      // Retries of a slow task that fails would otherwise pile up.
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
    /** Compares the schedules with those in Redis, unless it is on hold. */
    sync: syncing.now,
    /** Takes no more jobs, and waits at most `deadlineMs` for those in progress. */
    async close(deadlineMs: number): Promise<void> {
      await syncing.close();
      await worker.close(deadlineMs);
    },
  };
}

/** Whether the next run is planned for later than it ever should be. */
const isPutOff = ({ repeat }: Schedule, next = 0): boolean =>
  "every" in repeat && next > Date.now() + repeat.every + mostAheadMs;

/** Whether the next time of the schedule has come already. */
const hasBegunAnew = ({ timestamp, opts }: Job, { repeat }: Schedule): boolean =>
  "every" in repeat && Date.now() >= timestamp + (opts.delay ?? 0) + repeat.every;

const syncJob = "sync";

/** Makes one worker compare the schedules with those in Redis now, because they have changed. */
export const requestSync = (queue: Queue): Promise<unknown> => queue.add(syncJob, {});

function retrying(everyMs: number, afterMs: number) {
  const tries = Math.floor(everyMs / afterMs);
  return { attempts: Math.max(1, tries), backoff: { type: "fixed", delay: afterMs } };
}
