import { describe, expect, it } from "vitest";
import { defineScript, redisNow, redisTimeLua } from "../../src/redis/redis.ts";
import { takeTurn } from "../../src/redis/turns.ts";
import { testRedis } from "../support/with-redis.ts";

describe("a turn", () => {
  it("comes to one of all processes, and to each kind of work by itself", async () => {
    await using here = await testRedis();
    const turn = (what: string) => takeTurn(here.redis, here.key, what, 60_000);
    const turns = await Promise.all([turn("look"), turn("look"), turn("look")]);
    expect(turns.filter(Boolean)).toHaveLength(1);
    expect(await turn("other")).toBe(true);
    expect(await here.redis.pttl(here.key("turn", "look"))).toBeLessThanOrEqual(42_000);
  });
});

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
