import { describe, expect, it } from "vitest";
import { restart } from "../../../src/commands/vm/restart.ts";
import { reviewsInDigests } from "../../../src/features/break-glass/tell-reviews.ts";
import { createReviews } from "../../../src/features/break-glass/reviews.ts";
import { type Journal, createJournal } from "../../../src/core/request/journal.ts";
import { storeRequest, restartOf, stageOf, vmTarget } from "../../core/asking.ts";
import { testRedis } from "../../support/with-redis.ts";

const at = Date.parse("2026-11-20T07:00:00Z");
const plain = (text: string) => text.replaceAll(/<!date\^\d+\^[^|>]*\|([^>]*)>/g, "$1");

describe("a review in digests", () => {
  it("asks for its signature with the sentence of its request, as long as that is kept, of what the digest speaks of", async () => {
    await using redis = await testRedis();
    const store: Journal = createJournal(redis.redis, redis.key);
    const reviews = createReviews(redis.redis, redis.key);
    for (const name of ["web-1", "web-2"]) {
      const { approval: _skipped, ...submission } = restartOf(vmTarget(name));
      const request = await storeRequest(store, { ...submission, breakGlass: true });
      await store.move(request, { to: stageOf("cancelled"), why: "no" });
      const { id, createdAt } = request.record;
      const what = { command: "vm restart", target: name, by: "U0OLIVIA", reason: "it leaks" };
      await reviews.open({ request: id, ...what, at: createdAt });
    }
    const gone = { command: "vm restore", target: "db-1", by: "U0OLIVIA", reason: "old", at };
    await reviews.open({ request: "r-gone", ...gone });
    const part = reviewsInDigests({ store, reviews, changes: [restart] });
    const { all, tellsOf } = await part.read({
      vms: [],
      seesAll: false,
      only: async (reading, targetOf) =>
        (await reading).filter((one) => targetOf(one)?.name !== "web-2"),
      since: 0,
      now: 0,
    });
    const lines = all.flatMap((kind) => kind.lines);
    expect(lines.map(({ text }) => plain(text.value))).toEqual([
      "Nov 20, 7:00 AM UTC 🚨 *vm restore* `db-1` ran without approval: “old”. Another administrator or approver must sign the review.",
      expect.stringMatching(
        /\*\w+\* asked for the restart of `web-1` 🚨 without approval \(break-glass\), but it was canceled: cancelled\. Another administrator/,
      ),
    ]);
    expect(lines.map(({ button }) => button?.action)).toEqual(["review:sign", "review:sign"]);
    expect([...(tellsOf ?? [])]).toHaveLength(2);
  });
});
