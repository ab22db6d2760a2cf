import type { Keys, RedisClient } from "../../src/redis/redis.ts";

/** How many deliveries are acknowledged, or on their way to that, and not handled yet. */
export async function pendingDeliveries(redis: RedisClient, key: Keys): Promise<number> {
  return redis.hlen(key("intake", "records"));
}
