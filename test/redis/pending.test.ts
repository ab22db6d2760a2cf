import { expect, it } from "vitest";
import {
  createDueAfterSetBack,
  createOverdue,
  createPending,
  readPending,
} from "../../src/redis/pending.ts";
import { startRelay } from "../../src/queue/relay.ts";
import { redisNow } from "../../src/redis/redis.ts";
import { silentLog } from "../../src/log/log.ts";
import { dueInMs } from "../support/pending.ts";
import { testRedis } from "../support/with-redis.ts";
import { until } from "../support/until.ts";

it("what is pending is taken when its time has come, under a mark that nobody else writes", async () => {
  await using here = await testRedis();
  const pending = createPending(here.redis, here.key, "notice");
  const woken: string[] = [];
  pending.onWake((id) => woken.push(id));
  await pending.later("now", 0);
  await pending.later("soon", 60_000);
  expect(woken).toEqual(["now", "soon"]);
  const taken = await pending.take("now");
  if (!taken || !("mark" in taken)) throw new Error("it was due");
  expect(Number(taken.mark)).toBe(Number(await here.redis.zscore(pending.list, "notice now")));
  expect(Number(taken.mark) % 1).toBe(0.5);
  expect(await pending.take("soon")).toEqual({
    dueAt: await pending.dueAt("soon"),
    waitMs: expect.any(Number),
  });
  expect(await pending.take("gone")).toBeUndefined();
  expect(await dueInMs(here.redis, pending, "gone")).toBeUndefined();
  expect(await pending.among(["now", "soon", "gone"])).toEqual(new Set(["now", "soon"]));
  await pending.remove("now");
  expect(await pending.depth()).toBe(1);
});

it("what is pending is released to a later time or off the list, but not where it was asked for since it was taken", async () => {
  await using here = await testRedis();
  const pending = createPending(here.redis, here.key, "notice");
  const take = async () => {
    await pending.later("a", 0);
    const taken = await pending.take("a");
    if (!taken || !("mark" in taken)) throw new Error("it was due");
    return taken.mark;
  };
  await pending.release("a", await take(), 60_000);
  expect(await dueInMs(here.redis, pending, "a")).toBeGreaterThan(50_000);
  const mark = await take();
  await pending.later("a", 0);
  await pending.release("a", mark);
  expect(await dueInMs(here.redis, pending, "a")).toBe(0);
  await pending.release("a", await take());
  expect(await dueInMs(here.redis, pending, "a")).toBeUndefined();
  await pending.release("a", mark, 1);
  expect(await dueInMs(here.redis, pending, "a")).toBeUndefined();
});

it("what one works on no other takes while it counts as alive, and it takes it again when it was woken", async () => {
  await using here = await testRedis();
  const pending = createPending(here.redis, here.key, "notice");
  await pending.later("a", 0);
  const taken = await pending.take("a");
  if (!taken || !("mark" in taken)) throw new Error("it was due");
  expect(await pending.take("a")).toEqual({ isBusy: true });
  await pending.later("a", 0);
  expect(await pending.take("a")).toEqual({ isBusy: true });
  await pending.release("a", taken.mark, 60_000);
  expect(await pending.take("a")).toHaveProperty("mark");
});

it("what one works on that counts as dead another takes, and the first no longer releases it", async () => {
  await using here = await testRedis();
  const pending = createPending(here.redis, here.key, "notice");
  const longAgo = (await redisNow(here.redis)) - 5_000.5;
  await here.redis.zadd(pending.list, longAgo, "notice a");
  const taken = await pending.take("a");
  if (!taken || !("mark" in taken)) throw new Error("it was due");
  await pending.release("a", `${longAgo}`);
  expect(await pending.take("a")).toEqual({ isBusy: true });
  await pending.release("a", taken.mark);
  expect(await pending.take("a")).toBeUndefined();
});

it("what is pending comes back where somebody took it off the list by hand, and is due when it was otherwise", async () => {
  await using here = await testRedis();
  const pending = createPending(here.redis, here.key, "notice");
  await pending.later("later", 60_000);
  await pending.restore([]);
  await pending.restore(["later", "lost"]);
  expect(await dueInMs(here.redis, pending, "lost")).toBe(0);
  expect(await dueInMs(here.redis, pending, "later")).toBeGreaterThan(50_000);
});

