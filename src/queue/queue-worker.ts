import { type Job, type Queue, WaitingError, Worker } from "bullmq";
import { within } from "../deadline.ts";
import type { LogFields, Log } from "../log/log.ts";
import type { RedisClient } from "../redis/redis.ts";
import { telemetry } from "./queues.ts";

/**
 * The longest time for which a worker holds a job without renewing its lock (ms). Soon after it,
 * BullMQ gives the job of a dead worker to another.
 */
const longestLockMs = 5_000;

/**
 * A BullMQ worker that starts on hold: it takes jobs only once `take` was called, and can be put on
 * hold again. `process` may throw what BullMQ's processors throw. Jobs in progress continue while
 * the worker is on hold.
 */
export function startQueueWorker<Data>(options: {
  queue: Queue<Data>;
  connection: RedisClient;
  prefix: string;
  heartbeatMs: number;
  concurrency: number;
  process(job: Job<Data>, token: string | undefined): Promise<unknown>;
  /** Log fields that identify a job that failed or stalled. */
  subjectOf(job: Job<Data>): LogFields;
  log: Log;
}) {
  const { queue, connection, prefix, heartbeatMs, concurrency, subjectOf, log } = options;
  const lockMs = Math.min(longestLockMs, 10 * heartbeatMs);
  let isHeld = true;

  /**
   * Works around BullMQ 6.7.0, which still gives one job to a worker that was waiting for one when
   * it was paused.
   */
  async function giveBackWhileHeld(job: Job<Data>, token: string | undefined): Promise<void> {
    if (!isHeld) return;
    await job.moveToWait(token);
    throw new WaitingError();
  }

  const worker = new Worker<Data>(
    queue.name,
    async (job, token) => {
      await giveBackWhileHeld(job, token);
      await options.process(job, token);
    },
    {
      connection,
      prefix,
      telemetry,
      concurrency,
      lockDuration: lockMs,
      stalledInterval: lockMs / 2,
      // Stalled jobs aren't given up early: the journal has what a job stands for, and an
      // interaction has its own limit for gateways that died over it.
      maxStalledCount: 50,
      // BullMQ's marker of a new job may be lost with a worker that is killed. The others look for
      // jobs without it at this interval (s).
      drainDelay: Math.max(1, (2 * heartbeatMs) / 1000),
      runRetryDelay: 1000,
      autorun: false,
    },
  );
  worker.on("error", (error) => log.warn("queue.error", { queue: queue.name, error }));
  worker.on("failed", (job, error) =>
    log.error("queue.job-failed", { queue: queue.name, ...(job && subjectOf(job)), error }),
  );
  worker.on("stalled", (job) => log.warn("queue.job-stalled", { queue: queue.name, job }));

  return {
    isHeld: (): boolean => isHeld,
    /** Takes jobs from now on. */
    take(): void {
      isHeld = false;
      const taking = worker.isPaused() ? worker.resume() : worker.run();
      taking.catch((error: unknown) => log.error("queue.stopped", { queue: queue.name, error }));
    },
    /** Takes no more jobs. */
    async hold(): Promise<void> {
      isHeld = true;
      await worker.pause(true);
    },
    /** Takes no more jobs, and waits at most `deadlineMs` for those in progress. */
    async close(deadlineMs: number): Promise<void> {
      // While Redis is unavailable, a BullMQ worker never finishes closing, and ignores `force`
      // once it has begun to close.
      await within(deadlineMs, worker.close(), () =>
        log.warn("queue.closed-with-work", { queue: queue.name }),
      );
    },
  };
}
