import { expect, it } from "vitest";
import { createStatusRecords } from "../../src/monitor/status-records.ts";
import { garbage } from "../support/only-whole.ts";
import { testRedis } from "../support/with-redis.ts";

it("a record that can't be read isn't known, hides no other, and is replaced", async () => {
  await using here = await testRedis();
  const records = createStatusRecords(here.redis, here.key);
  const running = { "vm-1": ["RUNNING", 1] } as const;
  await records.writeRecords(new Map([["p-1", running]]));
  for (const text of garbage) {
    await here.redis.hset(here.key("seen-statuses"), "p-2", text);
    expect([...(await records.readRecords())], text).toEqual([["p-1", running]]);
    await records.writeRecords(new Map([["p-2", running]]));
    expect([...(await records.readRecords(["p-2"]))]).toEqual([["p-2", running]]);
  }
});
