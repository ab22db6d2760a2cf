import { type Job, type Queue, WaitingError, Worker } from "bullmq";
import { within } from "../deadline.ts";
import type { LogFields, Log } from "../log/log.ts";
import type { RedisClient } from "../redis/redis.ts";
import { telemetry } from "./queues.ts";

/** At most so long a worker has a job to itself unless it renews this (ms): BullMQ gives a dead worker's job to another soon after. */
const longestLockMs = 5_000;

/**
 * A BullMQ worker that begins held: it takes jobs once it is told to, and can be held again. `process` throws what BullMQ's workers
 * throw. Jobs that it has in hand go on while it is held.
 */
export function startQueueWorker<Data>(options: {
  queue: Queue<Data>;
  connection: RedisClient;
  prefix: string;
  heartbeatMs: number;
  concurrency: number;
  process(job: Job<Data>, token: string | undefined): Promise<unknown>;
  /** What the log tells of a job that failed or stalled. */
  subjectOf(job: Job<Data>): LogFields;
  log: Log;
}) {
  const { queue, connection, prefix, heartbeatMs, concurrency, subjectOf, log } = options;
  const lockMs = Math.min(longestLockMs, 10 * heartbeatMs);
  let isHeld = true;

  /** BullMQ 6.7.0 still hands one job to a worker that was waiting for it when it was paused. */
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
      // What a job stands for is in the journal, and an interaction counts for itself how many gateways died over it
      maxStalledCount: 50,
      // BullMQ's marker of a job may be lost with a worker that is killed: the others look without it this often (s)
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
    /** Takes no more jobs, and waits for those in hand, at most `deadlineMs`. */
    async close(deadlineMs: number): Promise<void> {
      // While Redis is unavailable, a worker never finishes closing, and takes no `force` once it has begun to
      await within(deadlineMs, worker.close(), () =>
        log.warn("queue.closed-with-work", { queue: queue.name }),
      );
    },
  };
}
