import { type Pending, readPending } from "../../src/redis/pending.ts";
import { type Keys, type RedisClient, redisNow } from "../../src/redis/redis.ts";

/** How many of these kinds are on the pending list, due or not. */
export async function pendingOf(
  redis: RedisClient,
  key: Keys,
  ...kinds: readonly string[]
): Promise<number> {
  const pending = await readPending(redis, key);
  return kinds.reduce((sum, kind) => sum + (pending.get(kind)?.length ?? 0), 0);
}

/** When it is due (ms from now, 0 for now); undefined where it is off the list. */
export async function dueInMs(
  redis: RedisClient,
  pending: Pick<Pending, "dueAt">,
  id: string,
): Promise<number | undefined> {
  const [dueAt, now] = await Promise.all([pending.dueAt(id), redisNow(redis)]);
  return dueAt === undefined ? undefined : Math.max(0, Math.ceil(dueAt - now));
}
