import { type Keys, type RedisClient, isBeforeSetBack, redisNow } from "../../redis/redis.ts";

/**
 * Remembers that the compute service asked Gatehouse to slow down. No process calls it for a while
 * then.
 */
export function createThrottling(redis: RedisClient, key: Keys) {
  return {
    /** For how long calls pause (ms). */
    async throttledMs(): Promise<number> {
      const leftMs = await redis.pttl(key("throttled"));
      if (leftMs <= 0) return 0;
      const [since, now] = await Promise.all([redis.get(key("throttled")), redisNow(redis)]);
      return isBeforeSetBack(Number(since), now) ? 0 : leftMs;
    },

    async throttle(forMs: number): Promise<void> {
      const since = await redisNow(redis);
      await redis.set(key("throttled"), since, "PX", Math.max(1, Math.ceil(forMs)));
    },
  };
}
