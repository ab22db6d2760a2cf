import { expect, it } from "vitest";
import { createDueList } from "../../src/redis/due-list.ts";
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

it("is done with what has not moved since; what has is due at once, and what is gone is done", async () => {
  await using here = await testRedis();
  const list = createDueList(here.redis, here.key("list"));
  const hash = here.key("thing");
  await list.later("a", 60_000);
  await here.redis.hset(hash, "revision", 3);
  expect(await list.doneIfUnchanged("a", hash, 2)).toBe(false);
  expect(await list.take(8, 60_000)).toEqual(["a"]);
  expect(await list.doneIfUnchanged("a", hash, 2, 60_000, { text: "short" })).toBe(false);
  expect(await list.take(8, 60_000)).toEqual([]);
  expect(await here.redis.hget(hash, "text")).toBeNull();
  expect(await list.doneIfUnchanged("a", hash, 3, 60_000, { text: "short" })).toBe(true);
  expect(await here.redis.hget(hash, "text")).toBe("short");
  expect(await list.depth()).toBe(0);
  await list.later("a", 60_000);
  await here.redis.del(hash);
  expect(await list.doneIfUnchanged("a", hash, -1, 0, { text: "short" })).toBe(true);
  expect(await here.redis.exists(hash)).toBe(0);
  expect(await list.depth()).toBe(0);
});
