import { describe, expect, it } from "vitest";
import { defineScript, redisNow, redisTimeLua } from "../../src/redis/redis.ts";
import { testRedis } from "../support/with-redis.ts";

describe("Redis time", () => {
  it("is the same for a script as for a process, in whole milliseconds", async () => {
    await using here = await testRedis();
    const run = defineScript(here.redis, "testNow", `${redisTimeLua}\nreturn now`);
    const before = await redisNow(here.redis);
    const inScript = await run([], []);
    expect(inScript).toBeGreaterThanOrEqual(before);
    expect(inScript).toBeLessThanOrEqual(await redisNow(here.redis));
  });
});
