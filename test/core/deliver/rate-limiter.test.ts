import { expect, it } from "vitest";
import { createRateLimiter, type Turn } from "../../../src/core/deliver/rate-limiter.ts";
import { testRedis } from "../../support/with-redis.ts";

async function limiting() {
  const { redis, key, [Symbol.asyncDispose]: dispose } = await testRedis();
  const limiter = createRateLimiter(redis, key);
  const marks = key("marks");
  let turns = 0;
  return {
    redis,
    key,
    marks,
    /** Requests a turn to post. Resolves with the wait in whole seconds. */
    async post(id: string, urgency?: Turn["urgency"], more: Partial<Turn> & { to?: string } = {}) {
      const { to = "C01OPS", ...turn } = more;
      turns += 1;
      const mark = { hash: marks, field: `said:${turns}`, before: "", doing: "posting" };
      return Math.ceil((await limiter.post(to, { id, urgency, mark, ...turn })).waitMs / 1000);
    },
    [Symbol.asyncDispose]: dispose,
  };
}

it("two cards go at once, and leave room for two results or decisions", async () => {
  await using at = await limiting();
  expect([await at.post("a", "card"), await at.post("b", "card")]).toEqual([0, 0]);
  expect(await at.post("c", "card", { isJoining: true })).toBe(1);
  expect([await at.post("d", "result"), await at.post("e", "decision")]).toEqual([0, 0]);
  expect(await at.post("f", "result", { to: "C02OTHER" })).toBe(0);
});

it("a message that waits is told when its turn comes, decisions first, then results, then cards", async () => {
  await using at = await limiting();
  for (const id of ["a", "b", "c", "d"]) await at.post(id, "result");
  expect(await at.post("card", "card")).toBe(3);
  expect(await at.post("result 1", "result")).toBe(1);
  expect(await at.post("result 2", "result")).toBe(2);
  expect(await at.post("decision", "decision")).toBe(1);
  expect(await at.post("result 1", "result")).toBe(2);
  expect(await at.post("result 2", "result")).toBe(3);
  expect(await at.post("card", "card")).toBe(6);
  // A message that joins others takes no place in the line.
  expect(await at.post("joins", "card", { isJoining: true })).toBe(7);
  expect(await at.post("card", "card")).toBe(6);
});

it("an alert waits behind cards that came later, and leaves as much room as they do", async () => {
  await using at = await limiting();
  expect([await at.post("a", "rest"), await at.post("b", "rest")]).toEqual([0, 0]);
  expect(await at.post("rest", "rest")).toBe(1);
  expect(await at.post("card", "card")).toBe(1);
  expect(await at.post("rest", "rest")).toBe(2);
  expect([await at.post("c", "result"), await at.post("d", "result")]).toEqual([0, 0]);
});

it("a message that did not come for its turn holds up no one", async () => {
  await using at = await limiting();
  for (const id of ["a", "b", "c", "d"]) await at.post(id, "result");
  expect(await at.post("gone", "decision")).toBe(1);
  expect(await at.post("next", "result")).toBe(2);
  await at.redis.hset(at.key("turns", "post", "C01OPS"), "decision gone", 1, "gone", 1);
  expect(await at.post("next", "result")).toBe(1);
});

it("300 who wait ask so often as one does, each for its own turn", async () => {
  await using at = await limiting();
  const waits: number[] = [];
  for (let n = 0; n < 300; n++) waits.push(await at.post(`r-${n}`, "result"));
  expect(waits.slice(0, 7)).toEqual([0, 0, 0, 0, 1, 2, 3]);
  expect(Math.max(...waits)).toBe(10);
});

it("a turn is marked as it is taken, and neither while it waits nor where the mark is another's", async () => {
  await using at = await limiting();
  const requestTurn = (id: string, field: string, before: string) =>
    at.post(id, "result", { mark: { hash: at.marks, field, before, doing: "posting" } });
  const marked = (field: string) => at.redis.hget(at.marks, field);
  for (const id of ["a", "b", "c"]) expect(await requestTurn(id, id, "")).toBe(0);
  expect(await marked("a")).toMatch(/^posting \d{13}$/);
  // Another process has changed the mark, so the message takes no turn and no place in the line.
  expect(await requestTurn("a", "a", "")).toBe(0);
  expect(await requestTurn("d", "d", "")).toBe(0);
  expect(await requestTurn("e", "e", "")).toBe(1);
  expect(await marked("e")).toBeNull();
  expect(await at.redis.zscore(at.key("line", "post", "C01OPS"), "e")).not.toBeNull();
  await at.redis.hset(at.marks, "e", "posting 1");
  await requestTurn("e", "e", "");
  expect(await marked("e")).toBe("posting 1");
  expect(await at.redis.zscore(at.key("line", "post", "C01OPS"), "e")).toBeNull();
});

it("nothing waits for turns and pauses from before Redis's clock was set back", async () => {
  await using at = await limiting();
  const hourMs = 3_600_000;
  const bucket = at.key("pace", "post", "C01OPS");
  const [seconds] = await at.redis.time();
  const ahead = Number(seconds) * 1000 + hourMs;
  await at.redis.set(bucket, `${ahead + 5_000} ${ahead}`);
  // Four messages that waited before the clock was set back wait no longer.
  for (const id of ["1", "2", "3", "4"]) {
    await at.redis.zadd(at.key("line", "post", "C01OPS"), ahead - hourMs - 60_000, id);
    await at.redis.hset(at.key("turns", "post", "C01OPS"), id, ahead + 2_000);
  }
  expect(await at.post("a", "result")).toBe(0);
  // The bucket counts again from the new time on.
  for (const id of ["b", "c", "d"]) expect(await at.post(id, "result")).toBe(0);
  expect(await at.post("e", "result")).toBe(1);
});
