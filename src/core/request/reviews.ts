import { type Keys, type RedisClient, redisNow } from "../../redis/redis.ts";

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

/** How long a notice that asks for a signature is remembered (ms). */
const keptMs = 7 * 24 * 3600_000;
/** A message is put together for so long before it is posted, at most (ms): what it tells may be newer. */
const mostOldMs = 5 * 60_000;

export function createReviews(redis: RedisClient, key: Keys) {
  /** The IDs of notices that ask to sign a review, by when. */
  const asking = key("reviews-asked");
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
    /** Before a notice is announced that asks to sign reviews: who signs is edited in there. */
    async noteReviewAsked(noticeId: string): Promise<void> {
      const now = await redisNow(redis);
      const over = redis.pipeline().zremrangebyscore(asking, "-inf", now - keptMs);
      await over.zadd(asking, now, noticeId).pexpire(asking, keptMs).exec();
    },
    /** IDs of the notices that may ask for a review that was opened then (ms). */
    reviewAskedSince: (at: number) => redis.zrangebyscore(asking, at - mostOldMs, "+inf"),
  };
}
