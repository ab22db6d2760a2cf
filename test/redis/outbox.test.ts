import { expect, it } from "vitest";
import { createOutbox } from "../../src/redis/outbox.ts";
import { dueInMs } from "../support/pending.ts";
import { testRedis } from "../support/with-redis.ts";

it("settles what has not moved since; what has is still owed, and what is gone is settled", async () => {
  const { redis, key, [Symbol.asyncDispose]: dispose } = await testRedis();
  const outbox = createOutbox(redis, key, "notice", (id) => key("thing", id));
  await redis.hset(key("thing", "a"), "revision", 3);
  await outbox.later("a", 0);
  const take = async () => {
    const taken = await outbox.take("a");
    if (!taken || !("mark" in taken)) throw new Error("it was due");
    return taken.mark;
  };
  for (const inMs of [0, 60_000]) {
    await outbox.settle("a", await take(), 2, inMs);
    expect(await dueInMs(redis, outbox, "a")).toBe(0);
  }
  await outbox.settle("a", await take(), 3, 0);
  expect(await outbox.depth()).toBe(0);
  await outbox.later("a", 0);
  await outbox.settle("a", await take(), 3, 60_000);
  expect(await dueInMs(redis, outbox, "a")).toBeGreaterThan(50_000);
  await redis.del(key("thing", "a"));
  await outbox.later("a", 0);
  await outbox.settle("a", await take(), 3, 0);
  expect(await outbox.depth()).toBe(0);
  await dispose();
});

it("leaves what was asked for since it was taken, though its hash is as it was read", async () => {
  const { redis, key, [Symbol.asyncDispose]: dispose } = await testRedis();
  const outbox = createOutbox(redis, key, "notice", (id) => key("thing", id));
  await redis.hset(key("thing", "a"), "revision", 3);
  for (const inMs of [0, 60_000]) {
    await outbox.later("a", 0);
    const taken = await outbox.take("a");
    if (!taken || !("mark" in taken)) throw new Error("it was due");
    await outbox.later("a", 0);
    await outbox.settle("a", taken.mark, 3, inMs);
    expect(await dueInMs(redis, outbox, "a")).toBe(0);
  }
  await dispose();
});

it("sets a mark only where it is as it was read", async () => {
  const { redis, key, [Symbol.asyncDispose]: dispose } = await testRedis();
  const outbox = createOutbox(redis, key, "notice", (id) => key("thing", id));
  const marked = await Promise.all([1, 2, 3].map((n) => outbox.mark("a", "said:card", "", `${n}`)));
  expect(marked.filter(Boolean)).toHaveLength(1);
  expect(await outbox.mark("a", "said:card", "7", "8")).toBe(false);
  await dispose();
});
