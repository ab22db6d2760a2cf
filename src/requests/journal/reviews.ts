import type { Keys, RedisClient } from "../../redis/redis.ts";

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
    /** False when the review was already signed. Idempotent. */
    async openReview(review: Review): Promise<boolean> {
      if ((await redis.sismember(key("reviews-signed"), review.request)) === 1) return false;
      await redis.hsetnx(key("reviews"), review.request, JSON.stringify(review));
      return true;
    },
    /** False when it was already signed. */
    async closeReview(request: string): Promise<boolean> {
      await redis.sadd(key("reviews-signed"), request);
      return (await redis.hdel(key("reviews"), request)) === 1;
    },
  };
}
