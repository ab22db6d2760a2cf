import { randomUUID } from "node:crypto";
import type { Keys, RedisClient } from "../redis.ts";

/** True for one of all processes, once in so many milliseconds. Whoever dies in its turn leaves it to the next. */
export async function takeTurn(
  redis: RedisClient,
  key: Keys,
  what: string,
  everyMs: number,
): Promise<boolean> {
  const lease = Math.max(1, Math.round(everyMs * 0.7));
  return (await redis.set(key("turn", what), randomUUID(), "PX", lease, "NX")) !== null;
}
