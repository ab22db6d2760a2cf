import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { createKeys } from "../../src/redis/redis.ts";
import { outageTimingFor, createOutageStore, type Sighting } from "../../src/outages/outages.ts";
import { createDependencyMonitor } from "../../src/outages/dependency-monitor.ts";
import { testRedis } from "../support/with-redis.ts";

const minute = 60_000;
/** Half a minute and up is an outage; ten seconds without a failure end it. */
const patience = outageTimingFor(30_000);

async function keeping() {
  const { redis, key, [Symbol.asyncDispose]: close } = await testRedis();
  const store = createOutageStore(redis, key);
  const watch = key("outages", "watch");
  return {
    redis,
    key,
    store,
    watch,
    saw: (failedAgo: number | undefined, answeredAgo?: number, part: Sighting["part"] = "slack") =>
      store.report([{ part, failedAgo, answeredAgo }], patience),
    /** As if so much time had passed since everything that was seen. */
    async pass(ms: number): Promise<void> {
      const fields = await redis.hgetall(watch);
      for (const [field, value] of Object.entries(fields))
        if (/:(since|last|answered|until)$/.test(field))
          await redis.hset(watch, field, String(Number(value) - ms));
    },
    silent: () => store.report([], patience),
    open: async () => (await store.state()).open.map(({ part }) => part),
    ids: () => redis.zrange(key("outages", "due"), 0, "-1"),
    [Symbol.asyncDispose]: close,
  };
}

describe("an outage", () => {
  it("is one after failures for half a minute with no answer in between, seen by whomever", async () => {
    await using here = await keeping();
    await here.saw(0);
    await here.pass(20_000);
    await here.saw(0);
    expect(await here.open()).toEqual([]);
    await here.pass(11_000);
    await here.saw(0);
    expect(await here.open()).toEqual(["slack"]);
  });

  it("is asked for by whoever saw nothing: pending once it is over, until it is told", async () => {
    await using here = await keeping();
    await here.saw(0);
    await here.pass(31_000);
    expect(await here.saw(0)).toBe(false);
    expect(await here.silent()).toBe(false);
    await here.pass(20_000);
    expect(await here.saw(undefined, 0)).toBe(true);
    expect(await here.silent()).toBe(true);
    for (const id of await here.ids()) await here.store.forget(id);
    expect(await here.silent()).toBe(false);
  });

  it("is none when anybody was answered in between, nor when two failures lie far apart", async () => {
    await using here = await keeping();
    await here.saw(0);
    await here.pass(20_000);
    await here.saw(undefined, 0);
    await here.pass(20_000);
    await here.saw(0);
    expect(await here.open()).toEqual([]);
    await here.pass(10 * minute);
    await here.saw(0);
    expect(await here.open()).toEqual([]);
  });

  it("is none when an answer came between a hiccup and the failures of one report", async () => {
    await using here = await keeping();
    await here.saw(0);
    await here.pass(40_000);
    const watch = createDependencyMonitor(patience, async () => undefined);
    watch.saw("slack", "answer");
    await sleep(5);
    watch.saw("slack", "silence");
    await sleep(5);
    watch.saw("slack", "silence");
    await watch.report(here.store);
    expect(await here.open()).toEqual([]);
    await here.pass(31_000);
    await here.saw(0);
    expect(await here.open()).toEqual(["slack"]);
  });

  it("ends with the first answer, once nobody has failed for a while; it is put on the list once", async () => {
    await using here = await keeping();
    await here.saw(0);
    await here.pass(40_000);
    await here.saw(0);
    await here.pass(5000);
    await here.saw(undefined, 0);
    expect(await here.open()).toEqual(["slack"]);
    await here.pass(7000);
    await Promise.all(Array.from({ length: 20 }, () => here.saw(undefined, 0)));
    expect(await here.open()).toEqual([]);
    const ids = await here.ids();
    expect(ids).toHaveLength(1);
    const [id = ""] = ids;
    const past = await here.store.get(id);
    expect((await here.store.state()).last).toEqual(past);
    // From the first failure to the first answer: not to when it was closed
    expect(((past?.until ?? 0) - (past?.since ?? 0)) / 1000).toBeCloseTo(45, 0);
  });

  it("goes on while somebody else still fails, though others are answered", async () => {
    await using here = await keeping();
    await here.saw(0);
    await here.pass(40_000);
    await here.saw(0);
    for (let n = 0; n < 5; n++) {
      await here.pass(5000);
      await here.saw(undefined, 0);
      await here.pass(5000);
      await here.saw(0);
    }
    expect(await here.open()).toEqual(["slack"]);
  });

  it("keeps parts apart", async () => {
    await using here = await keeping();
    await here.saw(0, undefined, "service");
    await here.pass(40_000);
    await here.saw(undefined, 0);
    await here.saw(0, undefined, "service");
    expect(await here.open()).toEqual(["service"]);
  });
});

