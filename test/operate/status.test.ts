import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { version } from "../../src/config/version.ts";
import { checks, shared, unreadyBy } from "../../src/operate/checks/checks.ts";
import { whyOf } from "../../src/core/request/stage.ts";
import { hears, wordsOf } from "../stories/words.ts";
import { startWorld, type TestWorld } from "../support/start-world.ts";
import { type PrivateRedis, privateRedis } from "../support/with-redis.ts";
import { until } from "../support/until.ts";
import { isOffered } from "../support/is-offered.ts";

/** What `/gatehouse status` answers Ada now, line by line. */
async function statusLines(world: TestWorld): Promise<readonly string[]> {
  const seen = () => world.ada.seesChannel("ops").messages;
  const before = seen().map(({ ts }) => ts);
  await world.ada.types("ops", "/gatehouse status");
  const isAnswer = /needs? attention|Everything works/;
  const answer = await until(() =>
    seen().find((message) => !before.includes(message.ts) && isAnswer.test(wordsOf(message))),
  );
  return wordsOf(answer).split("\n");
}

const metricsOf = async (world: TestWorld) =>
  (await fetch(`http://127.0.0.1:${world.processes[0]?.opsPort}/metrics`)).text();
const readyzOf = async (world: TestWorld) => {
  const answer = await fetch(`http://127.0.0.1:${world.processes[0]?.opsPort}/readyz`);
  return [answer.status, await answer.text()];
};

it("an answer is shared by all who ask until it comes, and for a while after", async () => {
  vi.useFakeTimers();
  const answers = [Promise.withResolvers<string>(), Promise.withResolvers<string>()];
  let asked = 0;
  const ask = shared(() => answers[asked++]!.promise, 15_000);
  const all = [ask(), ask()];
  answers[0]?.resolve("first");
  expect(await Promise.all(all)).toEqual(["first", "first"]);
  await vi.advanceTimersByTimeAsync(14_999);
  expect([await ask(), asked]).toEqual(["first", 1]);
  await vi.advanceTimersByTimeAsync(1);
  answers[1]?.resolve("second");
  expect([await ask(), asked]).toEqual(["second", 2]);
  vi.useRealTimers();
});

it("whatever makes a process unready is also shown to people and checked by the doctor", () => {
  const needed = checks.filter(({ forReadiness }) => forReadiness);
  expect(needed.map(({ name }) => name)).toEqual(["Slack", "Redis", "Policy", "Clocks"]);
  expect(Object.keys(unreadyBy)).toEqual(needed.map(({ name }) => name));
  expect(needed.filter(({ forPeople, fromOutside }) => !forPeople || !fromOutside)).toEqual([]);
});

