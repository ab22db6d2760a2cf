import { expect, it } from "vitest";
import { createRateLimiter, type Turn } from "../../../src/core/deliver/rate-limiter.ts";
import { testRedis } from "../../support/with-redis.ts";

type Asked = [id: string, urgency?: Turn["urgency"], more?: Partial<Turn> & { to?: string }];

async function limiting() {
  const { redis, key, [Symbol.asyncDispose]: dispose } = await testRedis();
  const limiter = createRateLimiter(redis, key);
  const marks = key("marks");
  let turns = 0;
  /** Requests a turn to post. Resolves with the wait in whole seconds. */
  async function post(...[id, urgency, more = {}]: Asked) {
    const { to = "C01OPS", ...turn } = more;
    turns += 1;
    const mark = { hash: marks, field: `said:${turns}`, before: "", doing: "posting" };
    const answer = await limiter.post(to, { id, urgency, mark, ...turn });
    return answer.kind === "wait" ? Math.ceil(answer.waitMs / 1000) : 0;
  }
  // From now on Redis has the script, and answers in the order in which it is asked
  await post("first", "result", { to: "C00ELSEWHERE" });
  return {
    redis,
    key,
    marks,
    post,
    /** All sent together, so that Redis counts them within one moment. */
    posts: (...asked: Asked[]) => Promise.all(asked.map((one) => post(...one))),
    [Symbol.asyncDispose]: dispose,
  };
}

const four: Asked[] = ["a", "b", "c", "d"].map((id) => [id, "result"]);

it("two cards go at once, and leave room for two results or decisions", async () => {
  await using at = await limiting();
  const waits = await at.posts(
    ["a", "card"],
    ["b", "card"],
    ["c", "card", { isJoining: true }],
    ["d", "result"],
    ["e", "decision"],
    ["f", "result", { to: "C02OTHER" }],
  );
  expect(waits).toEqual([0, 0, 1, 0, 0, 0]);
});

it("a message that waits is told when its turn comes, decisions first, then results, then cards", async () => {
  await using at = await limiting();
  const waits = await at.posts(
    ...four,
    ["card", "card"],
    ["result 1", "result"],
    ["result 2", "result"],
    ["decision", "decision"],
    ["result 1", "result"],
    ["result 2", "result"],
    ["card", "card"],
    // A message that joins others takes no place in the line.
    ["joins", "card", { isJoining: true }],
    ["card", "card"],
  );
  expect(waits).toEqual([0, 0, 0, 0, 3, 1, 2, 1, 2, 3, 6, 7, 6]);
});

it("an alert waits behind cards that came later, and leaves as much room as they do", async () => {
  await using at = await limiting();
  const waits = await at.posts(
    ["a", "rest"],
    ["b", "rest"],
    ["rest", "rest"],
    ["card", "card"],
    ["rest", "rest"],
    ["c", "result"],
    ["d", "result"],
  );
  expect(waits).toEqual([0, 0, 1, 1, 2, 0, 0]);
});

it("a message that did not come for its turn holds up no one", async () => {
  await using at = await limiting();
  const turns = at.key("turns", "post", "C01OPS");
  const [before, , next] = await Promise.all([
    at.posts(...four, ["gone", "decision"], ["next", "result"]),
    at.redis.hset(turns, "decision gone", 1, "gone", 1),
    at.post("next", "result"),
  ]);
  expect([...before, next]).toEqual([0, 0, 0, 0, 1, 2, 1]);
});

it("300 who wait ask so often as one does, each for its own turn", async () => {
  await using at = await limiting();
  const waits = await at.posts(
    ...Array.from({ length: 300 }, (_, n): Asked => [`r-${n}`, "result"]),
  );
  expect(waits.slice(0, 7)).toEqual([0, 0, 0, 0, 1, 2, 3]);
  expect(Math.max(...waits)).toBe(10);
});

it("a turn is marked as it is taken, and neither while it waits nor where the mark is another's", async () => {
  await using at = await limiting();
  const requestTurn = (id: string, field: string, before: string) =>
    at.post(id, "result", { mark: { hash: at.marks, field, before, doing: "posting" } });
  const marked = (field: string) => at.redis.hget(at.marks, field);
  // Another process has changed a's mark, so the message takes no turn and no place in the line.
  const ids = ["a", "b", "c", "a", "d", "e"];
  const waits = await Promise.all(ids.map((id) => requestTurn(id, id, "")));
  expect(waits).toEqual([0, 0, 0, 0, 0, 1]);
  expect(await marked("a")).toMatch(/^posting \d{13}$/);
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
  // The bucket counts again from the new time on.
  expect(await at.posts(...four, ["e", "result"])).toEqual([0, 0, 0, 0, 1]);
});
