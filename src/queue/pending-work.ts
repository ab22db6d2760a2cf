import { DelayedError } from "bullmq";
import type { Log } from "../log/log.ts";
import type { Pending } from "../redis/pending.ts";
import type { RedisClient } from "../redis/redis.ts";
import type { PendingQueue } from "./queues.ts";
import { startQueueWorker } from "./queue-worker.ts";

/** The handler for the IDs of one kind. */
export interface PendingWork {
  pending: Pending;
  /**
   * When it ends, the ID is off the list or due later. `mark` is the ID's score while this runs.
   */
  handle(id: string, mark: string): Promise<unknown>;
}

/**
 * Works on the pending list through the jobs of one queue, once `take` was called on the result. At
 * most one job of an ID runs at a time, and one more is kept for wake-ups meanwhile. The list says
 * when an ID is due; a job that comes too early is delayed until then. An ID whose handler throws
 * stays on the list, and the relay adds its job again.
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
          // By now the ID is off the list, due later, or due again because something woke it
          // meanwhile.
          continue;
        }
        await job.moveToDelayed(Date.now() + taken.waitMs, token);
        // BullMQ holds back a job that is added during this one until this one ends, and being
        // delayed isn't an end. So a wake-up that came meanwhile is repeated.
        const dueAt = await work.pending.dueAt(id);
        if (dueAt !== undefined && dueAt < taken.dueAt) await options.wake(kind, id);
        throw new DelayedError();
      }
    },
  });
}
