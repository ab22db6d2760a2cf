import { expect, it } from "vitest";
import { version } from "../../src/config/version.ts";
import { checks } from "../../src/operate/checks/checks.ts";
import { hears, wordsOf } from "../stories/words.ts";
import { startWorld, type TestWorld } from "../support/start-world.ts";
import { privateRedis } from "../support/with-redis.ts";
import { until } from "../support/until.ts";

it("200 probes at once cost at most one call of Slack", async () => {
  await using world = await startWorld();
  const port = world.processes[0]?.opsPort;
  world.slack.forgetCalls();
  const probe = async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).status;
  const answers = await Promise.all(Array.from({ length: 200 }, probe));
  expect(new Set(answers)).toEqual(new Set([200]));
  expect(world.slack.calls("auth.test").length).toBeLessThanOrEqual(1);
  await world.vera.types("ops", "/gatehouse status");
  const said = `*Version*: ${version}, Node.js ${process.version}; started `;
  await world.vera.until((seen) => JSON.stringify(seen).includes(said));
});

it("a Slack that limits calls makes no process unready", async () => {
  await using world = await startWorld();
  const port = world.processes[0]?.opsPort;
  world.slack.weather.add({ method: "auth.test", kind: "rate-limited", retryAfter: 30 });
  const limited = await fetch(`http://127.0.0.1:${port}/readyz`);
  expect([limited.status, await limited.text()]).toEqual([200, '{"ok":true}\n']);
  expect(world.slack.calls("auth.test").length).toBeGreaterThan(0);
});

it("says that no worker is running, and a card doesn't say that anything runs before it was sent", async () => {
  await using world = await startWorld({ roles: ["gateway"] });
  await world.olivia.types("ops", "/vm restart web-2");
  await hears(world.olivia, "ops", /Restart[^]*Requested\. The result will be in the thread/);
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

it("whatever makes a process unready is also shown to people and checked by the doctor", () => {
  const needed = checks.filter(({ forReadiness }) => forReadiness);
  expect(needed.map(({ name }) => name)).toEqual(["Slack", "Redis", "Policy", "Clocks"]);
  expect(needed.filter(({ forPeople, fromOutside }) => !forPeople || !fromOutside)).toEqual([]);
});

const statusLines = async (world: TestWorld, words: RegExp) => {
  await world.ada.types("ops", "/gatehouse status");
  return wordsOf(await hears(world.ada, "ops", words)).split("\n");
};

it("says once that Redis is away, since when, and what can't be read meanwhile", async () => {
  await using redis = await privateRedis();
  await using world = await startWorld({ redisUrl: redis.url, receive: "http" });
  await redis.stop();
  let lines: readonly string[] = [];
  await until(async () => {
    lines = await statusLines(world, /needs? attention/);
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
  "a Redis that answers and refuses every write isn't up: %s",
  async ([why, set, reset, words]) => {
    await using redis = await privateRedis();
    await using world = await startWorld({ redisUrl: redis.url });
    const figures = async () =>
      (await fetch(`http://127.0.0.1:${world.processes[0]?.opsPort}/metrics`)).text();
    const change = async ([name, value]: readonly string[], isOn: boolean) => {
      if (value !== undefined) await world.client.config("SET", name ?? "", value);
      else await world.client.call("REPLICAOF", ...(isOn ? ["127.0.0.1", "9"] : ["NO", "ONE"]));
    };
    expect(await figures()).toMatch(/^gatehouse_redis_up 1$/m);
    await change(set, true);
    await until(figures).toMatch(/^gatehouse_redis_up 0$/m);
    await until(figures).toContain(`gatehouse_ready{reason="redis-${why}"} 0`);
    let lines: readonly string[] = [];
    await until(async () => {
      lines = await statusLines(world, /needs? attention/);
      expect(lines.filter((line) => words.test(line))).toHaveLength(1);
      return true;
    });
    expect(lines[0]).toMatch(/needs? attention/);
    // Between two connections to a replica it is down for a moment
    await until(async () => {
      const ready = await fetch(`http://127.0.0.1:${world.processes[0]?.opsPort}/readyz`);
      expect([ready.status, await ready.text()]).toEqual([503, expect.stringMatching(words)]);
      return true;
    });
    await change(reset, false);
    await until(figures).toMatch(/^gatehouse_redis_up 1$/m);
    expect(await figures()).toContain(`gatehouse_ready{reason="redis-${why}"} 1`);
  },
);

it.for([429, 500] as const)(
  "says that the calls of the last minute were answered %s, in whichever process",
  async (status) => {
    await using world = await startWorld({ roles: ["gateway", "worker"] });
    await world.olivia.types("ops", "/vm restart web-2");
    await world.ended();
    world.compute.weather({ status, match: "*" });
    await world.olivia.types("ops", "/vm restart payments/web-1");
    await until(async () => (await statusLines(world, /Compute service/)).join("\n")).toMatch(
      new RegExp(
        `⚠️ Compute service: (\\d+) of \\d+ calls of the last minute failed \\(${status}: \\1\\)`,
      ),
    );
  },
);

it("counts gateways and workers: one that was killed is missed, one that stopped isn't", async () => {
  await using world = await startWorld({ roles: ["gateway", "gateway", "worker"] });
  expect(await statusLines(world, /Processes/)).toContain("✅ Processes: 2 gateways, 1 worker");
  await world.processes[1]?.close();
  expect(await statusLines(world, /Processes: 1 gateway/)).toContain(
    "✅ Processes: 1 gateway, 1 worker",
  );
  // What one leaves that was killed a minute ago
  const left = { role: "gateway", host: "gw-2", tallies: {} };
  const killedAt = (await world.store.now()) - 60_000;
  await world.client.hset(
    world.key("processes"),
    "gw-2 /data",
    `${killedAt} ${JSON.stringify(left)}`,
  );
  const lines = await statusLines(world, /stopped without a word/);
  expect(lines).toContainEqual(
    expect.stringMatching(
      /^⚠️ Processes: 1 of 2 gateways stopped without a word\. Read its log, and start it again\. It ran on gw-2\. \(since /,
    ),
  );
  expect(lines[0]).toMatch(/1 of \d+ needs attention/);
  const longAgo = (await world.store.now()) - 25 * 3600_000;
  await world.client.hset(
    world.key("processes"),
    "gw-2 /data",
    `${longAgo} ${JSON.stringify(left)}`,
  );
  expect(await statusLines(world, /Processes: 1 gateway,/)).toContain(
    "✅ Processes: 1 gateway, 1 worker",
  );
});
