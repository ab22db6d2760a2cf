import type { Keys, RedisClient } from "../../redis/redis.ts";

/** Lets something happen once, in whichever process it comes up first. */
export function createOnce(redis: RedisClient, key: Keys) {
  return {
    /** True for the first caller within this time, across all processes. */
    async useOnce(name: string, forMs: number): Promise<boolean> {
      return (await redis.set(key("used", name), "1", "PX", forMs, "NX")) !== null;
    },
  };
}
