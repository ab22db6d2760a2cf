import { Queue } from "bullmq";
import { BullMQOtel } from "bullmq-otel";
import type { RedisClient } from "../redis/redis.ts";

export type Queues = ReturnType<typeof createQueues>;

export type QueueDepth = Awaited<ReturnType<typeof depthOf>>;

/** A member of the pending list (`redis/pending.ts`). */
export interface PendingJob {
  kind: string;
  id: string;
}

export type PendingQueue = Queue<PendingJob>;

/** Begins the work on an ID in this process. Returns false when this process takes nothing now. */
export type HandleHere = (kind: string, id: string) => boolean;

/** An interaction, as it is stored before or after its acknowledgment. */
export interface StoredInteraction {
  readonly id: string;
  readonly kind: string;
}

export interface InteractionJob {
  interaction: StoredInteraction;
}

/**
 * Ended jobs are removed, because the journal has what matters. A dashboard therefore never shows a
 * failed job; the log does.
 */
const defaultJobOptions = { removeOnComplete: true, removeOnFail: true, attempts: 1 } as const;

/**
 * Spans for adding and processing jobs, which also carry the trace with a job. It does nothing
 * unless an SDK is loaded.
 */
export const telemetry = new BullMQOtel({ tracerName: "gatehouse" });

/** Nobody reads BullMQ's events, of which it keeps 10,000 by default. */
const streams = { events: { maxLen: 100 } } as const;

/**
 * Jobs wake workers; the journal is the truth. A job in `requests`, `polls`, or `messages` carries
 * only a kind and an ID. It may be lost, delivered twice, or removed by hand without harm, because
 * the relay adds it again. A job in `interactions` carries the whole interaction, which is stored
 * nowhere else.
 */
export function createQueues(
  connection: RedisClient,
  prefix: string,
  /**
   * The time by Redis's clock (ms). With a wrong clock, jobs would be delayed too long or start too
   * soon.
   */
  now: () => number = Date.now,
) {
  const options = { connection, prefix, defaultJobOptions, streams, telemetry };
  /** The next step of a request or a rollout. */
  const requests = new Queue<PendingJob>("requests", options);
  /** Messages to Slack for a request, a rollout, or a notice. */
  const messages = new Queue<PendingJob>("messages", options);
  /** One read of a project or a VM, for all requests that wait for it. */
  const polls = new Queue<PendingJob>("polls", options);
  /** Interactions that aren't handled yet. A job becomes due only when its gateway died. */
  const interactions = new Queue<InteractionJob>("interactions", options);
  /** Periodic tasks of the whole installation: BullMQ's job schedulers. */
  const schedules = new Queue("schedules", options);
  /** The queue for each kind of pending work. */
  const queueOf = new Map<string, PendingQueue>();
  const handlersHere = new Map<string, HandleHere>();
  const all = [interactions, requests, messages, polls, schedules];
  // The connection logs its errors already.
  for (const queue of all) queue.on("error", () => undefined);

  /**
   * Adds a job for pending work. When a job of the same ID is delayed, that job then runs at this
   * time; when one is active, this job runs after it (`keepLastIfActive`).
   */
  async function wake(kind: string, id: string, inMs = 0): Promise<void> {
    const queue = queueOf.get(kind);
    // Another release may have kinds that this one doesn't know.
    if (queue === undefined) return;
    const deduplication = { id: `${kind} ${id}`, keepLastIfActive: true, reschedule: true };
    await queue.add(kind, { kind, id }, { deduplication, timestamp: now(), delay: inMs });
  }

  return {
    interactions,
    messages,
    polls,
    schedules,
    requests,
    /** From now on, pending work of this kind has its jobs in this queue. */
    assign: (kind: string, queue: PendingQueue) => void queueOf.set(kind, queue),
    /** From now on, this process handles what it notes of this kind itself. */
    assignHere: (kind: string, handle: HandleHere) => void handlersHere.set(kind, handle),
    wake,
    /** Begins the work on an ID that this process has put on the pending list, or adds a job for it. */
    async note(kind: string, id: string): Promise<void> {
      if (handlersHere.get(kind)?.(kind, id) !== true) await wake(kind, id);
    },
    ready: (): Promise<unknown> => Promise.all(all.map((queue) => queue.waitUntilReady())),
    /** How many jobs wait, run, and are delayed in each queue. */
    depths: () => Promise.all(all.map(depthOf)),
    close: (): Promise<unknown> => Promise.all(all.map((queue) => queue.close())),
  };
}

async function depthOf(queue: Queue) {
  const [counts, [oldest]] = await Promise.all([
    queue.getJobCounts("waiting", "active", "delayed"),
    queue.getJobs(["waiting"], 0, 0, true),
  ]);
  const { waiting = 0, active = 0, delayed = 0 } = counts;
  /**
   * When the job that has waited the longest was added or last started (ms). Undefined when no job
   * waits.
   */
  const oldestAt = oldest && Math.max(oldest.timestamp, oldest.processedOn ?? 0);
  return { queue: queue.name, waiting, active, delayed, oldestAt };
}
