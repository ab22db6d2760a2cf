import { expect, it } from "vitest";
import { createReviews, reviewRecord } from "../../../src/features/break-glass/reviews.ts";
import { expectOnlyWhole, garbage } from "../../support/only-whole.ts";
import { testRedis } from "../../support/with-redis.ts";

const review = {
  request: "r-1",
  command: "vm stop",
  target: "db-1",
  by: "U0OLIVIA",
  reason: "it leaks",
  at: 1,
};

it("a review is read whole or not at all", () => {
  expectOnlyWhole(reviewRecord, review);
});

it("a review that can't be read must be signed all the same, and hides no other", async () => {
  await using here = await testRedis();
  const reviews = createReviews(here.redis, here.key);
  await reviews.open(review);
  for (const text of garbage) {
    await here.redis.hset(here.key("reviews"), "r-2", text);
    const unsigned = await reviews.unsigned();
    expect(
      unsigned.map(({ request }) => request),
      text,
    ).toEqual(["r-2", "r-1"]);
  }
  await reviews.close("r-2");
  expect(await reviews.unsigned()).toEqual([review]);
});
