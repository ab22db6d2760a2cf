import { expect, it } from "vitest";
import {
  createDueList,
  createOutbox,
  createTakeDue,
  type Ending,
} from "../../src/redis/due-list.ts";
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

/** Of things that are hashes. */
async function owing() {
  const { redis, key, [Symbol.asyncDispose]: dispose } = await testRedis();
  const outbox = createOutbox(redis, key("list"), (id) => key("thing", id));
  const hash = key("thing", "a");
  await redis.hset(hash, "revision", 3);
  await outbox.later("a", 0);
  return {
    redis,
    key,
    hash,
    outbox,
    end: (revision: number | undefined, more: Partial<Ending> = {}) =>
      outbox.done("a", { revision, elseInMs: 60_000, kept: { text: "short" }, ...more }),
    text: () => redis.hget(hash, "text"),
    [Symbol.asyncDispose]: dispose,
  };
}

it("is done with what has not moved since; what has comes along as it is, and what is gone is done", async () => {
  await using here = await owing();
  const { redis, hash, outbox, end, text } = here;
  expect(await end(2, { elseInMs: 0 })).toEqual({ is: "changed", fields: { revision: "3" } });
  expect(await outbox.take(8, 60_000)).toEqual(["a"]);
  const said = { "said:card": "1.1" };
  const fields = { revision: "3", ...said };
  for (const revision of [2, undefined])
    expect(await end(revision, { said })).toEqual({ is: "changed", fields });
  expect(await outbox.take(8, 60_000)).toEqual([]);
  expect(await text()).toBeNull();
  expect(await end(3)).toEqual({ is: "done" });
  expect(await text()).toBe("short");
  expect(await outbox.depth()).toBe(0);
  await outbox.later("a", 60_000);
  await redis.del(hash);
  expect(await end(-1)).toEqual({ is: "done" });
  expect(await redis.exists(hash)).toBe(0);
  expect(await outbox.depth()).toBe(0);
});

it("is not done while there is something to do it for first, and keeps what is said all the same", async () => {
  await using here = await owing();
  const { redis, key, hash, outbox, end, text } = here;
  const unless = key("subscriptions");
  await redis.hset(unless, "C01OPS *", "{}");
  expect(await end(3, { unless, said: { face: "ended" } })).toEqual({ is: "owed" });
  expect([await outbox.depth(), await text(), await redis.hget(hash, "face")]).toEqual([
    1,
    null,
    "ended",
  ]);
  await redis.hdel(unless, "C01OPS *");
  expect(await end(3, { unless })).toEqual({ is: "done" });
});

it("hashes come along with what is taken, but for those that may be long", async () => {
  await using here = await owing();
  const { redis, key, outbox } = here;
  const take = createTakeDue(redis);
  const other = createDueList(redis, key("others"));
  await other.later("b", 0);
  await outbox.later("gone", -1000);
  const wanted = { most: 8, visibilityTimeoutMs: 60_000 };
  const both = [
    { ...wanted, list: outbox.list, hashes: outbox.hashes },
    { ...wanted, list: other.list },
  ];
  const { taken } = await take(both);
  expect(taken).toEqual([
    [
      { id: "gone", fields: {} },
      { id: "a", fields: { revision: "3" } },
    ],
    [{ id: "b", fields: undefined }],
  ]);
});
