import { type Queue, type RepeatOptions, Worker } from "bullmq";
import { within } from "../deadline.ts";
import { messageOf } from "../errors.ts";
import type { Log } from "../log/log.ts";
import type { RedisClient } from "../redis/redis.ts";
import { repeatHere } from "../redis/repeat.ts";
import { holdable, workerOptions } from "./workers.ts";

/** What one worker does for the whole installation, again and again. Running it twice must be harmless. */
export interface Schedule {
  /** The ID of its job scheduler: dashboards show it. */
  name: string;
  /** At a local time (`pattern` is a cron expression), or after so many milliseconds. */
  repeat: { pattern: string; tz: string } | { every: number };
  /** Throws when it is to be tried again. */
  run(): Promise<unknown>;
  /** How soon it is tried again after a failure (ms), while it isn't due anyway. */
  retryAfterMs?: number;
}

/** How often schedules are compared with those in Redis, which somebody may have removed by hand (ms). */
const syncEveryMs = 60_000;
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
  schedules(): Promise<readonly Schedule[]>;
  log: Log;
}) {
  const { queue, log } = options;
  const known = new Map<string, Schedule>();
  /** What runs here: a task that takes longer than its pause isn't begun beside itself. */
  const running = new Set<string>();

  async function sync(): Promise<void> {
    const wanted = await options.schedules();
    known.clear();
    for (const schedule of wanted) known.set(schedule.name, schedule);
    for (const { name, repeat, retryAfterMs } of wanted)
      await queue.upsertJobScheduler(name, repeat, {
        name,
        opts: retryAfterMs === undefined ? {} : retrying(repeat, retryAfterMs),
      });
    for (const { key } of await queue.getJobSchedulers())
      if (!known.has(key)) await queue.removeJobScheduler(key);
  }

  const { of, refuse, ...hold } = holdable(log);
  const worker = new Worker(
    queue.name,
    async (job, token) => {
      await refuse(job, token);
      const { name } = job;
      if (name === syncJob) return sync();
      const schedule = known.get(name);
      if (!schedule || running.has(name)) return;
      running.add(name);
      try {
        await schedule.run();
      } catch (error) {
        log.warn("schedule.failed", { schedule: name, why: messageOf(error) });
        throw error;
      } finally {
        running.delete(name);
      }
    },
    { ...workerOptions(options), concurrency: atOnce },
  );
  worker.on("error", (error) => log.warn("queue.error", { queue: queue.name, error }));
  of(worker);
  const syncing = repeatHere("schedules", syncEveryMs, sync, log);

  return {
    ...hold,
    sync: syncing.now,
    /** Takes nothing more, and waits for what runs, at most `deadlineMs`. */
    async close(deadlineMs: number): Promise<void> {
      await syncing.close();
      await within(deadlineMs, worker.close(), () => {
        void worker.close(true).catch(() => undefined);
      });
    },
  };
}

const syncJob = "sync";

/** Schedules have changed: one worker compares them with those in Redis now. */
export const requestSync = (queue: Queue): Promise<unknown> => queue.add(syncJob, {});

function retrying(repeat: RepeatOptions, afterMs: number) {
  const tries = repeat.every === undefined ? 3 : Math.floor(repeat.every / afterMs);
  return { attempts: Math.max(1, tries), backoff: { type: "fixed", delay: afterMs } };
}