describe("answers", () => {
  it("cost one command while nobody fails, are heard once anybody does, and mean nothing again after them", async () => {
    await using here = await keeping();
    const ran: string[] = [];
    const client = new Proxy(here.redis, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name);
        if (typeof value !== "function") return value;
        return (...words: unknown[]): unknown => {
          if (name === "exists" || name === "gatehouseOutageReport") ran.push(name);
          return Reflect.apply(value, target, words);
        };
      },
    });
    const mine = createOutageStore(client, here.key);
    const answered = () =>
      mine.report([{ part: "slack", failedAgo: undefined, answeredAgo: 0 }], patience);
    await answered(); // the first, and one a minute, in any case
    ran.length = 0;
    expect(await answered()).toBe(false);
    expect(ran).toEqual(["exists"]);
    await here.saw(5);
    await here.saw(0, undefined, "service");
    await answered();
    expect(await here.redis.hget(here.watch, "slack:since")).toBeNull();
    expect(await here.redis.hget(here.watch, "service:since")).not.toBeNull();
    await here.saw(undefined, 0, "service");
    ran.length = 0;
    await answered();
    expect(ran).toEqual(["exists"]);
  });

  it("end an outage that others saw begin", async () => {
    await using here = await keeping();
    const mine = createOutageStore(here.redis, here.key);
    const answered = () =>
      mine.report([{ part: "slack", failedAgo: undefined, answeredAgo: 0 }], patience);
    await answered();
    await here.saw(0);
    await here.pass(31_000);
    await here.saw(0);
    await here.pass(11_000);
    expect(await answered()).toBe(true);
    expect(await answered()).toBe(true);
    expect(await here.open()).toEqual([]);
  });
});

describe("an outage of Redis", () => {
  const away = (sinceAgo: number, refused: string[] = []) => ({
    sinceAgo,
    lastAgo: 1000,
    refused: refused.map((id) => ({ id, channelId: "C01OPS", userId: "U0A", teamId: "T0" })),
  });

  it("is one for all processes that were cut off, and holds what each had to refuse, once", async () => {
    await using here = await keeping();
    const first = await here.store.cameBack(away(minute, ["a", "b"]), patience);
    const second = await here.store.cameBack(away(50_000, ["c"]), patience);
    // Its answer was lost, so it says so again
    const again = await here.store.cameBack(away(50_000, ["c"]), patience);
    expect([second, again]).toEqual([first, first]);
    expect(await here.ids()).toEqual([first]);
    const refused = await here.store.refused(first ?? "");
    expect(refused.map(({ id }) => id).toSorted()).toEqual(["a", "b", "c"]);
  });

  it("is none when it was short, and another one when the last has been told of", async () => {
    await using here = await keeping();
    expect(await here.store.cameBack(away(20_000, ["a"]), patience)).toBeUndefined();
    const first = await here.store.cameBack(away(minute), patience);
    await here.store.forget(first ?? "");
    expect(await here.ids()).toEqual([]);
    const late = await here.store.cameBack(away(2 * minute), patience);
    expect(late).not.toBe(first);
  });
});

describe("what a process sees", () => {
  it("is not lost while Redis is away, and what it refused goes to Redis with names", async () => {
    await using here = await keeping();
    const dead = createOutageStore(here.redis, createKeys("nowhere"));
    const failing = { ...dead, report: async () => Promise.reject(new Error("Redis is away")) };
    const watch = createDependencyMonitor(outageTimingFor(50), async () => "Olivia");
    watch.saw("slack", "silence");
    await expect(watch.report(failing)).rejects.toThrow("Redis is away");
    watch.refused({
      id: "x",
      channelId: "C01OPS",
      userId: "U0O",
      teamId: "T0",
      words: "/vm stop a",
    });
    watch.refused({
      id: "y",
      channelId: "C01OPS",
      userId: "U0O",
      teamId: "T0",
      words: "/vm stop b",
    });
    watch.taken("y");
    await expect
      .poll(async () => {
        await watch.report(failing).catch(() => undefined);
        return watch.redisAwayMs();
      })
      .toBeGreaterThan(60);
    await watch.report(here.store);
    expect(watch.redisAwayMs()).toBeUndefined();
    const [id = ""] = await here.ids();
    expect(await here.store.refused(id)).toMatchObject([{ words: "/vm stop a", name: "Olivia" }]);
    expect(await here.redis.hexists(here.watch, "slack:since")).toBe(1);
  });

  it("remembers at most a hundred refusals", async () => {
    await using here = await keeping();
    const watch = createDependencyMonitor(outageTimingFor(1), async () => undefined);
    const failing = { ...here.store, report: async () => Promise.reject(new Error("away")) };
    await watch.report(failing).catch(() => undefined);
    for (let n = 0; n < 300; n++)
      watch.refused({ id: `${n}`, channelId: "C", userId: "U", teamId: "T" });
    await expect
      .poll(async () => {
        await watch.report(failing).catch(() => undefined);
        return watch.redisAwayMs();
      })
      .toBeGreaterThan(5);
    await watch.report(here.store);
    const [id = ""] = await here.ids();
    expect(await here.store.refused(id)).toHaveLength(100);
  });
});
