import { expect, it } from "vitest";
import { createDueList } from "../../src/redis/due-list.ts";
import { createOutbox } from "../../src/redis/outbox.ts";
import { testRedis } from "../support/with-redis.ts";

it("gives what is due, the longest due first, and to nobody else until the visibility timeout is over", async () => {
  await using here = await testRedis();
  const list = createDueList(here.redis, here.key("list"));
  await list.later("a", 0);
  await list.later("b", -1000);
  await list.later("soon", 60_000);
  expect(await list.take(1, 50)).toEqual(["b"]);
  expect(await list.take(8, 60_000)).toEqual(["a"]);
  expect(await list.take(8, 60_000)).toEqual([]);
  await expect.poll(() => list.take(8, 60_000)).toEqual(["b"]);
  expect(await list.depth()).toBe(3);
  expect(await list.among(["a", "soon", "gone"])).toEqual(new Set(["a", "soon"]));
  await list.remove("a");
  expect(await list.depth()).toBe(2);
});

it("settles what has not moved since; what has is still owed, and what is gone is settled", async () => {
  const { redis, key, [Symbol.asyncDispose]: dispose } = await testRedis();
  const outbox = createOutbox(redis, key("list"), (id) => key("thing", id));
  await redis.hset(key("thing", "a"), "revision", 3);
  await outbox.later("a", 0);
  for (const inMs of [0, 60_000]) {
    expect(await outbox.settle("a", 2, inMs, 0)).toBe(false);
    expect(await outbox.take(8, 60_000)).toEqual(["a"]);
  }
  expect(await outbox.settle("a", 3, 0, 0)).toBe(true);
  expect(await outbox.depth()).toBe(0);
  expect(await outbox.settle("a", 3, 60_000, 0)).toBe(true);
  expect([await outbox.take(8, 60_000), await outbox.depth()]).toEqual([[], 1]);
  await redis.del(key("thing", "a"));
  expect(await outbox.settle("a", 3, 0, 0)).toBe(true);
  expect(await outbox.depth()).toBe(0);
  await dispose();
});

it("sets a mark only where it is as it was read", async () => {
  const { redis, key, [Symbol.asyncDispose]: dispose } = await testRedis();
  const outbox = createOutbox(redis, key("list"), (id) => key("thing", id));
  const marked = await Promise.all([1, 2, 3].map((n) => outbox.mark("a", "said:card", "", `${n}`)));
  expect(marked.filter(Boolean)).toHaveLength(1);
  expect(await outbox.mark("a", "said:card", "7", "8")).toBe(false);
  await dispose();
});
