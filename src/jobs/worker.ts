import { DelayedError, type Job, Worker } from "bullmq";
import type { Log } from "../log.ts";
import type { RedisClient } from "../redis.ts";
import { type RequestJob, requestQueue, type WatchJob, watchQueue } from "./queues.ts";

/** What a step wants next: nothing more, or to be rung for again after so many milliseconds. */
export type Next = { is: "ended" } | { is: "wait"; ms: number };

export interface Jobs {
  /** By which the queue knows who holds a job. */
  readonly ids: readonly string[];
  /** Begins to take jobs: when the others can see that their holder lives. */
  begin(): void;
  /** Stops taking jobs and waits for those that run, at most `deadlineMs`. */
  close(deadlineMs: number): Promise<void>;
}

/**
 * Takes jobs off the queues. Waiting never holds a slot: a job that must wait is put back with a delay and the slot is
 * free. A job that lost its lock may run twice; every step is a compare-and-set, so that does no harm.
 */
export function startWorkers(options: {
  connection: RedisClient;
  prefix: string;
  concurrency: number;
  lockMs: number;
  advance(requestId: string): Promise<Next>;
  watch(watchKey: string, polls: number): Promise<Next>;
  canary(workerId: string): void;
  log: Log;
}): Jobs {
  const { connection, prefix, log } = options;
  const shared = {
    connection,
    prefix,
    lockDuration: options.lockMs,
    stalledInterval: options.lockMs,
    maxStalledCount: 5,
    drainDelay: 1,
    runRetryDelay: 1000,
    autorun: false,
  };

  const requests = new Worker<RequestJob>(
    requestQueue,
    async (job, token) => {
      if (job.data.canary) return options.canary(job.data.canary);
      if (job.data.request) await putBack(job, token, await options.advance(job.data.request));
    },
    { ...shared, concurrency: options.concurrency },
  );
  const watches = new Worker<WatchJob>(
    watchQueue,
    async (job, token) =>
      putBack(job, token, await options.watch(job.data.key, job.attemptsStarted)),
    { ...shared, concurrency: Math.max(4, Math.ceil(options.concurrency / 2)) },
  );
  for (const worker of [requests, watches]) {
    worker.on("error", (error) => log.warn("queue.error", { queue: worker.name, error }));
    worker.on("failed", (job, error) =>
      log.warn("queue.job-failed", { queue: worker.name, job: job?.id, error }),
    );
    worker.on("stalled", (job) => log.warn("queue.job-stalled", { queue: worker.name, job }));
  }

  return {
    ids: [requests.id, watches.id],
    begin() {
      for (const worker of [requests, watches])
        worker.run().catch((error: unknown) => log.error("queue.stopped", { error }));
    },
    async close(deadlineMs) {
      // While Redis is away a worker never finishes closing, not even when told not to wait
      const late = Promise.withResolvers<void>();
      const giveUp = setTimeout(() => {
        log.warn("queue.closed-with-work", {});
        for (const worker of [requests, watches]) void worker.close(true).catch(() => undefined);
        late.resolve();
      }, deadlineMs);
      try {
        await Promise.race([Promise.all([requests.close(), watches.close()]), late.promise]);
      } finally {
        clearTimeout(giveUp);
      }
    },
  };
}

async function putBack(job: Job, token: string | undefined, next: Next): Promise<void> {
  if (next.is === "ended") return;
  await job.moveToDelayed(Date.now() + next.ms, token);
  throw new DelayedError();
}
