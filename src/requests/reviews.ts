import type { Keys, RedisClient } from "../redis.ts";

/** A break-glass that another administrator has yet to sign. */
export interface Review {
  request: string;
  command: string;
  target: string;
  /** User id of whoever broke the glass. */
  by: string;
  reason: string;
  /** Milliseconds. */
  at: number;
}

/** Open reviews, until somebody else has looked. */
export function createReviews(redis: RedisClient, key: Keys) {
  return {
    /** Opening it again is harmless, also after it was signed. */
    async openReview(review: Review): Promise<void> {
      if ((await redis.sismember(key("reviews-signed"), review.request)) === 1) return;
      await redis.hsetnx(key("reviews"), review.request, JSON.stringify(review));
    },
    async openReviews(): Promise<Review[]> {
      const all = Object.values(await redis.hgetall(key("reviews")));
      return all.map((text) => JSON.parse(text) as Review).toSorted((a, b) => a.at - b.at);
    },
    async review(request: string): Promise<Review | undefined> {
      const text = await redis.hget(key("reviews"), request);
      return text ? (JSON.parse(text) as Review) : undefined;
    },
    /** False when it was signed before. */
    async closeReview(request: string): Promise<boolean> {
      await redis.sadd(key("reviews-signed"), request);
      return (await redis.hdel(key("reviews"), request)) === 1;
    },
  };
}
