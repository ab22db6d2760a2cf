import { DelayedError, Queue, WaitingError, Worker } from "bullmq";
import type { RedisClient, Keys } from "../redis/redis.ts";
import { within } from "../deadline.ts";
import type { Log } from "../log/log.ts";

export type Queues = ReturnType<typeof createQueues>;

export type QueueDepth = Awaited<ReturnType<Queues["depth"]>>;

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
    /** How many jobs wait, run, and are put off. */
    async depth() {
      const [counts, [oldest]] = await Promise.all([
        requests.getJobCounts("waiting", "active", "delayed"),
        requests.getJobs(["waiting"], 0, 0, true),
      ]);
      const { waiting = 0, active = 0, delayed = 0 } = counts;
      /** When the job that waits the longest was added or last begun (ms); undefined when none waits. */
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
  let isHeld = false;
  const requests = new Worker<RequestJob>(
    requestQueue,
    async (job, token) => {
      options.heard();
      if (isHeld) {
        // It was waiting for a job when it was paused, and BullMQ 6.7.0 still hands it that one
        await job.moveToWait(token);
        throw new WaitingError();
      }
      if (!job.data.request) return;
      const next = await options.advance(job.data.request);
      if (next.is === "ended") return;
      await job.moveToDelayed(Date.now() + next.ms, token);
      throw new DelayedError();
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
    /** Takes jobs from now on. */
    take(): void {
      isHeld = false;
      const taking = requests.isPaused() ? requests.resume() : requests.run();
      taking.catch((error: unknown) => log.error("queue.stopped", { error }));
    },
    /** Takes no more jobs; those that run go on. */
    async hold(): Promise<void> {
      isHeld = true;
      await requests.pause(true);
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

/** After this many missed beats, a worker counts as gone. */
const missedBeats = 3;

/** Publishes this process's heartbeat. Without one, its sends are reconciled. */
export async function startHeartbeat(options: {
  redis: RedisClient;
  key: Keys;
  workerId: string;
  beatMs: number;
  log: Log;
}) {
  const { redis, key, workerId, beatMs, log } = options;
  const beat = async () => {
    const isSet = redis.set(key("worker", workerId), "1", "PX", beatMs * missedBeats);
    await Promise.all([isSet, redis.sadd(key("workers"), workerId)]);
  };
  await beat();
  const timer = setInterval(() => {
    beat().catch((error: unknown) => log.warn("heart.missed", { error }));
  }, beatMs);

  return {
    isAlive: async (other: string): Promise<boolean> =>
      (await redis.exists(key("worker", other))) === 1,
    async close() {
      clearInterval(timer);
      await redis.del(key("worker", workerId)).catch(() => undefined);
      await redis.srem(key("workers"), workerId).catch(() => undefined);
    },
  };
}

/** How many workers have a heartbeat. Those that died are forgotten with it. */
export async function countWorkers(redis: RedisClient, key: Keys): Promise<number> {
  const ids = await redis.smembers(key("workers"));
  const beats = await Promise.all(ids.map((id) => redis.exists(key("worker", id))));
  const dead = ids.filter((_, index) => beats[index] === 0);
  if (dead.length > 0) await redis.srem(key("workers"), ...dead);
  return ids.length - dead.length;
}

/** Others take this one's probes so often only when it is stuck: each of n workers sends one a round, so by chance it is e^-15. */
const maxSilentRounds = 15;

/**
 * Liveness probe for the queue: a process out of whose queue nothing comes is stuck and must restart (workers may stop
 * silently after an outage: taskforcesh/bullmq#3185). Workers share the queue, so another one may take this one's probe: then
 * the queue moves, and only a long silence tells that this process takes no part.
 */
export function startQueueProbe(options: {
  workerId: string;
  everyMs: number;
  /** Resolves with whether the last probe still waits, taken by no one. */
  send(workerId: string): Promise<boolean>;
  /** This process takes no jobs on purpose. */
  isHeld(): boolean;
  onDead(why: string): void;
}) {
  const { everyMs } = options;
  let isHeard = true;
  let silentRounds = 0;

  async function round(): Promise<void> {
    const wasHeard = isHeard;
    // Before the send: the job may come out before it returns
    isHeard = false;
    const isStuck = options.isHeld()
      ? undefined
      : await options.send(options.workerId).catch(() => undefined);
    if (isStuck === undefined) {
      // Held, or Redis is unavailable: no reason to restart
      isHeard = true;
      return;
    }
    silentRounds = wasHeard ? 0 : silentRounds + 1;
    if (silentRounds === 0 || isHeard) return;
    const silentFor = `for ${Math.round((silentRounds * everyMs) / 1000)} s`;
    if (isStuck) options.onDead(`nothing came out of the queue ${silentFor}`);
    else if (silentRounds >= maxSilentRounds)
      options.onDead(`nothing came out of the queue here ${silentFor}, only elsewhere`);
  }
  const timer = setInterval(() => void round(), everyMs);

  return {
    /** This process took a job. */
    heard(): void {
      isHeard = true;
    },
    close: async () => clearInterval(timer),
  };
}

/** After this many samples' worth of silence, what was seen says nothing of now. */
const staleBeats = 10;
/** A live worker renews its heartbeat within one beat. */
const missingBeats = 2;

/**
 * Whether a worker lives, judged by this process's own monotonic clock: a heartbeat expires by Redis' clock, which a step
 * ahead makes expire for every worker at once. One that stays missing for longer than it takes to renew it is gone.
 */
export function observeAlive(
  hasHeartbeat: (workerId: string) => Promise<boolean>,
  beatMs: number,
  now: () => number = () => performance.now(),
): (workerId: string) => Promise<boolean> {
  const missing = new Map<string, { since: number; last: number }>();
  return async (workerId) => {
    if (await hasHeartbeat(workerId)) {
      missing.delete(workerId);
      return true;
    }
    const at = now();
    const seen = missing.get(workerId);
    const since = seen && at - seen.last < staleBeats * beatMs ? seen.since : at;
    missing.set(workerId, { since, last: at });
    return at - since < missingBeats * beatMs;
  };
}