describe("two gateways and a worker", () => {
  let world: TestWorld;
  beforeAll(async () => {
    world = await startWorld({
      roles: ["gateway", "gateway", "worker"],
      // The service is called by itself, and a beat later all know how those calls ended
      pace: { heartbeatMs: 1_000, inventoryRefreshMs: 500 },
    });
  });
  afterAll(() => world.close());

  /** What another process, which isn't there, has reported of itself. */
  const report = async (presence: object, at: number) =>
    world.client.hset(
      world.key("processes"),
      "gw-2 /data",
      `${at} ${JSON.stringify({ role: "gateway", host: "gw-2", tallies: {}, ...presence })}`,
    );

  it("are ready though Slack limits calls; many probes cost at most one call of Slack in 15 s", async () => {
    world.slack.forgetCalls();
    world.slack.weather.add({
      method: "auth.test",
      kind: "rate-limited",
      retryAfter: 30,
    });
    const began = performance.now();
    const answers = await Promise.all(Array.from({ length: 20 }, () => readyzOf(world)));
    expect(new Set(answers.map(String))).toEqual(new Set(['200,{"ok":true}\n']));
    const calls = world.slack.calls("auth.test").length;
    expect(calls).toBeGreaterThan(0);
    expect(calls).toBeLessThanOrEqual(1 + Math.floor((performance.now() - began) / 15_000));
    world.slack.weather.clear();
  });

  it("tell their version", async () => {
    expect((await statusLines(world)).join("\n")).toContain(
      `Version: ${version}, Node.js ${process.version}; started `,
    );
  });

  it("are counted: one that was killed is missed, one that stopped isn't", async () => {
    expect(await statusLines(world)).toContain("✅ Processes: 2 gateways, 1 worker");
    await world.processes[1]?.close();
    expect(await statusLines(world)).toContain("✅ Processes: 1 gateway, 1 worker");
    // What one leaves that was killed a minute ago
    await report({}, (await world.store.now()) - 60_000);
    const lines = await statusLines(world);
    expect(lines).toContainEqual(
      expect.stringMatching(
        /^⚠️ Processes: 1 of 2 gateways stopped without a word\. Read its log, and start it again\. It ran on gw-2\. \(since /,
      ),
    );
    expect(lines[0]).toMatch(/1 of \d+ needs attention/);
    await report({}, (await world.store.now()) - 25 * 3600_000);
    expect(await statusLines(world)).toContain("✅ Processes: 1 gateway, 1 worker");
  });

  it("tell whose clock is off Slack's, which Slack's signatures go by, or Redis's", async () => {
    const clocksOf = async (presence: object) => {
      await report(presence, await world.store.now());
      return (await statusLines(world)).find((line) => line.includes("Clocks"));
    };
    const off = { clockOffMs: 0, slackClockOffMs: -360_000 };
    expect(await clocksOf(off)).toBe(
      "⚠️ Clocks: that of a gateway on gw-2 is 6 min behind Slack's. Let NTP set the clocks of these machines. From 5 min on, Slack's deliveries are refused over HTTP.",
    );
    // By its own difference, one that is off both is told once
    expect(await clocksOf({ clockOffMs: 7_200_000, slackClockOffMs: 7_200_000 })).toMatch(
      /^⚠️ Clocks: that of a gateway on gw-2 is 2 h ahead of Redis's\. /,
    );
    for (const seconds of [-60, 60])
      expect(await clocksOf({ clockOffMs: 0, slackClockOffMs: seconds * 1000 })).toBe(
        "✅ Clocks: those of all processes agree with Redis's and Slack's",
      );
  });

  it("tell how the calls of the last minute failed, in whichever process", async () => {
    const failed = { 429: 600, 500: 100 };
    await report({ tallies: { service: { calls: 900, failed } } }, await world.store.now());
    expect((await statusLines(world)).join("\n")).toMatch(
      /⚠️ Compute service: 700 of \d+ calls of the last minute failed \(429: 600, 500: 100\)/,
    );
    // Each process reports what it was answered itself
    for (const status of [429, 500]) {
      const weather = world.compute.weather({ status, match: "*" });
      await until(async () =>
        (await world.client.hvals(world.key("processes"))).filter((text) =>
          new RegExp(`"service":\\{[^}]*\\{[^}]*"${status}":\\d`).test(text),
        ),
      ).not.toEqual([expect.stringContaining("gw-2")]);
      world.compute.clear(weather);
    }
  });
});

it("status says that no worker is running, and a card doesn't say that anything runs before it was sent", async () => {
  await using world = await startWorld({ roles: ["gateway"] });
  await world.olivia.types("ops", "/vm restart web-2");
  await hears(
    world.olivia,
    "ops",
    /Restart[^]*No worker is running; it starts as soon as one does\./,
  );
  await world.olivia.types("ops", "/gatehouse status");
  const without = await hears(world.olivia, "ops", /Work/);
  expect(wordsOf(without)).toMatch(
    /no worker is running, and 1 request open\. Start a worker, or read its log/,
  );
  expect(wordsOf(without)).not.toContain("Everything works");
  const worker = await world.startProcess("worker");
  await hears(world.olivia, "ops", /Restarted web-2/);
  await world.olivia.types("ops", "/gatehouse status");
  await hears(world.olivia, "ops", /1 worker, 0 requests open/);
  // Killed, it leaves its ID, which counts only while it beats
  await worker.close();
  await world.client.sadd(world.key("workers"), "w-killed");
  await world.olivia.types("ops", "/gatehouse status");
  await hears(world.olivia, "ops", /no worker is running, and 0 requests open/);
});

it("status says that this process's clock is off Slack's, by the dates of Slack's answers", async () => {
  await using world = await startWorld({ slack: { now: () => Date.now() + 600_000 } });
  expect(await statusLines(world)).toContainEqual(
    expect.stringMatching(
      /^⚠️ Clocks: that of the process on \S+ is (9 min \d+ s|10 min) behind Slack's\. /,
    ),
  );
});

describe("a Redis that doesn't take writes", () => {
  let redis: PrivateRedis;
  let world: TestWorld;
  beforeAll(async () => {
    redis = await privateRedis();
    world = await startWorld({ redisUrl: redis.url, receive: "http" });
  });
  afterAll(async () => {
    await world.close();
    await redis[Symbol.asyncDispose]();
  });

  it("warns people before Redis is full, in the status and in the digest", async () => {
    const info = await world.client.info("memory");
    const used = Number(/^used_memory:(\d+)/m.exec(info)?.[1]);
    await world.client.config("SET", "maxmemory", Math.round(used * 1.2));
    expect(await statusLines(world)).toContainEqual(
      expect.stringMatching(
        /^⚠️ Redis: answers, writes to disk.*; memory: \d+ MiB of \d+ MiB used; .*Raise maxmemory/,
      ),
    );
    if (isOffered("gatehouse digest")) {
      await world.olivia.types("ops", "/gatehouse digest now");
      await hears(world.olivia, "ops", /Redis is nearly full \(memory: \d+ MiB of \d+ MiB used\)/);
    }
    await world.client.config("SET", "maxmemory", 0);
    expect((await statusLines(world)).find((line) => line.includes("Redis:"))).not.toMatch(
      /memory/,
    );
  });

  it.for([
    ["full", ["maxmemory", "1"], ["maxmemory", "0"], /Redis is full/],
    ["read-only", ["REPLICAOF"], ["REPLICAOF"], /Redis is a read-only replica/],
    [
      "replicas",
      ["min-replicas-to-write", "3"],
      ["min-replicas-to-write", "0"],
      /can't reach its replicas/,
    ],
  ] as const)(
    "isn't up, though it answers, for metrics, probes, and people: %s",
    async ([why, set, reset, words]) => {
      const change = async ([name, value]: readonly string[], isOn: boolean) => {
        if (value !== undefined) await world.client.config("SET", name ?? "", value);
        else await world.client.call("REPLICAOF", ...(isOn ? ["127.0.0.1", "9"] : ["NO", "ONE"]));
      };
      await until(() => metricsOf(world)).toMatch(/^gatehouse_redis_up 1$/m);
      await change(set, true);
      await until(() => metricsOf(world)).toMatch(/^gatehouse_redis_up 0$/m);
      await until(() => metricsOf(world)).toContain(`gatehouse_ready{reason="redis-${why}"} 0`);
      await until(async () => {
        const lines = await statusLines(world);
        expect(lines.filter((line) => words.test(line))).toHaveLength(1);
        expect(lines[0]).toMatch(/needs? attention/);
        return true;
      });
      // Between two connections to a replica it is down for a moment
      await until(() => readyzOf(world)).toEqual([503, expect.stringMatching(words)]);
      await change(reset, false);
      await until(() => metricsOf(world)).toMatch(/^gatehouse_redis_up 1$/m);
      await until(() => metricsOf(world)).toContain(`gatehouse_ready{reason="redis-${why}"} 1`);
    },
  );

  it("is told once when it is away, since when, and what can't be read meanwhile", async () => {
    await redis.stop();
    let lines: readonly string[] = [];
    await until(async () => {
      lines = await statusLines(world);
      expect(lines.join("\n")).toContain("⚠️ Outages");
      return true;
    });
    expect(lines.filter((line) => line.includes("Redis"))).toEqual([
      "⚠️ Redis: Redis is down. Nothing can be changed until it is back. Until then these can't be read: Changes, Work, Processes, Clocks.",
      expect.stringMatching(
        /^⚠️ Outages: Redis has been away for \d+ s\. Refused requests are reported when it is back\. \(since \d+:\d\d:\d\d [AP]M UTC\)$/,
      ),
      expect.stringMatching(/^⚠️ Redis is unavailable: this answer was read without Redis/),
    ]);
    expect(lines.join("\n")).not.toMatch(/enableOfflineQueue|Everything works/);
    await redis.start();
  });
});

describe("a Redis that somebody sets to lose data while Gatehouse runs", () => {
  it.each([
    ["maxmemory-policy", "allkeys-lru", "noeviction", "Redis may evict Gatehouse's records"],
    ["appendonly", "no", "yes", "Redis keeps nothing on disk"],
  ])(
    "has no change sent with %s %s, and people told; it goes on with %s",
    async (name, bad, good, why) => {
      await using world = await startWorld({ hasOwnRedis: true, pace: { sweepMs: 300 } });
      const audit = () => world.ada.seesChannel("audit").messages.map(wordsOf).join("\n");
      await world.client.config("SET", name, bad);
      await until(() => audit()).toContain("Redis may forget what was sent, so no change is sent.");
      expect(await statusLines(world)).toContainEqual(
        expect.stringMatching(
          /^⚠️ Redis: may forget what was sent, so no change is sent; .*CONFIG SET/,
        ),
      );
      expect(await metricsOf(world)).toMatch(/^gatehouse_redis_volatile 1$/m);
      await world.olivia.types("ops", "/vm restart web-2");
      const openWhy = async () => {
        const [id = ""] = await world.store.openIds();
        const found = await world.store.get(id);
        return found && whyOf(found.stage);
      };
      await until(openWhy).toBe(`${why}; nothing was sent`);
      expect(world.compute.writes()).toEqual([]);
      await world.client.config("SET", name, good);
      expect((await world.ended()).state).toBe("done");
      expect(world.compute.writes()).toHaveLength(1);
      await until(() => metricsOf(world)).toMatch(/^gatehouse_redis_volatile 0$/m);
      await until(() => audit()).toContain("Redis keeps everything again.");
    },
  );
});
