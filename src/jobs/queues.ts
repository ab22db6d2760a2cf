import { type Job, Queue, DelayedError, Worker } from "bullmq";
import type { RedisClient } from "../redis/redis.ts";
import { within } from "../deadline.ts";
import type { Log } from "../log/log.ts";

export type Queues = ReturnType<typeof createQueues>;

export interface QueueDepth {
  queue: string;
  waiting: number;
  active: number;
  delayed: number;
  /** When the job that waits the longest was added or last begun (ms); undefined when none waits. */
  oldestAt: number | undefined;
}

const requestQueue = "requests";

interface RequestJob {
  /** Of a request or a rollout. */
  request?: string;
  queueProbe?: string;
}

/** A job's ID must be free again for the next wake-up. */
const defaultJobOptions = { removeOnComplete: true, removeOnFail: true, attempts: 1 } as const;

/** Nobody reads these events, of which BullMQ keeps 10,000 by default. */
const streams = { events: { maxLen: 100 } } as const;

/**
 * Jobs wake workers; the journal is the truth. A job carries only an ID, and may be lost, delivered twice, or removed by hand
 * without harm: the sweep enqueues it again.
 */
export function createQueues(connection: RedisClient, prefix: string) {
  const options = { connection, prefix, defaultJobOptions, streams };
  const requests = new Queue<RequestJob>(requestQueue, options);
  requests.on("error", () => undefined); // the connection logs it

  return {
    /** Enqueues a step of a request or a rollout; duplicates collapse. */
    async wake(id: string): Promise<void> {
      await requests.add("advance", { request: id }, { jobId: `request-${id}` });
    },
    /** Enqueues a probe; resolves with whether this worker's last one still waits, taken by no worker. */
    async queueProbe(workerId: string): Promise<boolean> {
      const jobId = `canary-${workerId}`;
      const last = await requests.getJob(jobId);
      const waits = last !== undefined && !(await last.isActive());
      await requests.add("canary", { queueProbe: workerId }, { jobId });
      return waits;
    },
    ready: async (): Promise<unknown> => requests.waitUntilReady(),
    counts: async () => requests.getJobCounts("waiting", "active", "delayed"),
    /** For metrics: how many jobs wait, run, and are put off. */
    async depth(): Promise<QueueDepth> {
      const [counts, [oldest]] = await Promise.all([
        requests.getJobCounts("waiting", "active", "delayed"),
        requests.getJobs(["waiting"], 0, 0, true),
      ]);
      const { waiting = 0, active = 0, delayed = 0 } = counts;
      const oldestAt = oldest && Math.max(oldest.timestamp, oldest.processedOn ?? 0);
      return { queue: requests.name, waiting, active, delayed, oldestAt };
    },
    close: () => requests.close(),
  };
}

type Next = { is: "ended" } | { is: "wait"; ms: number };

/** How long a worker has a job to itself unless it renews this (ms): BullMQ gives a dead worker's job to another soon after. */
const lockMs = 5_000;

/** A job that must wait is put back with a delay and frees its slot. One that lost its lock may run twice: steps are idempotent. */
export function startWorkers(options: {
  connection: RedisClient;
  prefix: string;
  concurrency: number;
  /** A worker that is killed may take the sign of a job with it: the others look for themselves this often (ms). */
  lookMs: number;
  advance(id: string): Promise<Next>;
  /** Called with every job: the queue moves for this process. */
  heard(): void;
  log: Log;
}) {
  const { connection, prefix, log } = options;
  const requests = new Worker<RequestJob>(
    requestQueue,
    async (job, token) => {
      options.heard();
      if (job.data.request) await putBack(job, token, await options.advance(job.data.request));
    },
    {
      connection,
      prefix,
      concurrency: options.concurrency,
      lockDuration: lockMs,
      stalledInterval: lockMs / 2,
      // However often its worker dies, what a job stands for is in the journal
      maxStalledCount: 50,
      drainDelay: Math.max(1, options.lookMs / 1000),
      runRetryDelay: 1000,
      autorun: false,
    },
  );
  requests.on("error", (error) => log.warn("queue.error", { queue: requests.name, error }));
  requests.on("failed", (job, error) =>
    log.warn("queue.job-failed", { queue: requests.name, job: job?.id, error }),
  );
  requests.on("stalled", (job) => log.warn("queue.job-stalled", { queue: requests.name, job }));
  return {
    /** Starts to take jobs. */
    begin(): void {
      requests.run().catch((error: unknown) => log.error("queue.stopped", { error }));
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

async function putBack(job: Job, token: string | undefined, next: Next): Promise<void> {
  if (next.is === "ended") return;
  await job.moveToDelayed(Date.now() + next.ms, token);
  throw new DelayedError();
}
