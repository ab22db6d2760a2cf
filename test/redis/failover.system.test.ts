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
 * one that was killed comes back. How soon work goes on is bounded by rows of the fault suite (rows/redis/failovers.ts).
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
  if (redis.another === undefined) {
    expect(await ready(world)).toBe(503);
    await primary.start();
  } else await redis.another(primary);
  const taken = async () => {
    await stop("db-1");
    return (await stored()).length;
  };
  await until(taken).toBe(4);
  const settled = () => world.settled().catch(() => undefined);
  // A post whose mark was the last that Redis kept is looked up in Slack after 10 s
  const requests = await until(settled);
  const stops = world.compute.writes().filter(({ path }) => path.endsWith("/stop"));
  return {
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
      const { calls, told, ...seen } = await primaryKilled(redis);
      expect(seen, [...calls, ...told].join("\n")).toEqual(wentOn);
    }),
  );
});

describe("a Redis that fails over while requests run", () => {
  it.concurrent("is a Cluster whose primary is killed: work goes on with the next, and nothing is done twice", async () => {
    await using cluster = await startCluster();
    const { calls, told, ...seen } = await primaryKilled(cluster);
    expect(seen, [...calls, ...told].join("\n")).toEqual(wentOn);
  });

  it.concurrent(
    "is watched by sentinels and speaks TLS alone: work goes on with the next, and nothing is done twice",
    trustingOurs(async () => {
      await using redis = await startSentinels({ tls: true, password: "word-of-redis" });
      const { calls, told, ...seen } = await primaryKilled(redis);
      expect(seen, [...calls, ...told].join("\n")).toEqual(wentOn);
    }),
  );
});
