import { expect, it } from "vitest";
import { createOutageStore, refusedRecord } from "../../../src/features/outages/outages.ts";
import { expectOnlyWhole, garbage } from "../../support/only-whole.ts";
import { testRedis } from "../../support/with-redis.ts";

const refused = {
  id: "i-1",
  channelId: "C01OPS",
  userId: "U0OLIVIA",
  teamId: "T0OURS",
  words: "vm restart web-1",
  name: "olivia",
  mayRun: true,
};

it("a refused interaction is read whole or not at all, and hides no other", async () => {
  expectOnlyWhole(refusedRecord, refused);
  await using here = await testRedis();
  const outages = createOutageStore(here.redis, here.key);
  await outages.keepRefused("redis-1", [refused]);
  for (const text of garbage) {
    await here.redis.hset(here.key("outages", "refused", "redis-1"), "i-2", text);
    expect(await outages.refused("redis-1"), text).toEqual([refused]);
  }
});
