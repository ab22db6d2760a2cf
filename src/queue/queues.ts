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

/** An act in Slack that was acknowledged, or is about to be, as it is stored. */
export interface StoredInteraction {
  readonly id: string;
  readonly kind: string;
}

export interface InteractionJob {
  interaction: StoredInteraction;
}

/** What has ended is of no use to anybody: the journal has it. So a dashboard never shows a job that failed; the log does. */
const defaultJobOptions = { removeOnComplete: true, removeOnFail: true, attempts: 1 } as const;

/** Spans of adding and processing jobs, and the trace that a job goes on with: nothing unless an SDK is loaded. */
export const telemetry = new BullMQOtel({ tracerName: "gatehouse" });

/** Nobody reads these events, of which BullMQ keeps 10,000 by default. */
const streams = { events: { maxLen: 100 } } as const;

/**
 * Jobs wake workers; the journal is the truth. A job of `requests`, `polls`, or `messages` carries only a kind and an ID, and may be
 * lost, delivered twice, or removed by hand without harm: the relay adds it again. One of `interactions` is the whole interaction, as
 * nobody else has it.
 */
export function createQueues(
  connection: RedisClient,
  prefix: string,
  /** The time by Redis's clock (ms): one that is off would put jobs off, or begin them too soon. */
  now: () => number = Date.now,
) {
  const options = { connection, prefix, defaultJobOptions, streams, telemetry };
  /** The next step of a request or a rollout. */
  const requests = new Queue<PendingJob>("requests", options);
  /** What Slack lacks of a request, a rollout, a notice. */
  const messages = new Queue<PendingJob>("messages", options);
  /** One read of a project or a VM, for all requests that wait for it. */
  const polls = new Queue<PendingJob>("polls", options);
  /** What people did in Slack, until it is handled: due only where its gateway died. */
  const interactions = new Queue<InteractionJob>("interactions", options);
  /** Periodic tasks, once for the installation: BullMQ's job schedulers. */
  const schedules = new Queue("schedules", options);
  /** By the kind of what is pending. */
  const queueOf = new Map<string, PendingQueue>();
  const all = [interactions, requests, messages, polls, schedules];
  for (const queue of all) queue.on("error", () => undefined); // the connection logs it

  return {
    interactions,
    messages,
    polls,
    schedules,
    requests,
    /** What is pending of this kind has its jobs there. */
    assign: (kind: string, queue: PendingQueue) => void queueOf.set(kind, queue),
    /**
     * Adds the job of what is pending. Where one of the same ID is delayed, that runs now; where one is active, this one runs after it
     * (`keepLastIfActive`).
     */
    async wake(kind: string, id: string): Promise<void> {
      const queue = queueOf.get(kind);
      // Another release has kinds of its own
      if (queue === undefined) return;
      const deduplication = { id: `${kind} ${id}`, keepLastIfActive: true, reschedule: true };
      await queue.add(kind, { kind, id }, { deduplication, timestamp: now() });
    },
    ready: (): Promise<unknown> => Promise.all(all.map((queue) => queue.waitUntilReady())),
    /** For each queue how many jobs wait, run, and are put off. */
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
  /** When the job that waits the longest was added or last begun (ms); undefined when none waits. */
  const oldestAt = oldest && Math.max(oldest.timestamp, oldest.processedOn ?? 0);
  return { queue: queue.name, waiting, active, delayed, oldestAt };
}
