import { batches } from "../../redis/batches.ts";
import type { Keys, RedisClient } from "../../redis/redis.ts";
import { type Origin, originKey } from "./origin.ts";
import { type HistoryStep, parseSteps } from "./history.ts";
import type { StoredRequest } from "./stored-request.ts";

/**
 * Everything that reads requests but `get` and `getMany`. A person is shown only the part that they
 * may see.
 */
export function createLists(
  redis: RedisClient,
  key: Keys,
  get: (id: string) => Promise<StoredRequest | undefined>,
) {
  return {
    /** Resolves with the request of this origin, if it made one. */
    async madeBy(origin: Origin): Promise<StoredRequest | undefined> {
      const id = await redis.get(key("ask", originKey(origin)));
      return id ? get(id) : undefined;
    },

    async history(id: string): Promise<HistoryStep[]> {
      const named = key("request", id);
      const [createdAt, history] = await redis.hmget(named, "createdAt", "history");
      return parseSteps({ key: named, createdAt: Number(createdAt), history: history ?? "" });
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

    /** The IDs of requests asked for between these times (Redis, ms), newest first. */
    idsAskedBetween: (from: number, to: number, most: number): Promise<string[]> =>
      redis.zrevrangebyscore(key("requests", "recent"), to, from, "LIMIT", 0, most),
  };
}

/** Reads the newest requests: of a person, of a target, or all. */
export interface RecentReader extends Pick<ReturnType<typeof createLists>, "recentIds"> {
  getMany(ids: readonly string[]): Promise<StoredRequest[]>;
}

/** The requests of these IDs that are still kept, each ID once, however many they are. */
export async function requestsOf(
  ids: Iterable<string>,
  journal: { getMany(ids: readonly string[]): Promise<StoredRequest[]> },
): Promise<StoredRequest[]> {
  const requests: StoredRequest[] = [];
  for (const batch of batches([...new Set(ids)].filter((id) => id !== "")))
    requests.push(...(await journal.getMany(batch)));
  return requests;
}

/** At most `most` requests, newest first. */
export async function recentRequests(
  filter: { open?: boolean; requesterId?: string; targetId?: string; most: number },
  journal: RecentReader,
): Promise<readonly StoredRequest[]> {
  const { open, requesterId, targetId, most } = filter;
  // Ended requests are filtered out below, so more are read.
  const ids = await journal.recentIds(filter, open ? most * 5 : most);
  const requests = await journal.getMany(ids);
  return requests
    .filter(({ final, record }) => {
      if (open && final) return false;
      if (requesterId && record.requester.id !== requesterId) return false;
      return targetId === undefined || record.target.id === targetId;
    })
    .slice(0, most);
}
