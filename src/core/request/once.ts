import type { Keys, RedisClient } from "../../redis/redis.ts";

/** What may happen once, in whichever process it comes up first. */
export function createOnce(redis: RedisClient, key: Keys) {
  return {
    /** True once in this time, across all processes. */
    async useOnce(name: string, forMs: number): Promise<boolean> {
      return (await redis.set(key("used", name), "1", "PX", forMs, "NX")) !== null;
    },
  };
}
