import type { ButtonSpec } from "../../messages/buttons.ts";
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

export type Reviews = ReturnType<typeof createReviews>;

/** As long as a request is kept, after whose end a review can't be opened again (ms). */
const signedForMs = 90 * 86_400_000;

export function createReviews(redis: RedisClient, key: Keys) {
  const signed = (request: string) => key("reviews-signed", request);
  return {
    /** False when the review was already signed. Idempotent. */
    async open(review: Review): Promise<boolean> {
      if ((await redis.exists(signed(review.request))) === 1) return false;
      await redis.hsetnx(key("reviews"), review.request, JSON.stringify(review));
      return true;
    },
    async close(request: string): Promise<void> {
      await redis.set(signed(request), "1", "PX", signedForMs);
      await redis.hdel(key("reviews"), request);
    },
    /** Those that nobody has signed, the oldest first. */
    async unsigned(): Promise<Review[]> {
      const all = Object.values(await redis.hgetall(key("reviews")));
      return all.map((text) => JSON.parse(text) as Review).toSorted((a, b) => a.at - b.at);
    },
  };
}

export const signAction = "review:sign";

/** `what` was done without approval. */
export const signReviewButton = (request: string, what?: string): ButtonSpec => ({
  label: "Sign review",
  about: what && `of ${what}`,
  action: signAction,
  value: JSON.stringify({ request }),
});

/** Stands beside the button, and goes with it. */
export const asksForReview = "Another administrator or approver must sign the review.";
