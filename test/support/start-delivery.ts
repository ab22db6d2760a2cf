import { inject } from "vitest";
import { startGatehouseSlack } from "../../demo/world.ts";
import { createRateLimiter, type RateLimiter } from "../../src/core/deliver/rate-limiter.ts";
import { createWeb } from "../../src/slack/web.ts";
import { pendingOf } from "./pending.ts";
import { testPace } from "./start-world.ts";
import { testRedis } from "./with-redis.ts";
import { silentLog } from "../../src/log/log.ts";
import { type PendingWork, startPendingWork } from "../../src/queue/pending-work.ts";
import { createQueues } from "../../src/queue/queues.ts";
import { startRelay } from "../../src/queue/relay.ts";
import { type Keys, type RedisClient, connectRedis, redisNow } from "../../src/redis/redis.ts";
import { type Source, messageWork } from "../../src/core/deliver/deliver.ts";
import { until } from "./until.ts";

interface Place {
  redis: RedisClient;
  key: Keys;
  /** How often what is overdue is looked for (ms). */
  relayEveryMs?: number;
}

let processes = 0;

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
  const prefix = `${key.prefix}:process-${++processes}`;
  const starting = (async () => {
    const queues = createQueues(redis, prefix);
    const connection = await connectRedis(inject("redisUrl"), "worker", log);
    const { wake } = queues;
    for (const { pending } of works) {
      queues.assign(pending.kind, queues[name]);
      pending.onWake((id) => void queues.note(pending.kind, id).catch(() => undefined));
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
    for (const { pending } of works) queues.assignHere(pending.kind, work.handleHere);
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

type DeliveryOptions = Parameters<typeof messageWork>[1];

/** Delivers what these sources owe, as the sandbox's bot, to a Slack that refuses this app nothing. */
export function startDelivery(
  sources: readonly Source[],
  {
    redis,
    key,
    ...options
  }: Place & Pick<DeliveryOptions, "web" | "rateLimiter"> & Partial<DeliveryOptions>,
) {
  const work = messageWork(sources, {
    log: silentLog(),
    refusal: async () => undefined,
    us: () => ({ botId: "B0GATEHOUSE", botUserId: "U0GATEHOUSE" }),
    now: () => redisNow(redis),
    retryMs: testPace.messageRetryMs,
    ...options,
  });
  return startWork("messages", work, { redis, key });
}

/** Limits that hold no message back for longer than this (ms). */
const limitsOf = (interval: number) => ({
  posts: { interval, burst: interval > 1 ? 1 : 100, reserve: 0 },
  edits: { interval: 1, burst: 100, reserve: 0 },
});

/**
 * The level at which messages are delivered: the sandbox Slack and Redis, without workers and the compute service. A test starts as
 * many delivering processes as it needs. `interval`: how often a channel takes a message (ms).
 */
export async function startMessaging({ interval = 1 } = {}) {
  const slack = await startGatehouseSlack({ rateLimits: "off" });
  const { redis, key, [Symbol.asyncDispose]: disconnect } = await testRedis();
  const started: { close(deadlineMs?: number): Promise<void> }[] = [];
  return {
    slack,
    redis,
    key,
    /** Starts a process that delivers what these sources owe, with a rate limiter of its own. */
    deliver(
      sources: readonly Source[],
      change: (usual: RateLimiter) => RateLimiter = (usual) => usual,
      connection: RedisClient = redis,
    ) {
      const delivery = startDelivery(sources, {
        web: createWeb({ token: slack.app.botToken, apiUrl: slack.apiUrl, log: silentLog() }),
        rateLimiter: change(createRateLimiter(connection, key, limitsOf(interval))),
        redis: connection,
        key,
      });
      started.push(delivery);
      return delivery;
    },
    /**
     * Resolves when no message of this kind is pending. That may take longer than the post itself: a process that finds another's call
     * in flight comes back once that must have ended, after ten seconds.
     */
    async empty(kind: string): Promise<void> {
      await until(() => pendingOf(redis, key, kind)).toBe(0);
    },
    async [Symbol.asyncDispose]() {
      for (const delivery of started) await delivery.close();
      await disconnect();
      await slack.close();
    },
  };
}
