import type { Keys, RedisClient } from "../../redis/redis.ts";

/** The compute service asked Gatehouse to slow down: no process calls it for a while. */
export function createThrottling(redis: RedisClient, key: Keys) {
  return {
    /** For how long calls pause (ms). */
    async throttledMs(): Promise<number> {
      return Math.max(0, await redis.pttl(key("throttled")));
    },

    async throttle(forMs: number): Promise<void> {
      await redis.set(key("throttled"), "1", "PX", Math.max(1, Math.ceil(forMs)));
    },
  };
}
