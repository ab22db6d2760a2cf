import { createHash } from "node:crypto";
import { Queue } from "bullmq";
import type { RedisClient } from "../redis.ts";

/**
 * The queue is the doorbell, not the truth: a job carries an id and nothing else, and may be lost, delivered twice or
 * removed by hand without harm, because the journal decides and the sweeper rings again.
 */
export interface Queues {
  /** Rings for a request. Many rings are one. */
  wake(requestId: string): Promise<void>;
  /** Rings for a shared poll; `soon` brings a poll that is due later forward. */
  watch(watchKey: string, soon: boolean): Promise<void>;
  canary(workerId: string): Promise<void>;
  /** Does it to each queue; resolves with the sum. */
  forEach(work: (queue: Queue) => Promise<number>): Promise<number>;
  ready(): Promise<void>;
  counts(): Promise<Record<string, number>>;
  close(): Promise<void>;
}

export const requestQueue = "requests";
export const watchQueue = "watches";

export interface RequestJob {
  request?: string;
  canary?: string;
}

export interface WatchJob {
  key: string;
}

/** Jobs leave nothing behind: a job's id must be free again when the request is rung for anew. */
const passing = { removeOnComplete: true, removeOnFail: true, attempts: 1 } as const;

/** A job id may hold no colon and not be a number. */
const watchJobId = (watchKey: string) =>
  `watch-${createHash("sha256").update(watchKey).digest("hex").slice(0, 32)}`;

export function createQueues(connection: RedisClient, prefix: string): Queues {
  const requests = new Queue<RequestJob>(requestQueue, {
    connection,
    prefix,
    defaultJobOptions: passing,
  });
  const watches = new Queue<WatchJob>(watchQueue, {
    connection,
    prefix,
    defaultJobOptions: passing,
  });
  for (const queue of [requests, watches]) queue.on("error", () => undefined); // the connection's own log tells of it

  return {
    async wake(requestId) {
      await requests.add("advance", { request: requestId }, { jobId: `request-${requestId}` });
    },
    async watch(watchKey, soon) {
      const jobId = watchJobId(watchKey);
      if (soon) {
        const waiting = await watches.getJob(jobId);
        // Lost a race against the poll itself: then the poll has just run and goes on by itself
        if (waiting && (await waiting.isDelayed())) await waiting.promote().catch(() => undefined);
      }
      await watches.add("poll", { key: watchKey }, { jobId });
    },
    async canary(workerId) {
      await requests.add("canary", { canary: workerId }, { jobId: `canary-${workerId}` });
    },
    async forEach(work) {
      return (await work(requests)) + (await work(watches));
    },
    async ready() {
      await Promise.all([requests.waitUntilReady(), watches.waitUntilReady()]);
    },
    async counts() {
      return requests.getJobCounts("waiting", "active", "delayed");
    },
    async close() {
      await Promise.all([requests.close(), watches.close()]);
    },
  };
}
