import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { readPending } from "../../../src/redis/pending.ts";
import { createDependencyProbe, type Part, parts } from "../../../src/monitor/dependency-probe.ts";
import { createOutageStore, type Past } from "../../../src/features/outages/outages.ts";
import { testRedis } from "../../support/with-redis.ts";
import { until } from "../../support/until.ts";

const minute = 60_000;
/** An outage lasts at least half a minute and ends after ten seconds without a failure (ms). */
const patience = 30_000;

async function keeping() {
  const { redis, key, [Symbol.asyncDispose]: close } = await testRedis();
  const store = createOutageStore(redis, key);
  const seen = (part: Part) => key("outages", "seen", part);
  /** Whether recaps are pending, due or not. */
  const isPending = async () => (await store.pending.depth()) > 0;
  return {
    redis,
    store,
    seen,
    isPending,
    async saw(ago: number | undefined, answeredAgo?: number, part: Part = "slack") {
      const failedAgo = ago === undefined ? undefined : { first: ago, last: ago };
      await store.addSighting({ part, failedAgo, answeredAgo }, patience);
      return isPending();
    },
    /** Pretends that this much time has passed since everything that was seen. */
    async pass(ms: number): Promise<void> {
      for (const part of parts)
        for (const [field, value] of Object.entries(await redis.hgetall(seen(part))))
          if (field !== "id" && value !== "")
            await redis.hset(seen(part), field, String(Number(value) - ms));
    },
    open: async () => (await store.state()).open.map(({ part }) => part),
    /** Outages that need their recap, due or not. */
    async past(): Promise<Past[]> {
      return ((await readPending(redis, key)).get("recap") ?? []).map(store.parseOutage);
    },
    [Symbol.asyncDispose]: close,
  };
}

