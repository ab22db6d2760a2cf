import { type Job, Queue, DelayedError, Worker } from "bullmq";
import type { RedisClient } from "../redis/redis.ts";
import { createLeases } from "../redis/lease.ts";
import { within } from "../deadline.ts";
import type { Log } from "../log/log.ts";
import type { Opening } from "../requests/journal/journal.ts";

/**
 * Jobs wake workers; the journal is the truth. A job carries only an ID, and may be lost, delivered twice, or removed by hand
 * without harm: the sweep enqueues it again.
 */
export interface Queues {
  /** Enqueues a wake-up; duplicates collapse. */
  wake(requestId: string, delayMs?: number): Promise<void>;
  /** The same for a request that was just made: where this process works and has room, its first step begins here, at once. */
  wakeNew(requestId: string, opening?: Opening): Promise<void>;
  /** What takes first steps; false where there is no room. */
  stepsHere(begin: Begin): void;
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
  depth(): Promise<QueueDepth>;
  close(): Promise<void>;
}

/** Of a request that was just made, what its first step begins with is known. */
type Begin = (requestId: string, opening?: Opening) => boolean;

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
  request?: string;
  queueProbe?: string;
}

/** A job's ID must be free again for the next wake-up. */
const defaultJobOptions = { removeOnComplete: true, removeOnFail: true, attempts: 1 } as const;

/** Nobody reads these events, of which BullMQ keeps 10,000 by default. */
const streams = { events: { maxLen: 100 } } as const;

/** The rest is left to the next round. */
const maxOrphans = 500;

export function createQueues(connection: RedisClient, prefix: string): Queues {
  const options = { connection, prefix, defaultJobOptions, streams };
  const requests = new Queue<RequestJob>(requestQueue, options);
  requests.on("error", () => undefined); // the connection logs it

  const leases = createLeases(connection);

  async function requeueOne(
    job: Job<RequestJob>,
    isAlive: (queueWorkerId: string) => Promise<boolean>,
  ): Promise<boolean> {
    const { id, name, data } = job;
    if (id === undefined) return false;
    const lock = `${requests.toKey(id)}:lock`;
    const token = await connection.get(lock);
    // BullMQ's tokens are the id of the worker and a number
    if (token === null || (await isAlive(token.slice(0, token.lastIndexOf(":"))))) return false;
    if (!(await leases.release(lock, token))) return false;
    await job.remove();
    await requests.add(name, data, { jobId: id });
    return true;
  }

  let beginHere: Begin | undefined;

  async function wake(requestId: string, delay = 0): Promise<void> {
    const jobId = `request-${requestId}`;
    await requests.add("advance", { request: requestId }, { jobId, ...(delay > 0 && { delay }) });
  }

  return {
    wake,
    async wakeNew(requestId, opening) {
      if (!beginHere?.(requestId, opening)) await wake(requestId);
    },
    stepsHere(begin) {
      beginHere = begin;
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
      if ((await connection.llen(requests.toKey("active"))) === 0) return 0;
      for (const job of await requests.getJobs(["active"], 0, maxOrphans - 1))
        if (job && (await requeueOne(job, isAlive))) requeued += 1;
      return requeued;
    },
    async ready() {
      await requests.waitUntilReady();
    },
    async counts() {
      return requests.getJobCounts("waiting", "active", "delayed");
    },
    async depth() {
      const [counts, [oldest]] = await Promise.all([
        requests.getJobCounts("waiting", "active", "delayed"),
        requests.getJobs(["waiting"], 0, 0, true),
      ]);
      const { waiting = 0, active = 0, delayed = 0 } = counts;
      const oldestAt = oldest && Math.max(oldest.timestamp, oldest.processedOn ?? 0);
      return { queue: requests.name, waiting, active, delayed, oldestAt };
    },
    async close() {
      await requests.close();
    },
  };
}

type Next = { is: "ended" } | { is: "wait"; ms: number };

export interface Jobs {
  /** The worker IDs in BullMQ's locks. */
  readonly ids: readonly string[];
  /** Starts to take jobs; the heartbeat must cover `ids` by then. */
  begin(): void;
  /** Takes a step without the queue, which is only told when the request must wait. False where there is no room. */
  stepNow: Begin;
  /** Stops taking jobs and waits for those that run, at most `deadlineMs`. */
  close(deadlineMs: number): Promise<void>;
}

/** A job that must wait is put back with a delay and frees its slot. One that lost its lock may run twice: steps are idempotent. */
export function startWorkers(options: {
  connection: RedisClient;
  prefix: string;
  concurrency: number;
  lockMs: number;
  /** A worker that is killed may take the sign of a job with it: the others look for themselves this often (ms). */
  lookMs: number;
  advance(requestId: string, opening?: Opening): Promise<Next>;
  /** Enqueues a request that must wait after a step here. */
  wake(requestId: string, delayMs: number): Promise<void>;
  /** Called with every job: the queue moves for this process. */
  heard(): void;
  log: Log;
}): Jobs {
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
      lockDuration: options.lockMs,
      stalledInterval: options.lockMs,
      maxStalledCount: 5,
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

  const steps = new Set<Promise<void>>();
  let isOpen = false;

  /** What fails here, and what dies with this process, is found by the sweep. */
  async function step(requestId: string, opening?: Opening): Promise<void> {
    try {
      const next = await options.advance(requestId, opening);
      if (next.is === "wait") await options.wake(requestId, next.ms);
    } catch (error) {
      log.warn("step.failed", { request: requestId, error });
    }
  }

  return {
    ids: [requests.id],
    stepNow(requestId, opening) {
      if (!isOpen || steps.size >= options.concurrency / 2) return false;
      const taken = step(requestId, opening).finally(() => steps.delete(taken));
      steps.add(taken);
      return true;
    },
    begin() {
      isOpen = true;
      requests.run().catch((error: unknown) => log.error("queue.stopped", { error }));
    },
    async close(deadlineMs) {
      isOpen = false;
      // While Redis is unavailable, a worker never finishes closing, not even with `force`
      await within(deadlineMs, Promise.all([requests.close(), ...steps]), () => {
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
