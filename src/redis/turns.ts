import type { RedisClient } from "./redis.ts";

/** True in one process per interval; if that process dies, another does the next interval. */
export async function takeTurn(
  redis: RedisClient,
  key: (...parts: string[]) => string,
  what: string,
  everyMs: number,
): Promise<boolean> {
  const ms = Math.max(1, Math.round(everyMs * 0.7));
  return (await redis.set(key("turn", what), "taken", "PX", ms, "NX")) !== null;
}
