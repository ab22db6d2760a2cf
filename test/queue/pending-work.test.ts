import { expect, it } from "vitest";
import { createQueues } from "../../src/queue/queues.ts";
import { createPending } from "../../src/redis/pending.ts";
import { redisNow } from "../../src/redis/redis.ts";
import { startWork } from "../support/start-delivery.ts";
import { testRedis } from "../support/with-redis.ts";
import { until } from "../support/until.ts";

/** A pending list, and a process that works on it. */
async function working(
  handle: (id: string) => Promise<void>,
  relayEveryMs = 10_000,
  /** Once an ID was taken that isn't due yet, and before its job is put off. */
  beforePutOff: (id: string) => Promise<void> = async () => undefined,
) {
  const { redis, key, [Symbol.asyncDispose]: dispose } = await testRedis();
  const pending = createPending(redis, key, "notice");
  const place = { redis, key, relayEveryMs };
  const slow: typeof pending = {
    ...pending,
    async take(id) {
      const taken = await pending.take(id);
      if (taken && "waitMs" in taken) await beforePutOff(id);
      return taken;
    },
  };
  const ended = async (id: string) => {
    await handle(id);
    return undefined;
  };
  const work = startWork("messages", [{ pending: slow, handle: ended }], place);
  const queues = createQueues(redis, work.prefix);
  await work.started;
  return {
    redis,
    pending,
    queue: queues.messages,
    close: work.close,
    async [Symbol.asyncDispose]() {
      await work.close();
      await queues.close();
      await dispose();
    },
  };
}

it("a job is woken by Redis's clock, by a process whose own is three hours ahead", async () => {
  const { redis, key, [Symbol.asyncDispose]: dispose } = await testRedis();
  const hourMs = 3_600_000;
  const queues = createQueues(redis, key.prefix, () => Date.now() - 3 * hourMs);
  const { messages } = queues;
  queues.assign("notice", messages);
  await messages.add(
    "notice",
    { kind: "notice", id: "n" },
    { delay: hourMs, deduplication: { id: "notice n" } },
  );
  await queues.wake("notice", "n");
  const [, score] = await redis.zrange(messages.toKey("delayed"), 0, "0", "WITHSCORES");
  expect(Number(score) / 0x1000 - Date.now()).toBeLessThan(-2 * hourMs);
  await queues.close();
  await dispose();
});

it("a process does what is put on the list, none twice at the same time, and once more what was put there meanwhile", async () => {
  const hang = Promise.withResolvers<void>();
  const begun: string[] = [];
  await using here = await working(async (id) => {
    begun.push(id);
    const isFirst = begun.filter((one) => one === id).length === 1;
    await hang.promise;
    if (id !== "a" || !isFirst) await here.pending.remove(id);
    else await here.pending.later(id, 0);
  });
  for (const id of ["a", "b", "c"]) await here.pending.later(id, 0);
  await until(() => begun.toSorted()).toEqual(["a", "b", "c"]);
  await here.pending.later("a", 0);
  // What comes later begins, and not the one that is in hand
  await here.pending.later("d", 0);
  await until(() => begun).toHaveLength(4);
  expect(begun.toSorted()).toEqual(["a", "b", "c", "d"]);
  hang.resolve();
  await until(() => begun.toSorted()).toEqual(["a", "a", "b", "c", "d"]);
  await until(() => here.pending.depth()).toBe(0);
});

it("a process puts off what isn't due yet, and does at once what is brought forward or put there while it was being put off", async () => {
  const done: string[] = [];
  let [again, begunAt] = [0, 0];
  await using here = await working(async (id) => {
    done.push(id);
    if (id === "soon") begunAt = await redisNow(here.redis);
    if (id === "again" && ++again < 3) await here.pending.later(id, again === 1 ? 60_000 : 0);
    else await here.pending.remove(id);
  });
  await here.pending.later("soon", 300);
  const dueAt = (await here.pending.dueAt("soon")) ?? Infinity;
  await until(() => begunAt).toBeGreaterThanOrEqual(dueAt);
  expect(done).toEqual(["soon"]);
  await here.pending.later("again", 0);
  await until(() => done).toEqual(["soon", "again"]);
  await until(() => here.queue.getDelayedCount()).toBe(1);
  await here.pending.later("again", 0);
  await until(() => done).toEqual(["soon", "again", "again", "again"]);
});

it("a process does in time what becomes due sooner while it is being put off", async () => {
  const done: string[] = [];
  let isFirst = true;
  await using here = await working(
    async (id) => {
      done.push(id);
      await here.pending.remove(id);
    },
    10_000,
    async (id) => {
      if (isFirst) await here.pending.later(id, 300);
      isFirst = false;
    },
  );
  await here.pending.later("sooner", 600_000);
  await until(() => done).toEqual(["sooner"]);
});

it("a process comes back to what failed, to what nobody added a job for, and to a job that was removed by hand", async () => {
  const done: string[] = [];
  await using here = await working(async (id) => {
    done.push(id);
    if (id === "fails" && done.filter((one) => one === id).length === 1) throw new Error("broken");
    await here.pending.remove(id);
  }, 200);
  await here.pending.later("fails", 0);
  await until(() => done).toEqual(["fails", "fails"]);
  // As a process that died right after its script
  await here.redis.zadd(here.pending.list, Date.now() - 1_000, "notice nobody's");
  await until(() => done).toEqual(["fails", "fails", "nobody's"]);
  await here.pending.later("removed", 2_400);
  await until(() => here.queue.getDelayedCount()).toBe(1);
  for (const job of await here.queue.getDelayed()) await job.remove();
  await until(() => done).toContain("removed");
});

it("a process waits for what is in hand when it closes, and takes nothing more", async () => {
  const hang = Promise.withResolvers<void>();
  const [begun, ended]: [string[], string[]] = [[], []];
  await using here = await working(async (id) => {
    begun.push(id);
    await hang.promise;
    await here.pending.remove(id);
    ended.push(id);
  });
  await here.pending.later("a", 0);
  await until(() => begun).toEqual(["a"]);
  const closed = here.close();
  await here.pending.later("b", 0);
  hang.resolve();
  await closed;
  expect([begun, ended]).toEqual([["a"], ["a"]]);
});

it("a process handles what it noted itself and waits for what is due soon, without a job", async () => {
  const done: string[] = [];
  await using here = await working(async (id) => {
    done.push(id);
    await here.pending.remove(id);
  });
  await here.pending.later("now", 0);
  await here.pending.later("soon", 200);
  await until(() => done).toEqual(["now", "soon"]);
  // BullMQ counts the jobs that were ever added
  expect(await here.redis.get(here.queue.toKey("id"))).toBeNull();
});

it("a process that closes leaves to others what it waits for", async () => {
  const done: string[] = [];
  await using here = await working(async (id) => void done.push(id));
  await here.pending.later("soon", 1_900);
  await until(() => here.pending.dueAt("soon")).toBeDefined();
  await here.close();
  await until(() => here.redis.get(here.queue.toKey("id"))).toBe("1");
  expect(done).toEqual([]);
});
