import { inject } from "vitest";
import { silentLog } from "../../src/log/log.ts";
import { type PendingWork, startPendingWork } from "../../src/queue/pending-work.ts";
import { createQueues } from "../../src/queue/queues.ts";
import { startRelay } from "../../src/queue/relay.ts";
import { type Keys, type RedisClient, connectRedis, redisNow } from "../../src/redis/redis.ts";
import { type Source, deliveryWork } from "../../src/core/deliver/deliver.ts";

interface Place {
  redis: RedisClient;
  key: Keys;
  /** How often what is overdue is looked for (ms). */
  relayEveryMs?: number;
}

let started = 0;

/**
 * Works on what is pending as a process does. Each call has queues of its own, so that several have the same ID in hand at once, as when
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
    const { wake } = queues;
    for (const { pending } of works) {
      queues.assign(pending.kind, queues[name]);
      pending.onWake((id) => void wake(pending.kind, id).catch(() => undefined));
    }
    const relay = startRelay({ redis, key, queues: { wake }, everyMs: relayEveryMs, log });
    const work = startPendingWork(works, {
      queue: queues[name],
      wake,
      connection,
      prefix,
      concurrency: 20,
      heartbeatMs: 500,
      log,
    });
    work.take();
    return { work, relay, connection, queues };
  })();
  return {
    prefix,
    /** It hears what this process puts on a list. */
    started: starting.then(() => undefined),
    async close(deadlineMs = 5_000): Promise<void> {
      const { work, relay, connection, queues } = await starting;
      await relay.close();
      await work.close(deadlineMs);
      await queues.close();
      connection.disconnect();
    },
  };
}

type DeliveryOptions = Parameters<typeof deliveryWork>[1];

/** Delivers what these sources owe, as the sandbox's bot, to a Slack that refuses this app nothing. */
export function startDelivery(
  sources: readonly Source[],
  {
    redis,
    key,
    ...options
  }: Place & Pick<DeliveryOptions, "web" | "rateLimiter"> & Partial<DeliveryOptions>,
) {
  const work = deliveryWork(sources, {
    log: silentLog(),
    refusal: async () => undefined,
    us: () => ({ botId: "B0GATEHOUSE", botUserId: "U0GATEHOUSE" }),
    now: () => redisNow(redis),
    ...options,
  });
  return startWork("messages", work, { redis, key });
}
