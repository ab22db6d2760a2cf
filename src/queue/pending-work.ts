import { DelayedError, type Queue, Worker } from "bullmq";
import { within } from "../deadline.ts";
import type { Log } from "../log/log.ts";
import type { Pending } from "../redis/pending.ts";
import type { RedisClient } from "../redis/redis.ts";
import type { PendingJob } from "./queues.ts";
import { holdable, workerOptions } from "./workers.ts";

/** What is done with the IDs of one pending list. */
export interface PendingWork {
  /** What its IDs name. */
  kind: string;
  pending: Pick<Pending, "take" | "dueInMs" | "overdue" | "onWake">;
  /** Ends with the ID off the list, or due later. `mark`: its score while this runs. */
  handle(id: string, mark: string): Promise<unknown>;
}

/** So many are looked for at once whose job is missing. */
const mostOverdue = 1_000;

/**
 * Works on pending IDs, as jobs of one queue, once it is told to `take` them. Of one ID at most one job runs, and one more is kept for whoever wakes it meanwhile. The
 * list says when an ID is due; a job that comes too early is put off until then.
 *
 * The relay adds a job for whatever is overdue on a list: its process died before it could, or the job got lost.
 */
export function startPendingWork(
  works: readonly PendingWork[],
  options: {
    queue: Queue<PendingJob>;
    connection: RedisClient;
    prefix: string;
    concurrency: number;
    heartbeatMs: number;
    relayEveryMs: number;
    log: Log;
  },
) {
  const { queue, log, relayEveryMs } = options;
  const byKind = new Map(works.map((work) => [work.kind, work]));

  const wake = (kind: string, id: string) =>
    queue.add(
      kind,
      { kind, id },
      {
        deduplication: { id: `${kind} ${id}`, keepLastIfActive: true, reschedule: true },
      },
    );

  for (const { kind, pending } of works)
    // Without Redis its connection tells of it, and the relay makes up for it
    pending.onWake((id) => void wake(kind, id).catch(() => undefined));

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
        if ("mark" in taken) {
          await work.handle(id, taken.mark);
          continue; // off the list by now, due later, or due again as somebody asked meanwhile
        }
        await job.moveToDelayed(Date.now() + taken.waitMs, token);
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
  of(worker);

  async function relay(): Promise<void> {
    for (const { kind, pending } of works)
      for (const id of await pending.overdue(mostOverdue, relayEveryMs)) await wake(kind, id);
  }
  let relaying: Promise<void> | undefined;
  const timer = setInterval(() => {
    // Without Redis its connection tells of it
    relaying ??= relay()
      .catch(() => undefined)
      .finally(() => (relaying = undefined));
  }, relayEveryMs);

  return {
    ...hold,
    /** Takes nothing more, and waits for what is in hand. */
    async close(deadlineMs: number): Promise<void> {
      clearInterval(timer);
      await relaying;
      await within(deadlineMs, worker.close(), () => {
        void worker.close(true).catch(() => undefined);
      });
    },
  };
}
