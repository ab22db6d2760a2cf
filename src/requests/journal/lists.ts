import { createDueList } from "../../redis/due-list.ts";
import type { Keys, RedisClient } from "../../redis/redis.ts";
import { parseSteps, type Step } from "./parse-stored.ts";
import type { StoredRequest } from "./record.ts";

/** Whatever tells of requests but `get` and `getMany`: what a person reads of it depends on what they may see. */
export function createLists(
  redis: RedisClient,
  key: Keys,
  get: (id: string) => Promise<StoredRequest | undefined>,
) {
  return {
    /** The request that this interaction made, if any. */
    async madeBy(interactionId: string): Promise<StoredRequest | undefined> {
      const id = await redis.get(key("ask", interactionId));
      return id ? get(id) : undefined;
    },

    async history(id: string): Promise<Step[]> {
      const [createdAt, history] = await redis.hmget(key("request", id), "createdAt", "history");
      return parseSteps({ createdAt: Number(createdAt), history: history ?? "" });
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

    /** Requested between these times (Redis, ms), newest first. */
    idsAskedBetween: (from: number, to: number, most: number): Promise<string[]> =>
      redis.zrevrangebyscore(key("requests", "recent"), to, from, "LIMIT", 0, most),

    async openReviews(): Promise<Review[]> {
      const all = Object.values(await redis.hgetall(key("reviews")));
      return all.map((text) => JSON.parse(text) as Review).toSorted((a, b) => a.at - b.at);
    },
    async review(request: string): Promise<Review | undefined> {
      const text = await redis.hget(key("reviews"), request);
      return text ? (JSON.parse(text) as Review) : undefined;
    },
  };
}

/** A use of break-glass that another administrator has yet to sign. */
export interface Review {
  request: string;
  command: string;
  target: string;
  /** User ID. */
  by: string;
  reason: string;
  at: number;
}

export function createReviews(redis: RedisClient, key: Keys) {
  return {
    /** Idempotent, also after the review was signed. */
    async openReview(review: Review): Promise<void> {
      if ((await redis.sismember(key("reviews-signed"), review.request)) === 1) return;
      await redis.hsetnx(key("reviews"), review.request, JSON.stringify(review));
    },
    /** False when it was already signed. */
    async closeReview(request: string): Promise<boolean> {
      await redis.sadd(key("reviews-signed"), request);
      return (await redis.hdel(key("reviews"), request)) === 1;
    },
  };
}

/** Requests that were resent: their first call may still take effect. */
export function createLates(redis: RedisClient, key: Keys) {
  const due = createDueList(redis, key("lates"));
  return {
    expectLate: (id: string) => due.later(id, 0),
    /** Asked for all the time, and hardly ever there: one command says so. */
    takeLates: async (visibilityTimeoutMs: number) =>
      (await due.depth()) === 0 ? [] : due.take(20, visibilityTimeoutMs),
    lateOver: (id: string) => due.remove(id),
  };
}

/** At most `most`, newest first. */
export async function recentRequests(
  filter: { open?: boolean; requesterId?: string; targetId?: string; most: number },
  journal: Pick<ReturnType<typeof createLists>, "recentIds"> & {
    getMany(ids: readonly string[]): Promise<StoredRequest[]>;
  },
): Promise<readonly StoredRequest[]> {
  const { open, requesterId, targetId, most } = filter;
  // Finished ones are filtered out below, so more are read
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
