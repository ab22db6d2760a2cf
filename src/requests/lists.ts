import type { Keys, RedisClient } from "../redis.ts";
import { keepFinalMs } from "./journal-entry.ts";
import { locksOf, type RequestRecord, type StoredRequest } from "./record.ts";
import { redisNow } from "./redis-now.ts";

/** Ways to find requests: by who asked, by what they are about, by the delivery that made them, those that are open. */
export function createLists(
  redis: RedisClient,
  key: Keys,
  get: (id: string) => Promise<StoredRequest | undefined>,
) {
  return {
    /** The request that this delivery made, if it did. */
    async madeBy(askId: string): Promise<StoredRequest | undefined> {
      const id = await redis.get(key("ask", askId));
      return id ? get(id) : undefined;
    },

    async history(
      id: string,
    ): Promise<{ at: number; state: string; why: string; actor?: string }[]> {
      const rows = await redis.lrange(key("request", id, "history"), 0, -1);
      return rows.map((row) => {
        const cut = row.indexOf(" ");
        return {
          at: Number(row.slice(0, cut)),
          ...(JSON.parse(row.slice(cut + 1)) as { state: string; why: string }),
        };
      });
    },

    openIds: (): Promise<string[]> => redis.zrange(key("requests", "open"), 0, "-1"),
    openCount: (): Promise<number> => redis.zcard(key("requests", "open")),

    async recentIds(
      filter: { requesterId?: string; targetId?: string; open?: boolean },
      most: number,
    ): Promise<string[]> {
      const list = filter.requesterId
        ? key("requests", "person", filter.requesterId)
        : filter.targetId
          ? key("requests", "target", filter.targetId)
          : key("requests", filter.open ? "open" : "recent");
      return redis.zrevrange(list, 0, most - 1);
    },

    /** Those asked for between these times (Redis, ms), newest first. */
    idsAskedBetween: (from: number, to: number, most: number): Promise<string[]> =>
      redis.zrevrangebyscore(key("requests", "recent"), to, from, "LIMIT", 0, most),

    watchedIds: (watchKey: string): Promise<string[]> => redis.smembers(key("watch", watchKey)),

    /** Who holds the target of this request, if anybody does. */
    lockHolder: (record: RequestRecord): Promise<string | null> =>
      redis.get(key("lock", locksOf(record).take)),

    /** Trims the lists of ended requests to those that are still kept. */
    async trim(): Promise<void> {
      const before = (await redisNow(redis)) - keepFinalMs;
      await redis.zremrangebyscore(key("requests", "recent"), 0, before);
    },
  };
}
