import { type Job, WaitingError, type Worker } from "bullmq";
import type { Log } from "../log/log.ts";
import type { RedisClient } from "../redis/redis.ts";
import { telemetry } from "./queues.ts";

/** At most so long a worker has a job to itself unless it renews this (ms): BullMQ gives a dead worker's job to another soon after. */
const longestLockMs = 5_000;

/** What the workers of all queues have in common. */
export function workerOptions({ connection, prefix, heartbeatMs }: WorkerPlace) {
  const lockMs = Math.min(longestLockMs, 10 * heartbeatMs);
  return {
    connection,
    prefix,
    telemetry,
    lockDuration: lockMs,
    stalledInterval: lockMs / 2,
    // However often its worker dies, what a job stands for is in the journal
    maxStalledCount: 50,
    // A worker that is killed may take the sign of a job with it: the others look for themselves this often
    drainDelay: Math.max(1, (2 * heartbeatMs) / 1000),
    runRetryDelay: 1000,
    autorun: false,
  };
}

interface WorkerPlace {
  connection: RedisClient;
  prefix: string;
  heartbeatMs: number;
}

/**
 * A worker that takes jobs only while it may. `refuse` gives back the one job that BullMQ 6.7.0 still hands to a worker that was
 * waiting for it when it was paused.
 */
export function holdable(log: Log) {
  let isHeld = true;
  let worker: Worker | undefined;
  return {
    of: (its: Worker) => void (worker = its),
    isHeld: () => isHeld,
    /** Takes jobs from now on. */
    take(): void {
      isHeld = false;
      const taking = worker?.isPaused() ? worker.resume() : worker?.run();
      taking?.catch((error: unknown) => log.error("queue.stopped", { error }));
    },
    /** Takes no more jobs; those that run go on. */
    async hold(): Promise<void> {
      isHeld = true;
      await worker?.pause(true);
    },
    async refuse(job: Job, token: string | undefined): Promise<void> {
      if (!isHeld) return;
      await job.moveToWait(token);
      throw new WaitingError();
    },
  };
}
