import { inject } from "vitest";
import { silentLog } from "../../src/log/log.ts";
import { type PendingWork, startPendingWork } from "../../src/queue/pending-work.ts";
import { createQueues } from "../../src/queue/queues.ts";
import { type Keys, type RedisClient, connectRedis } from "../../src/redis/redis.ts";
import { type Source, deliveryWork } from "../../src/slack/deliver/deliver.ts";

interface Place {
  redis: RedisClient;
  key: Keys;
  /** How often what is overdue is looked for (ms). */
  relayEveryMs?: number;
}

let started = 0;

/**
 * Works on pending IDs as a process does. Each call has queues of its own, so that several have the same ID in hand at once, as when
 * BullMQ begins the job of a frozen process elsewhere.
 */
export function startWork(
  name: "messages" | "polls",
  works: readonly PendingWork[],
  { redis, key, relayEveryMs = 150 }: Place,
) {
  const log = silentLog();
  const prefix = `${key.prefix}:process-${++started}`;
  const starting = (async () => {
    const queues = createQueues(redis, prefix);
    const connection = await connectRedis(inject("redisUrl"), "worker", log);
    const work = startPendingWork(works, {
      queue: queues[name],
      connection,
      prefix,
      concurrency: 20,
      heartbeatMs: 500,
      relayEveryMs,
      log,
    });
    work.take();
    return { work, connection, queues };
  })();
  return {
    prefix,
    /** It hears what this process puts on a list. */
    started: starting.then(() => undefined),
    async close(deadlineMs = 5_000): Promise<void> {
      const { work, connection, queues } = await starting;
      await work.close(deadlineMs);
      await queues.close();
      connection.disconnect();
    },
  };
}

/** Delivers what these sources owe. */
export const startDelivery = (
  sources: readonly Source[],
  { redis, key, ...options }: Place & Parameters<typeof deliveryWork>[1],
) => startWork("messages", deliveryWork(sources, options), { redis, key });
