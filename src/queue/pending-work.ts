import { DelayedError } from "bullmq";
import type { Log } from "../log/log.ts";
import type { Pending } from "../redis/pending.ts";
import type { RedisClient } from "../redis/redis.ts";
import type { PendingQueue } from "./queues.ts";
import { startQueueWorker } from "./queue-worker.ts";

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
    queue: PendingQueue;
    /** Adds a job (`queues.wake`). */
    wake(kind: string, id: string): Promise<void>;
    connection: RedisClient;
    prefix: string;
    concurrency: number;
    heartbeatMs: number;
    log: Log;
  },
) {
  const byKind = new Map<string, PendingWork>(works.map((work) => [work.pending.kind, work]));

  return startQueueWorker({
    ...options,
    subjectOf: ({ data }) => ({ ...data }),
    async process(job, token) {
      const { kind, id } = job.data;
      const work = byKind.get(kind);
      if (!work) return;
      for (;;) {
        const taken = await work.pending.take(id);
        if (taken === undefined) return;
        if ("mark" in taken) {
          await work.handle(id, taken.mark);
          continue; // off the list by now, due later, or due again as somebody asked meanwhile
        }
        await job.moveToDelayed(Date.now() + taken.waitMs, token);
        // BullMQ keeps a job that was added meanwhile until this one ends, and it doesn't end by being put off
        const dueAt = await work.pending.dueAt(id);
        if (dueAt !== undefined && dueAt < taken.dueAt) await options.wake(kind, id);
        throw new DelayedError();
      }
    },
  });
}
