import { createQueues, type Queues } from "../../src/queue/queues.ts";
import type { Keys, RedisClient } from "../../src/redis/redis.ts";

/** Counts the deliveries that are acknowledged, or on their way to that, and not handled yet. */
export function countPendingDeliveries(redis: RedisClient, key: Keys): () => Promise<number> {
  // The queues are made once, because tests count again and again, and only in worlds that are asked.
  let queues: Queues | undefined;
  return () => {
    queues ??= createQueues(redis, key.prefix);
    return queues.interactions.getJobCountByTypes("delayed", "waiting", "active");
  };
}
