import type { Config } from "../config/config.ts";
import type { Log } from "../log/log.ts";
import { type PendingWork, startPendingWork } from "../queue/pending-work.ts";
import type { Queues } from "../queue/queues.ts";
import { startRelay } from "../queue/relay.ts";
import type { Pending } from "../redis/pending.ts";
import type { Keys, RedisClient, RedisPurpose } from "../redis/redis.ts";
import type { Opened } from "./opened.ts";

/** How many messages one process works on at a time. Most of them wait for Slack's answer. */
const messagesAtOnce = 20;
/** How long messages may still be delivered while a process stops (ms). */
const lastMessagesMs = 3_000;

/**
 * Begins pending work of all kinds that this process noted (`onWake`): here where the process
 * handles its kind itself, otherwise by a job. The relay adds jobs for what stayed on the list.
 * Resolves with the worker of messages, which every process has. Those of steps and polls start with
 * a worker process.
 */
export async function startJobs(on: {
  messages: readonly PendingWork[];
  /** Work of workers, which any process wakes. */
  steps: readonly Pending[];
  polls: readonly Pending[];
  queues: Queues;
  config: Config;
  redis: RedisClient;
  key: Keys;
  connected(purpose: RedisPurpose): Promise<RedisClient>;
  /** Failpoints before and after work that this process noted begins or has its job. */
  at: ((point: string, subject: string) => Promise<void>) | undefined;
  log: Log;
  opened: Opened;
}) {
  const { messages, queues, config, redis, key, at, log, opened } = on;
  const { sweepMs, heartbeatMs } = config.policy.timing;

  async function note(kind: string, id: string): Promise<void> {
    await at?.(`${kind}:pending`, id);
    // Without Redis, its connection reports the problem, and the relay adds the job later.
    await queues.note(kind, id).catch(() => undefined);
    await at?.(`${kind}:job`, id);
  }
  const works = [
    { queue: queues.requests, all: on.steps },
    { queue: queues.polls, all: on.polls },
    { queue: queues.messages, all: messages.map((work) => work.pending) },
  ];
  for (const { queue, all } of works)
    for (const pending of all) {
      queues.assign(pending.kind, queue);
      pending.onWake((id) => void note(pending.kind, id));
    }
  opened(startRelay({ redis, key, queues, everyMs: sweepMs / 2, log }));
  const messageJobs = startPendingWork(messages, {
    queue: queues.messages,
    wake: queues.wake,
    connection: await on.connected("worker"),
    prefix: key.prefix,
    concurrency: messagesAtOnce,
    heartbeatMs,
    log,
  });
  for (const { pending } of messages) queues.assignHere(pending.kind, messageJobs.handleHere);
  opened({ close: () => messageJobs.close(lastMessagesMs) });
  return messageJobs;
}
