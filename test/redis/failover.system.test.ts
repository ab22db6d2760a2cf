import { readFileSync } from "node:fs";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { describe, expect, it } from "vitest";
import {
  certificate,
  type RedisNodes,
  startAlone,
  startCluster,
  startSentinels,
} from "../support/redis-nodes.ts";
import { startWorld, type TestWorld } from "../support/start-world.ts";
import { until } from "../support/until.ts";

const ready = async (world: TestWorld) =>
  (await fetch(`http://127.0.0.1:${world.processes[0]?.port}/readyz`)).status;

type Killed = Pick<RedisNodes, "url" | "primary"> & Partial<Pick<RedisNodes, "another">>;

/**
 * Kills the primary while requests run, and asks on. Each of four VMs is to be stopped once. Without another that takes over, the
 * one that was killed comes back. `awayMs` counts from then: how long Redis itself takes is not for this test to bound.
 */
async function primaryKilled(redis: Killed) {
  await using world = await startWorld({
    redisUrl: redis.url,
    namespace: "gatehouse",
    compute: { transitionMs: 500 },
  });
  const stop = (vm: string) => world.olivia.types("ops", `/vm stop ${vm}`);
  const stored = () => world.store.recentIds({}, 20).catch(() => []);
  await Promise.all(["payments/web-1", "web-2", "staging/web-1"].map(stop));
  await until(async () => ((await stored()).length === 3 ? true : undefined));
  expect(await ready(world)).toBe(200);
  const primary = await redis.primary();
  await primary.kill();
  const readyMeanwhile = await ready(world);
  await (redis.another === undefined ? primary.start() : redis.another(primary));
  const backAt = performance.now();
  const taken = async () => {
    await stop("db-1");
    return (await stored()).length === 4 ? performance.now() - backAt : undefined;
  };
  const awayMs = await until(taken);
  const settled = () => world.settled().catch(() => undefined);
  // A post whose mark was the last that Redis kept is looked up in Slack after 10 s
  const requests = await until(settled);
  const stops = world.compute.writes().filter(({ path }) => path.endsWith("/stop"));
  return {
    awayMs,
    readyMeanwhile,
    readyAfterwards: await ready(world),
    states: requests.map(({ state }) => state),
    stops: stops.filter(({ effect }) => effect).length,
    // Said when it fails: what was sent, and what became of each request
    calls: stops.map(({ path, answer, effect }) => `${path} ${answer} ${effect}`),
    told: requests.map(({ record, state, attempt, stage }) =>
      JSON.stringify([record.id, record.target.name, state, attempt, stage]),
    ),
  };
}

const wentOn = {
  readyMeanwhile: 503,
  readyAfterwards: 200,
  states: ["done", "done", "done", "done"],
  stops: 4,
};

/** The tests' certificate counts beside the usual ones, until the end. */
const trustingOurs = (test: () => Promise<void>) => async () => {
  const usual = getCACertificates("default");
  setDefaultCACertificates([...usual, readFileSync(certificate, "utf8")]);
  try {
    await test();
  } finally {
    setDefaultCACertificates(usual);
  }
};

describe("a Redis that is killed and comes back while requests run", () => {
  it(
    "speaks TLS alone: work goes on by itself, and nothing is done twice",
    trustingOurs(async () => {
      await using redis = await startAlone("word-of-redis");
      const { awayMs, calls, told, ...seen } = await primaryKilled(redis);
      expect(seen, [...calls, ...told].join("\n")).toEqual(wentOn);
      expect(awayMs).toBeLessThan(10_000);
    }),
  );
});

describe("a Redis that fails over while requests run", () => {
  it.concurrent("is a Cluster whose primary is killed: work goes on within 10 s of the next, and nothing is done twice", async () => {
    await using cluster = await startCluster();
    const { awayMs, calls, told, ...seen } = await primaryKilled(cluster);
    expect(seen, [...calls, ...told].join("\n")).toEqual(wentOn);
    expect(awayMs).toBeLessThan(10_000);
  });

  it.concurrent("is watched by sentinels: work goes on within 10 s of the next, and nothing is done twice", async () => {
    await using redis = await startSentinels();
    const { awayMs, calls, told, ...seen } = await primaryKilled(redis);
    expect(seen, [...calls, ...told].join("\n")).toEqual(wentOn);
    expect(awayMs).toBeLessThan(10_000);
  });

  it.concurrent(
    "is watched by sentinels and speaks TLS alone: both they and the next primary are reached by it",
    trustingOurs(async () => {
      await using redis = await startSentinels({ tls: true, password: "word-of-redis" });
      const { awayMs, calls, told, ...seen } = await primaryKilled(redis);
      expect(seen, [...calls, ...told].join("\n")).toEqual(wentOn);
      expect(awayMs).toBeLessThan(10_000);
    }),
  );
});
