import type { RedisClient } from "../redis.ts";

/** Redis time in milliseconds: the one clock that all processes share. */
export async function redisNow(redis: RedisClient): Promise<number> {
  const [seconds, micros] = await redis.time();
  return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
}