describe("an outage", () => {
  it("doesn't come from one failure after Redis's clock was set back", async () => {
    await using here = await keeping();
    await here.saw(0);
    await here.pass(-60 * minute);
    await here.saw(undefined, 0);
    await here.saw(0);
    expect(await here.open()).toEqual([]);
    await here.pass(20_000);
    await here.saw(0);
    expect(await here.open()).toEqual([]);
    expect(await here.isPending()).toBe(false);
  });

  it("goes on where Redis's clock is set back, and ends with an answer", async () => {
    await using here = await keeping();
    await here.saw(0);
    await here.pass(31_000);
    await here.saw(0);
    await here.pass(-60 * minute);
    await here.saw(undefined, 0);
    expect(await here.open()).toEqual(["slack"]);
    await here.pass(11_000);
    await here.saw(undefined, 0);
    expect(await here.open()).toEqual([]);
    const [{ since, until: endedAt } = { since: 0, until: 0 }] = await here.past();
    expect(endedAt - since).toBeGreaterThanOrEqual(31_000);
    expect(endedAt - since).toBeLessThan(60_000);
  });

  it("exists after failures for half a minute with no answer in between, seen by any process", async () => {
    await using here = await keeping();
    await here.saw(0);
    await here.pass(20_000);
    await here.saw(0);
    expect(await here.open()).toEqual([]);
    await here.pass(11_000);
    await here.saw(0);
    expect(await here.open()).toEqual(["slack"]);
  });

  it("is visible to processes that saw nothing: pending once it is over, until it is told", async () => {
    await using here = await keeping();
    await here.saw(0);
    await here.pass(31_000);
    expect(await here.saw(0)).toBe(false);
    await here.pass(20_000);
    expect(await here.saw(undefined, 0)).toBe(true);
    expect(await here.isPending()).toBe(true);
    for (const one of await here.past()) await here.store.forget(one);
    expect(await here.isPending()).toBe(false);
  });

  it("doesn't exist when any process was answered in between, nor when two failures lie far apart", async () => {
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

  it("doesn't exist when an answer came between a short failure and the failures of one report", async () => {
    await using here = await keeping();
    await here.saw(0);
    await here.pass(40_000);
    const watch = createDependencyProbe(patience, async () => undefined);
    watch.countCall("slack", "answer");
    await sleep(5);
    watch.countCall("slack", "silence");
    await sleep(5);
    watch.countCall("slack", "silence");
    await watch.report(here.store);
    expect(await here.open()).toEqual([]);
    await here.pass(31_000);
    await here.saw(0);
    expect(await here.open()).toEqual(["slack"]);
  });

  it("ends when it has been quiet for a while after an answer, though nothing is called any more", async () => {
    await using here = await keeping();
    const watch = createDependencyProbe(patience, async () => undefined);
    await here.saw(0);
    await here.pass(40_000);
    watch.countCall("slack", "silence");
    await watch.report(here.store);
    watch.countCall("slack", "answer");
    await watch.report(here.store);
    expect(await here.open()).toEqual(["slack"]);
    await here.pass(15_000);
    await watch.report(here.store);
    expect(await here.open()).toEqual([]);
    expect((await here.past()).map(({ part }) => part)).toEqual(["slack"]);
  });

  it("ends with the first answer, once nobody has failed for a while; it is put on the list once", async () => {
    await using here = await keeping();
    await here.saw(0);
    await here.pass(40_000);
    await here.saw(0);
    await here.pass(5000);
    await here.saw(undefined, 0);
    expect(await here.open()).toEqual(["slack"]);
    await here.pass(10 * minute);
    await Promise.all(Array.from({ length: 20 }, () => here.saw(undefined, 0)));
    expect(await here.open()).toEqual([]);
    const [past, ...more] = await here.past();
    expect(more).toEqual([]);
    expect((await here.store.state()).last).toEqual(past);
    // An outage lasts from the first failure to the first answer, not to the time when it was
    // closed.
    const lastedMs = (past?.until ?? 0) - (past?.since ?? 0);
    expect(lastedMs).toBeGreaterThanOrEqual(45_000);
    expect(lastedMs).toBeLessThan(10 * minute);
  });

  it("continues while one process still fails, though others are answered", async () => {
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
  it("leave nothing behind while no process fails, and end an outage that others saw begin", async () => {
    await using here = await keeping();
    await here.saw(undefined, 0);
    expect(await here.redis.exists(here.seen("slack"))).toBe(0);
    await here.saw(5);
    await here.saw(0, undefined, "service");
    await here.saw(undefined, 0);
    expect(await here.redis.exists(here.seen("slack"))).toBe(0);
    expect(await here.redis.exists(here.seen("service"))).toBe(1);
  });
});

describe("an outage of Redis", () => {
  /** Reports for a process that reaches Redis again; reaching it is the answer. */
  const back = (
    here: Awaited<ReturnType<typeof keeping>>,
    awayMs: number,
    refused: string[] = [],
  ) =>
    here.store
      .addSighting(
        { part: "redis", failedAgo: { first: awayMs, last: 1000 }, answeredAgo: 0 },
        patience,
      )
      .then(async (id) => {
        const all = refused.map((one) => ({
          id: one,
          channelId: "C01OPS",
          userId: "U0A",
          teamId: "T0",
        }));
        if (id !== undefined && all.length > 0) await here.store.keepRefused(id, all);
        return id;
      });

  it("is one for all processes that were cut off, and holds what each had to refuse, once each", async () => {
    await using here = await keeping();
    const first = await back(here, minute, ["a", "b"]);
    const second = await back(here, 50_000, ["c"]);
    const longest = await back(here, 20 * minute);
    // The answer to its report was lost, so the process reports again.
    const again = await back(here, 50_000, ["c"]);
    expect([second, longest, again]).toEqual([first, first, first]);
    expect(await here.past()).toEqual([]);
    await here.pass(60 * minute);
    await here.saw(undefined, 0, "redis");
    const [past, ...more] = await here.past();
    expect([past?.id, more]).toEqual([first, []]);
    const lastedMs = (past?.until ?? 0) - (past?.since ?? 0);
    expect(lastedMs).toBeGreaterThan(10 * minute);
    expect(lastedMs).toBeLessThan(60 * minute);
    const refused = await here.store.refused(first ?? "");
    expect(refused.map(({ id }) => id).toSorted()).toEqual(["a", "b", "c"]);
  });

  it("doesn't exist when it was short, and is another one once the last is over", async () => {
    await using here = await keeping();
    expect(await back(here, 20_000, ["a"])).toBeUndefined();
    const first = await back(here, minute);
    await here.pass(11_000);
    await here.saw(undefined, 0, "redis");
    const late = await back(here, 2 * minute);
    expect(late).not.toBe(first);
  });
});

describe("the observation of a process", () => {
  it("is not lost while Redis is away, and what it refused goes to Redis with names", async () => {
    await using here = await keeping();
    const failing = {
      ...here.store,
      addSighting: async () => Promise.reject(new Error("Redis is away")),
    };
    const watch = createDependencyProbe(50, async () => "Olivia");
    watch.countCall("slack", "silence");
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
    await until(async () => {
      await watch.report(failing).catch(() => undefined);
      return watch.redisAwayMs();
    }).toBeGreaterThan(60);
    await watch.report(here.store);
    expect(watch.redisAwayMs()).toBeUndefined();
    const [open] = (await here.store.state()).open;
    expect(open?.part).toBe("redis");
    expect(await here.store.refused(open?.id ?? "")).toMatchObject([
      { words: "/vm stop a", name: "Olivia" },
    ]);
    expect(await here.redis.hexists(here.seen("slack"), "since")).toBe(1);
  });

  it("remembers at most a hundred refusals", async () => {
    await using here = await keeping();
    const watch = createDependencyProbe(1, async () => undefined);
    const failing = { ...here.store, addSighting: async () => Promise.reject(new Error("away")) };
    await watch.report(failing).catch(() => undefined);
    for (let n = 0; n < 300; n++)
      watch.refused({ id: `${n}`, channelId: "C", userId: "U", teamId: "T" });
    await until(async () => {
      await watch.report(failing).catch(() => undefined);
      return watch.redisAwayMs();
    }).toBeGreaterThan(5);
    await watch.report(here.store);
    const { open, last } = await here.store.state();
    expect(await here.store.refused(open[0]?.id ?? last?.id ?? "")).toHaveLength(100);
  });
});
