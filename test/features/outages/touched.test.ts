import { describe, expect, it } from "vitest";
import { touchedBy } from "../../../src/features/outages/post-recaps.ts";
import { createJournal } from "../../../src/core/request/journal.ts";
import { storeRequest, restartOf, vmTarget, stageOf } from "../../core/asking.ts";
import { testRedis } from "../../support/with-redis.ts";
import type { RequestIn } from "../../../src/core/request/stored-request.ts";
import { until } from "../../support/until.ts";

/** Resolves once Redis's clock has moved on, so that the next event is later. */
async function later(store: ReturnType<typeof createJournal>): Promise<number> {
  const before = await store.now();
  await until(() => store.now()).toBeGreaterThan(before + 1);
  return store.now();
}

describe("requests that an outage touched", () => {
  it("were made in it, moved in it, or were in progress when it began", async () => {
    await using here = await testRedis();
    const store = createJournal(here.redis, here.key);
    const plain = (name: string) => {
      const { approval: _none, ...submission } = restartOf(vmTarget(name));
      return storeRequest(store, submission);
    };
    const cancel = async (request: RequestIn<"draft" | "authorized">) =>
      store.move(request, { to: stageOf("cancelled"), why: "cancelled" });

    const endedBefore = await plain("ended-before");
    const underWay = await plain("under-way");
    await storeRequest(store, restartOf(vmTarget("waits-for-approval")));
    const endedInIt = await storeRequest(store, restartOf(vmTarget("ended-in-it")));
    await cancel(endedBefore);
    const since = await later(store);
    await later(store);
    await plain("asked-in-it");
    await cancel(endedInIt);
    const endedAt = await later(store);
    await later(store);
    await plain("asked-after");
    await cancel(underWay);

    const ids = await touchedBy({ id: "slack-1", part: "slack", since, until: endedAt }, store);
    const touched = (await store.getMany(ids)).map(({ record }) => record.target.name);
    expect(touched.toSorted()).toEqual(["asked-in-it", "ended-in-it", "under-way"]);
  });
});
