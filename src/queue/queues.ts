import { Queue } from "bullmq";
import { BullMQOtel } from "bullmq-otel";
import type { RedisClient } from "../redis/redis.ts";

export type Queues = ReturnType<typeof createQueues>;

export type QueueDepth = Awaited<ReturnType<typeof depthOf>>;

export const requestQueue = "requests";

/** One ID of a pending list. */
export interface PendingJob {
  kind: string;
  id: string;
}

/** An act in Slack that was acknowledged, or is about to be, as it is stored. */
export interface Kept {
  readonly id: string;
  readonly kind: string;
}

export interface InteractionJob {
  interaction: Kept;
}

export interface RequestJob {
  /** Of a request or a rollout. */
  request: string;
}

/** What has ended is of no use to anybody: the journal has it. */
const defaultJobOptions = { removeOnComplete: true, removeOnFail: true, attempts: 1 } as const;

/** Spans of adding and processing jobs, and the trace that a job goes on with: nothing unless an SDK is loaded. */
export const telemetry = new BullMQOtel({ tracerName: "gatehouse" });

/** Nobody reads these events, of which BullMQ keeps 10,000 by default. */
const streams = { events: { maxLen: 100 } } as const;

/**
 * Jobs wake workers; the journal is the truth. A job carries only an ID, and may be lost, delivered twice, or removed by hand
 * without harm: the sweep enqueues it again.
 */
export function createQueues(connection: RedisClient, prefix: string) {
  const options = { connection, prefix, defaultJobOptions, streams, telemetry };
  const requests = new Queue<RequestJob>(requestQueue, options);
  /** What Slack lacks of a request, a rollout, an alert, a notice. */
  const messages = new Queue<PendingJob>("messages", options);
  /** One read of a project or a VM, for all requests that wait for it. */
  const polls = new Queue<PendingJob>("polls", options);
  /** What people did in Slack, until it is handled: due only where its gateway died. */
  const interactions = new Queue<InteractionJob>("interactions", options);
  /** What one worker does for all, again and again: BullMQ's job schedulers. */
  const schedules = new Queue("schedules", options);
  const all = [interactions, requests, messages, polls, schedules];
  for (const queue of all) queue.on("error", () => undefined); // the connection logs it

  return {
    interactions,
    messages,
    polls,
    schedules,
    /** Enqueues a step of a request or a rollout: now, also where one is put off, and once more after one that runs. */
    async wake(id: string): Promise<void> {
      const deduplication = { id, keepLastIfActive: true, reschedule: true };
      await requests.add("advance", { request: id }, { deduplication });
    },
    /** Enqueues a step where there is none: its job was lost. */
    async wakeIfIdle(id: string): Promise<void> {
      await requests.add("advance", { request: id }, { deduplication: { id } });
    },
    /** Makes every step that is put off due now. */
    bringForward: (): Promise<void> => requests.promoteJobs(),
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
