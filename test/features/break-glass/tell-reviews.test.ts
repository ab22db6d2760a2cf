import { describe, expect, it } from "vitest";
import {
  type UnsignedReview,
  reviewLines,
  reviewsInDigests,
} from "../../../src/features/break-glass/tell-reviews.ts";
import { createReviews } from "../../../src/features/break-glass/reviews.ts";
import { type Journal, createJournal } from "../../../src/core/request/journal.ts";
import { storeRequest, restartOf, stageOf, vmTarget } from "../../core/asking.ts";
import { testRedis } from "../../support/with-redis.ts";

const at = Date.parse("2026-11-20T07:00:00Z");
const plain = (text: string) => text.replaceAll(/<!date\^\d+\^[^|>]*\|([^>]*)>/g, "$1");

const review = (some: Partial<UnsignedReview> = {}): UnsignedReview => ({
  request: "r-emergency",
  command: "vm restore",
  target: "db-1",
  on: undefined,
  at,
  ...some,
});

describe("a review in digests", () => {
  it("asks for its signature, with who requested it, why, and how it ended", () => {
    const { all, tellsOf } = reviewLines(
      [
        review(),
        review({ request: "r-2", by: "olivia", reason: "corrupt index", outcome: "done" }),
      ],
      [],
    );
    expect(all.flatMap(({ lines }) => lines.map(({ text }) => plain(text.value)))).toEqual([
      "🚨 *vm restore* `db-1` ran without approval Nov 20, 7:00 AM UTC. Another administrator or approver must sign the review.",
      "🚨 *vm restore* `db-1` ran without approval Nov 20, 7:00 AM UTC, requested by olivia: “corrupt index”. Outcome: done. Another administrator or approver must sign the review.",
    ]);
    expect(all.flatMap(({ lines }) => lines.map(({ button }) => button?.action))).toEqual([
      "review:sign",
      "review:sign",
    ]);
    expect([...(tellsOf ?? [])]).toEqual(["r-emergency", "r-2"]);
  });

  it("adds to the line of its request who signed it", () => {
    const { adds } = reviewLines([], [{ request: "r-emergency", by: "amir", at }]);
    expect(plain(adds?.get("r-emergency")?.value ?? "")).toBe(
      "Review signed by amir Nov 20, 7:00 AM UTC.",
    );
  });

  it("is of what the digest speaks of, with the outcome since the last one", async () => {
    await using redis = await testRedis();
    const store: Journal = createJournal(redis.redis, redis.key);
    const reviews = createReviews(redis.redis, redis.key);
    for (const name of ["web-1", "web-2"]) {
      const request = await storeRequest(store, restartOf(vmTarget(name)));
      await store.move(request, { to: stageOf("cancelled"), why: "no" });
      const { id, createdAt } = request.record;
      const what = { command: "vm restart", target: name, by: "U0OLIVIA", reason: "it leaks" };
      await reviews.open({ request: id, ...what, at: createdAt });
    }
    await store.note({
      what: "review-signed",
      who: "U0AMIR",
      team: "T",
      request: "r-x",
      why: "ok",
    });
    const part = reviewsInDigests({
      ...redis,
      store,
      reviews,
      personName: async (id) => `<${id}>`,
    });
    const told = async (since: number) => {
      const { all, adds } = await part.read({
        vms: [],
        seesAll: false,
        only: async (reading, targetOf) =>
          (await reading).filter((one) => targetOf(one)?.name === "web-1"),
        since,
        now: 0,
      });
      return [
        ...all.flatMap(({ lines }) => lines.map(({ text }) => text.value)),
        ...(adds ?? new Map()).keys(),
      ];
    };
    expect(await told(0)).toEqual([expect.stringMatching(/`web-1` .* Outcome: canceled\./), "r-x"]);
    const [later, ...none] = await told((await store.now()) + 1000);
    expect(later).toMatch(/`web-1` ran without approval[^]*: “it leaks”\. Another/);
    expect(none).toEqual([]);
  });
});
