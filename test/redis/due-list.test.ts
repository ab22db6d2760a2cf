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
