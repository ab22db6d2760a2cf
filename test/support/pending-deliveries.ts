import { createQueues } from "../../src/queue/queues.ts";
import type { Keys, RedisClient } from "../../src/redis/redis.ts";

/** How many deliveries are acknowledged, or on their way to that, and not handled yet. */
export async function pendingDeliveries(redis: RedisClient, key: Keys): Promise<number> {
  const { interactions } = createQueues(redis, key.prefix);
  return interactions.getJobCountByTypes("delayed", "waiting", "active");
}
