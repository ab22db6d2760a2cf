import { describe, expect, it, vi } from "vitest";
import { createLeases, takeTurn } from "../../src/redis/due-list.ts";
import { redisNow, redisTimeLua, defineScript } from "../../src/redis/redis.ts";
import { testRedis } from "../support/with-redis.ts";

async function leasesHere() {
  const here = await testRedis();
  return { ...here, leases: createLeases(here.redis), lease: here.key("lease") };
}

describe("a lease", () => {
  it("is held by one at a time, whose name stands in Redis", async () => {
    await using here = await leasesHere();
    const { leases, lease } = here;
    const taken = await Promise.all(["a", "b", "c"].map((one) => leases.take(lease, one, 60_000)));
    expect(taken.filter(Boolean)).toHaveLength(1);
    const holder = await here.redis.get(lease);
    expect(holder).toBe(["a", "b", "c"][taken.indexOf(true)]);
    expect(await leases.take(lease, holder ?? "", 60_000)).toBe(false);
  });

  it("goes to the next one when it has expired, and its former holder can neither extend nor free it", async () => {
    await using here = await leasesHere();
    const { leases, lease } = here;
    await leases.take(lease, "slow", 20);
    await vi.waitFor(async () => expect(await leases.take(lease, "next", 60_000)).toBe(true));
    expect(await leases.extend(lease, "slow", 60_000)).toBe(false);
    expect(await leases.release(lease, "slow")).toBe(false);
    expect(await here.redis.get(lease)).toBe("next");
  });

  it("lasts longer when its holder extends it, and is free at once when it gives it back", async () => {
    await using here = await leasesHere();
    const { leases, lease } = here;
    await leases.take(lease, "a", 1_000);
    expect(await leases.extend(lease, "a", 60_000)).toBe(true);
    expect(await here.redis.pttl(lease)).toBeGreaterThan(50_000);
    expect(await leases.release(lease, "a")).toBe(true);
    expect(await leases.release(lease, "a")).toBe(false);
    expect(await leases.take(lease, "b", 1_000)).toBe(true);
  });
});

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
