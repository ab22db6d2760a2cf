import { DelayedError, type Job, WaitingError, Worker } from "bullmq";
import { within } from "../deadline.ts";
import type { Log } from "../log/log.ts";
import type { RedisClient } from "../redis/redis.ts";
import { type RequestJob, requestQueue, telemetry } from "./queues.ts";

type Next = { is: "ended" } | { is: "wait"; ms: number };

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

/** A job that must wait is put back with a delay and frees its slot. One that lost its lock may run twice: steps are idempotent. */
export function startWorkers(options: {
  connection: RedisClient;
  prefix: string;
  heartbeatMs: number;
  concurrency: number;
  advance(id: string): Promise<Next>;
  /** Makes every step that is put off due now. */
  bringForward(): Promise<unknown>;
  log: Log;
}) {
  const { log } = options;
  const { of, refuse, ...hold } = holdable(log);
  const requests = new Worker<RequestJob>(
    requestQueue,
    async (job, token) => {
      await refuse(job, token);
      const next = await options.advance(job.data.request);
      if (next.is === "ended") return;
      // Held by now, as its clock is off: whoever takes it instead puts it off
      await refuse(job, token);
      await job.moveToDelayed(Date.now() + next.ms, token);
      throw new DelayedError();
    },
    { ...workerOptions(options), concurrency: options.concurrency },
  );
  of(requests);
  requests.on("error", (error) => log.warn("queue.error", { queue: requests.name, error }));
  requests.on("failed", (job, error) =>
    log.warn("queue.job-failed", { queue: requests.name, job: job?.id, error }),
  );
  requests.on("stalled", (job) => log.warn("queue.job-stalled", { queue: requests.name, job }));
  return {
    take: hold.take,
    /** Takes no more steps. A clock that is off may have put some off for hours, so all are due now: they are put off again. */
    async hold(): Promise<void> {
      await hold.hold();
      await options
        .bringForward()
        .catch((error: unknown) => log.warn("queue.not-brought-forward", { error }));
    },
    /** Stops taking jobs and waits for those that run, at most `deadlineMs`. */
    async close(deadlineMs: number): Promise<void> {
      // While Redis is unavailable, a worker never finishes closing, not even with `force`
      await within(deadlineMs, requests.close(), () => {
        log.warn("queue.closed-with-work", {});
        void requests.close(true).catch(() => undefined);
      });
    },
  };
}
