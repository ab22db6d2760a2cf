import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createLog } from "../../src/log/log.ts";
import { withoutFloods } from "../../src/redis/redis.ts";

interface Line {
  level: string;
  event: string;
  why?: string;
  complaints?: number;
  seconds?: number;
  of?: Record<string, number>;
}

function listening() {
  const lines: Line[] = [];
  const write = (line: string) => void lines.push(JSON.parse(line) as Line);
  const redis = { answers: true };
  const log = withoutFloods(createLog({ level: "info", write }), async () => redis.answers);
  return { lines, log, redis };
}

const refused = () =>
  Object.assign(new Error("connect ECONNREFUSED 127.0.0.1:6379"), { code: "ECONNREFUSED" });

describe("eight seconds without Redis", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it("are one line at the start, and one at the end that counts", async () => {
    const { lines, log } = listening();
    for (let second = 0; second < 8; second += 1) {
      log.warn("redis.error", { purpose: "commands", error: refused() });
      log.warn("task.failed", { name: "sweep", why: "Stream isn't writeable and …" });
      log.warn("queue.error", { queue: "requests", error: refused() });
      log.error("delivery.failed", { error: new Error("Connection is closed.") });
      // oxlint-disable-next-line no-await-in-loop -- one second after the other
      await vi.advanceTimersByTimeAsync(1_000);
    }
    expect(lines).toMatchObject([
      { level: "warn", event: "redis.lost", why: "connect ECONNREFUSED 127.0.0.1:6379" },
    ]);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(lines.slice(1)).toMatchObject([
      {
        level: "warn",
        event: "redis.back",
        seconds: 7,
        complaints: 32,
        of: { "redis.error": 8, "task.failed": 8, "queue.error": 8, "delivery.failed": 8 },
      },
    ]);
    log.warn("task.failed", { name: "sweep", why: "Command timed out" });
    log.close();
    expect(lines.slice(2).map(({ event }) => event)).toEqual(["redis.lost", "redis.still-lost"]);
  });

  it("say anew that Redis lets nobody in, once, however often it is said", () => {
    const { lines, log } = listening();
    log.warn("redis.error", { purpose: "commands", error: refused() });
    const login = new Error("WRONGPASS invalid username-password pair or user is disabled.");
    const right = new Error("NOPERM this user has no permissions to run the 'evalsha' command");
    for (let times = 0; times < 166; times += 1) {
      log.warn("redis.error", { purpose: "worker", error: login });
      log.warn("queue.error", { queue: "requests", error: times % 2 ? login : right });
      log.warn("task.failed", { name: "sweep", why: "Stream isn't writeable and …" });
    }
    log.close();
    expect(lines).toMatchObject([
      { event: "redis.lost", why: "connect ECONNREFUSED 127.0.0.1:6379" },
      {
        event: "redis.lost",
        why: login.message,
        hint: expect.stringMatching(/^Redis answers and/),
      },
      { event: "redis.still-lost", complaints: 499 },
    ]);
  });

  it("are over when Redis answers, not when nobody complains any more", async () => {
    const { lines, log, redis } = listening();
    redis.answers = false;
    log.warn("redis.error", { purpose: "commands", error: refused() });
    await vi.advanceTimersByTimeAsync(60_000);
    expect(lines.map(({ event }) => event)).toEqual(["redis.lost"]);
    redis.answers = true;
    await vi.advanceTimersByTimeAsync(10_000);
    expect(lines.slice(1)).toMatchObject([{ event: "redis.back", complaints: 1 }]);
    expect(lines[1]?.seconds).toBeGreaterThan(50);
  });

  it("hide nothing that has another reason", () => {
    const { lines, log } = listening();
    log.warn("redis.error", { error: refused() });
    log.error("queue.error", { error: new Error("Missing key for job 7") });
    log.warn("task.failed", { name: "digests", why: "boom" });
    log.warn("changes.frozen", { by: "Gatehouse", reason: "Redis lost requests" });
    log.info("request.moved", { why: "Connection is closed." });
    expect(lines.map(({ event }) => event)).toEqual([
      "redis.lost",
      "queue.error",
      "task.failed",
      "changes.frozen",
      "request.moved",
    ]);
  });
});
