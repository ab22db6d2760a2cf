import { readPending } from "../../src/redis/pending.ts";
import type { Keys, RedisClient } from "../../src/redis/redis.ts";

/** How many of these kinds are on the pending list, due or not. */
export async function pendingOf(
  redis: RedisClient,
  key: Keys,
  ...kinds: readonly string[]
): Promise<number> {
  const pending = await readPending(redis, key);
  return kinds.reduce((sum, kind) => sum + (pending.get(kind)?.length ?? 0), 0);
}
