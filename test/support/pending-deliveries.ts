import type { Keys, RedisClient } from "../../src/redis/redis.ts";

/** How many deliveries are acknowledged, or on their way to that, and not handled yet. */
export async function pendingDeliveries(redis: RedisClient, key: Keys): Promise<number> {
  // In this order: a claim moves one from the first to the second
  const arrived = await redis.hlen(key("intake", "arrived"));
  return arrived + (await redis.hlen(key("intake", "records")));
}