it("what is worked on for long gets another job, and isn't taken for asked for meanwhile", async () => {
  await using here = await testRedis();
  const pending = createPending(here.redis, here.key, "notice");
  await pending.later("a", 0);
  const taken = await pending.take("a");
  if (!taken || !("mark" in taken)) throw new Error("it was due");
  const overdue = createOverdue(here.redis, here.key);
  await until(() => overdue(10, 20)).toEqual([{ kind: "notice", id: "a" }]);
  await pending.release("a", taken.mark);
  expect(await pending.depth()).toBe(0);
});

it("what is pending of every kind is on one list, and what is overdue is told once in that time", async () => {
  await using here = await testRedis();
  const [things, others] = (["notice", "feed"] as const).map((kind) =>
    createPending(here.redis, here.key, kind),
  );
  await things?.later("late", -1_000);
  await others?.later("of two words", -2_000);
  await things?.later("due", 0);
  const late = [
    { kind: "feed", id: "of two words" },
    { kind: "notice", id: "late" },
  ];
  const overdue = createOverdue(here.redis, here.key);
  expect(await overdue(10, 500)).toEqual(late);
  expect(await overdue(10, 500)).toEqual([]);
  await until(() => overdue(1, 500)).toEqual([{ kind: "notice", id: "due" }]);
  expect([await things?.depth(), await others?.depth()]).toEqual([2, 1]);
  const all = await readPending(here.redis, here.key);
  expect([...all].map(([kind, ids]) => [kind, ids.length])).toEqual(
    expect.arrayContaining([
      ["notice", 2],
      ["feed", 1],
    ]),
  );
});

it("what is pending is due once Redis's time was set back, and told as overdue; a slow answer is no step", async () => {
  await using here = await testRedis();
  const { redis, key } = here;
  const pending = createPending(redis, key, "notice");
  const dueAfterSetBack = createDueAfterSetBack(redis, key);
  const latest = key("pending", "latest-time");
  expect(await dueAfterSetBack(500)).toBe(0);
  // Put on the list while Redis was an hour ahead; a worker that took another died
  await pending.later("ahead", 3_600_000);
  await redis.zadd(pending.list, (await redisNow(redis)) + 3_600_000.5, "notice taken");
  await redis.set(latest, (await redisNow(redis)) + 900);
  expect(await dueAfterSetBack(500)).toBe(0);
  expect(await pending.take("ahead")).toHaveProperty("waitMs");
  await redis.set(latest, (await redisNow(redis)) + 3_600_000);
  expect(await dueAfterSetBack(500)).toBeGreaterThan(3_590_000);
  const overdue = await createOverdue(redis, key)(10, 500);
  expect(overdue.map(({ id }) => id).toSorted()).toEqual(["ahead", "taken"]);
  expect(await pending.take("ahead")).toEqual({ mark: expect.any(String) });
  // Told once
  expect(await dueAfterSetBack(500)).toBe(0);
});

it("what is pending gets its job from the relay within one of its rounds after Redis's time was set back", async () => {
  await using here = await testRedis();
  const { redis, key } = here;
  const pending = createPending(redis, key, "notice");
  await pending.later("ahead", 3_600_000);
  await redis.set(key("pending", "latest-time"), (await redisNow(redis)) + 3_600_000);
  const woken: string[] = [];
  const wake = async (kind: string, id: string) => void woken.push(`${kind} ${id}`);
  const relay = startRelay({ redis, key, queues: { wake }, everyMs: 100, log: silentLog() });
  await until(() => woken).toContain("notice ahead");
  await relay.close();
});

it("keeps no lease of Redis's former clock, nor BullMQ's, once it was set back; others last as they did", async () => {
  await using here = await testRedis();
  const { redis, key } = here;
  const hourMs = 3_600_000;
  const lasts = { lease: 2_500 + hourMs, "messages:stalled-check": 5_000 + hourMs, fresh: 60_000 };
  for (const [name, forMs] of Object.entries(lasts)) await redis.set(key(name), "1", "PX", forMs);
  await redis.set(key("kept"), "1");
  await redis.set(key("pending", "latest-time"), (await redisNow(redis)) + hourMs);
  const relay = startRelay({
    redis,
    key,
    queues: { wake: async () => undefined },
    everyMs: 100,
    log: silentLog(),
  });
  await until(async () => (await redis.pttl(key("lease"))) < 60_000).toBe(true);
  await until(async () => (await redis.pttl(key("messages:stalled-check"))) < 60_000).toBe(true);
  await relay.close();
  expect(await redis.pttl(key("fresh"))).toBeGreaterThan(0);
  expect(await redis.pttl(key("kept"))).toBe(-1);
});
