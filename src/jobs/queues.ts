import { createHash } from "node:crypto";
import { type Job, Queue, DelayedError, Worker } from "bullmq";
import type { RedisClient } from "../redis/redis.ts";
import { createLeases } from "../redis/lease.ts";
import { within } from "../deadline.ts";
import type { Log } from "../log/log.ts";

/**
 * Jobs wake workers; the journal is the truth. A job carries only an ID, and may be lost, delivered twice, or removed by hand
 * without harm: the sweep enqueues it again.
 */
export interface Queues {
  /** Enqueues a wake-up; duplicates collapse. */
  wake(requestId: string): Promise<void>;
  /** Enqueues a shared poll; `soon` promotes a delayed one. */
  watch(pollKey: string, soon: boolean): Promise<void>;
  /** Enqueues a probe; resolves with whether this worker's last one still waits, taken by no worker. */
  queueProbe(workerId: string): Promise<boolean>;
  /**
   * Requeues jobs of workers without a heartbeat; resolves with their number. BullMQ does so too, but only when its long locks
   * expire. Should such a worker live on, its job is gone, and the journal keeps the two apart.
   */
  requeueOrphans(isAlive: (queueWorkerId: string) => Promise<boolean>): Promise<number>;
  ready(): Promise<void>;
  counts(): Promise<Record<string, number>>;
  /** For metrics: how many jobs wait, run, and are put off. */
  depths(): Promise<readonly QueueDepth[]>;
  close(): Promise<void>;
}

interface QueueDepth {
  queue: string;
  waiting: number;
  active: number;
  delayed: number;
  /** When the job that waits the longest was added or last begun (ms); undefined when none waits. */
  oldestAt: number | undefined;
}

const requestQueue = "requests";
const pollQueue = "watches";

interface RequestJob {
  request?: string;
  queueProbe?: string;
}

interface PollJob {
  key: string;
}

/** A job's ID must be free again for the next wake-up. */
const defaultJobOptions = { removeOnComplete: true, removeOnFail: true, attempts: 1 } as const;

/** The rest is left to the next round. */
const maxOrphans = 500;

/** A job id may hold no colon and not be a number. */
const pollJobId = (pollKey: string) =>
  `watch-${createHash("sha256").update(pollKey).digest("hex").slice(0, 32)}`;

export function createQueues(connection: RedisClient, prefix: string): Queues {
  const shared = { connection, prefix, defaultJobOptions };
  const requests = new Queue<RequestJob>(requestQueue, shared);
  const watches = new Queue<PollJob>(pollQueue, shared);
  for (const queue of [requests, watches]) queue.on("error", () => undefined); // the connection logs it

  const leases = createLeases(connection);

  async function requeueOne(
    queue: Queue,
    job: Job,
    isAlive: (queueWorkerId: string) => Promise<boolean>,
  ): Promise<boolean> {
    const { id, name, data } = job;
    if (id === undefined) return false;
    const lock = `${queue.toKey(id)}:lock`;
    const token = await connection.get(lock);
    // BullMQ's tokens are the id of the worker and a number
    if (token === null || (await isAlive(token.slice(0, token.lastIndexOf(":"))))) return false;
    if (!(await leases.release(lock, token))) return false;
    await job.remove();
    await queue.add(name, data, { jobId: id });
    return true;
  }

  return {
    async wake(requestId) {
      await requests.add("advance", { request: requestId }, { jobId: `request-${requestId}` });
    },
    async watch(pollKey, soon) {
      const jobId = pollJobId(pollKey);
      if (soon) {
        const waiting = await watches.getJob(jobId);
        // Promotion fails when the poll has just started
        if (waiting && (await waiting.isDelayed())) await waiting.promote().catch(() => undefined);
      }
      await watches.add("poll", { key: pollKey }, { jobId });
    },
    async queueProbe(workerId) {
      const jobId = `canary-${workerId}`;
      const last = await requests.getJob(jobId);
      const waits = last !== undefined && !(await last.isActive());
      await requests.add("canary", { queueProbe: workerId }, { jobId });
      return waits;
    },
    async requeueOrphans(isAlive) {
      let requeued = 0;
      for (const queue of [requests, watches])
        for (const job of await queue.getJobs(["active"], 0, maxOrphans - 1))
          if (job && (await requeueOne(queue, job, isAlive))) requeued += 1;
      return requeued;
    },
    async ready() {
      await Promise.all([requests.waitUntilReady(), watches.waitUntilReady()]);
    },
    async counts() {
      return requests.getJobCounts("waiting", "active", "delayed");
    },
    depths: () =>
      Promise.all(
        [requests, watches].map(async (queue): Promise<QueueDepth> => {
          const [counts, [oldest]] = await Promise.all([
            queue.getJobCounts("waiting", "active", "delayed"),
            queue.getJobs(["waiting"], 0, 0, true),
          ]);
          const { waiting = 0, active = 0, delayed = 0 } = counts;
          const oldestAt = oldest && Math.max(oldest.timestamp, oldest.processedOn ?? 0);
          return { queue: queue.name, waiting, active, delayed, oldestAt };
        }),
      ),
    async close() {
      await Promise.all([requests.close(), watches.close()]);
    },
  };
}

type Next = { is: "ended" } | { is: "wait"; ms: number };

export interface Jobs {
  /** The worker IDs in BullMQ's locks. */
  readonly ids: readonly string[];
  /** Starts to take jobs; the heartbeat must cover `ids` by then. */
  begin(): void;
  /** Stops taking jobs and waits for those that run, at most `deadlineMs`. */
  close(deadlineMs: number): Promise<void>;
}

/** A job that must wait is put back with a delay and frees its slot. One that lost its lock may run twice: steps are idempotent. */
export function startWorkers(options: {
  connection: RedisClient;
  prefix: string;
  concurrency: number;
  lockMs: number;
  advance(requestId: string): Promise<Next>;
  watch(pollKey: string, polls: number): Promise<Next>;
  /** Called with every job: the queue moves for this process. */
  heard(): void;
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
      options.heard();
      if (job.data.request) await putBack(job, token, await options.advance(job.data.request));
    },
    { ...shared, concurrency: options.concurrency },
  );
  const watches = new Worker<PollJob>(
    pollQueue,
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
      // While Redis is unavailable, a worker never finishes closing, not even with `force`
      await within(deadlineMs, Promise.all([requests.close(), watches.close()]), () => {
        log.warn("queue.closed-with-work", {});
        for (const worker of [requests, watches]) void worker.close(true).catch(() => undefined);
      });
    },
  };
}

async function putBack(job: Job, token: string | undefined, next: Next): Promise<void> {
  if (next.is === "ended") return;
  await job.moveToDelayed(Date.now() + next.ms, token);
  throw new DelayedError();
}
