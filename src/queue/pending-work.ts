import { DelayedError, type Queue, Worker } from "bullmq";
import { within } from "../deadline.ts";
import type { Log } from "../log/log.ts";
import type { Pending } from "../redis/pending.ts";
import type { RedisClient } from "../redis/redis.ts";
import type { PendingJob } from "./queues.ts";
import { holdable, workerOptions } from "./workers.ts";

/** What is done with the IDs of one kind. */
export interface PendingWork {
  pending: Pending;
  /** Ends with the ID off the list, or due later. `mark`: its score while this runs. */
  handle(id: string, mark: string): Promise<unknown>;
}

/**
 * Works on what is pending, as jobs of one queue, once it is told to `take` them. Of one ID at most one job runs, and one more is kept
 * for whoever wakes it meanwhile. The list says when an ID is due; a job that comes too early is put off until then. What throws stays
 * on the list, and the relay comes back to it.
 */
export function startPendingWork(
  works: readonly PendingWork[],
  options: {
    queue: Queue<PendingJob>;
    /** Adds a job (`queues.wake`). */
    wake(kind: string, id: string): Promise<void>;
    connection: RedisClient;
    prefix: string;
    concurrency: number;
    heartbeatMs: number;
    log: Log;
  },
) {
  const { queue, wake, log } = options;
  const byKind = new Map<string, PendingWork>(works.map((work) => [work.pending.kind, work]));

  const { of, refuse, ...hold } = holdable(log);
  const worker = new Worker<PendingJob>(
    queue.name,
    async (job, token) => {
      await refuse(job, token);
      const { kind, id } = job.data;
      const work = byKind.get(kind);
      if (!work) return;
      for (;;) {
        const taken = await work.pending.take(id);
        if (taken === undefined) return;
        if ("mark" in taken) await work.handle(id, taken.mark);
        const dueInMs = "waitMs" in taken ? taken.waitMs : await work.pending.dueInMs(id);
        if (dueInMs === undefined) return;
        if (dueInMs === 0) continue;
        await job.moveToDelayed(Date.now() + dueInMs, token);
        // BullMQ keeps a job that was added meanwhile until this one ends, and it doesn't end by being put off
        if ((await work.pending.dueInMs(id)) === 0) await wake(kind, id);
        throw new DelayedError();
      }
    },
    { ...workerOptions(options), concurrency: options.concurrency },
  );
  worker.on("error", (error) => log.warn("queue.error", { queue: queue.name, error }));
  worker.on("failed", (job, error) =>
    log.error("queue.job-failed", { queue: queue.name, ...job?.data, error }),
  );
  worker.on("stalled", (job) => log.warn("queue.job-stalled", { queue: queue.name, job }));
  of(worker);

  return {
    ...hold,
    /** Takes nothing more, and waits for what is in hand. */
    async close(deadlineMs: number): Promise<void> {
      // While Redis is unavailable, a worker never finishes closing, not even with `force`
      await within(deadlineMs, worker.close(), () => {
        log.warn("queue.closed-with-work", { queue: queue.name });
        void worker.close(true).catch(() => undefined);
      });
    },
  };
}
