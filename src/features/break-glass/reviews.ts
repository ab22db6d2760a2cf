import * as z from "zod";
import type { ButtonSpec } from "../../messages/buttons.ts";
import { defineRecord, objectOf } from "../../redis/define-record.ts";
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

export const reviewRecord = defineRecord({
  name: "review of a break-glass",
  schema: objectOf<Review>({
    request: z.string(),
    command: z.string(),
    target: z.string(),
    by: z.string(),
    reason: z.string(),
    at: z.number(),
  }),
});

/**
 * Stands for a review that can't be read. It must be signed all the same, and its request says what
 * was done and by whom.
 */
const unreadableReview = (request: string): Review => ({
  request,
  command: "a change",
  target: "a VM or project that can't be read",
  by: "",
  reason: "",
  at: 0,
});

export type Reviews = ReturnType<typeof createReviews>;

/** As long as a request is kept, after whose end a review can't be opened again (ms). */
const signedForMs = 90 * 86_400_000;

export function createReviews(redis: RedisClient, key: Keys) {
  const signed = (request: string) => key("reviews-signed", request);
  return {
    /** False when the review was already signed. Idempotent. */
    async open(review: Review): Promise<boolean> {
      if ((await redis.exists(signed(review.request))) === 1) return false;
      await redis.hsetnx(key("reviews"), review.request, reviewRecord.write(review));
      return true;
    },
    async close(request: string): Promise<void> {
      await redis.set(signed(request), "1", "PX", signedForMs);
      await redis.hdel(key("reviews"), request);
    },
    /** Those that nobody has signed, the oldest first. */
    async unsigned(): Promise<Review[]> {
      const all = Object.entries(await redis.hgetall(key("reviews"))).map(
        ([request, text]) =>
          reviewRecord.parse(text, `${key("reviews")} ${request}`) ?? unreadableReview(request),
      );
      return all.toSorted((a, b) => a.at - b.at);
    },
  };
}

export const signAction = "review:sign";

/** `deed` was done without approval. */
export const signReviewButton = (request: string, deed?: string): ButtonSpec => ({
  label: "Sign review",
  about: deed && `of ${deed}`,
  action: signAction,
  value: JSON.stringify({ request }),
});

/** Stands beside the button, and goes with it. */
export const asksForReview = "Another administrator or approver must sign the review.";
