import { expect, it } from "vitest";
import { createRateLimiter, type Turn } from "../../../src/slack/deliver/rate-limiter.ts";
import { testRedis } from "../../support/with-redis.ts";

async function limiting() {
  const { redis, key, [Symbol.asyncDispose]: dispose } = await testRedis();
  const limiter = createRateLimiter(redis, key);
  return {
    redis,
    key,
    limiter,
    /** In whole seconds. */
    async post(id: string, urgency: Turn["urgency"], more: Partial<Turn> = {}) {
      return Math.ceil((await limiter.post("C01OPS", { id, urgency, ...more })) / 1000);
    },
    [Symbol.asyncDispose]: dispose,
  };
}

it("two cards go at once, and leave room for two results or decisions", async () => {
  await using at = await limiting();
  expect([await at.post("a", "card"), await at.post("b", "card")]).toEqual([0, 0]);
  expect(await at.post("c", "card", { isJoining: true })).toBe(1);
  expect([await at.post("d", "result"), await at.post("e", "decision")]).toEqual([0, 0]);
  expect(Math.ceil((await at.limiter.post("C02OTHER", { id: "f" })) / 1000)).toBe(0);
});

it("who waits is told when its turn comes, decisions first, then results, then cards", async () => {
  await using at = await limiting();
  for (const id of ["a", "b", "c", "d"]) await at.post(id, "result");
  expect(await at.post("card", "card")).toBe(3);
  expect(await at.post("result 1", "result")).toBe(1);
  expect(await at.post("result 2", "result")).toBe(2);
  expect(await at.post("decision", "decision")).toBe(1);
  expect(await at.post("result 1", "result")).toBe(2);
  expect(await at.post("result 2", "result")).toBe(3);
  expect(await at.post("card", "card")).toBe(6);
  // What joins others does not stand in line
  expect(await at.post("joins", "card", { isJoining: true })).toBe(7);
  expect(await at.post("card", "card")).toBe(6);
});

it("who did not come for its turn holds up no one", async () => {
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
