import { Queue } from "bullmq";
import type { Keys, RedisClient } from "../../src/redis/redis.ts";

/** Counts the deliveries that are acknowledged, or on their way to that, and not handled yet. */
export function countPendingDeliveries(redis: RedisClient, key: Keys): () => Promise<number> {
  // Made at the first count, because most worlds are never asked.
  let interactions: Queue | undefined;
  return () => {
    if (!interactions) {
      interactions = new Queue("interactions", { connection: redis, prefix: key.prefix });
      // The connection logs its errors already.
      interactions.on("error", () => undefined);
    }
    return interactions.getJobCountByTypes("delayed", "waiting", "active");
  };
}
