import { expect, it } from "vitest";
import { createPending } from "../../src/redis/pending.ts";
import { testRedis } from "../support/with-redis.ts";

it("is taken when its time has come, under a mark that nobody else writes", async () => {
  await using here = await testRedis();
  const pending = createPending(here.redis, here.key("list"));
  const woken: string[] = [];
  pending.onWake((id) => woken.push(id));
  await pending.later("now", 0);
  await pending.later("soon", 60_000);
  await pending.expect("now");
  expect(woken).toEqual(["now", "soon", "now"]);
  const taken = await pending.take("now");
  if (!taken || !("mark" in taken)) throw new Error("it was due");
  expect(Number(taken.mark)).toBe(Number(await here.redis.zscore(pending.list, "now")));
  expect(Number(taken.mark) % 1).toBe(0.5);
  expect(await pending.take("soon")).toEqual({ waitMs: expect.any(Number) });
  expect(await pending.take("gone")).toBeUndefined();
  expect(await pending.dueInMs("gone")).toBeUndefined();
  expect(await pending.among(["now", "soon", "gone"])).toEqual(new Set(["now", "soon"]));
  await pending.remove("now");
  expect(await pending.depth()).toBe(1);
});

it("tells what is overdue once in that time", async () => {
  await using here = await testRedis();
  const pending = createPending(here.redis, here.key("list"));
  await pending.later("late", -1_000);
  await pending.later("due", 0);
  expect(await pending.overdue(10, 500)).toEqual(["late"]);
  expect(await pending.overdue(10, 500)).toEqual([]);
  await expect.poll(() => pending.overdue(1, 500), { timeout: 3_000 }).toEqual(["due"]);
});
