import { readFileSync } from "node:fs";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { silentLog } from "../../src/log/log.ts";
import { connectRedis, type RedisClient } from "../../src/redis/redis.ts";
import {
  certificate,
  type RedisCluster,
  startCluster,
  startSentinels,
} from "../support/redis-nodes.ts";
import { privateRedis } from "../support/with-redis.ts";
import { until } from "../support/until.ts";

/** Writes until it works; resolves with how long that took and the longest refusal (ms). */
async function untilWritten(redis: RedisClient) {
  const began = performance.now();
  let longestMs = 0;
  await until(async () => {
    const asked = performance.now();
    return redis.incr("{gatehouse}:n").catch(() => {
      longestMs = Math.max(longestMs, performance.now() - asked);
      return undefined;
    });
  });
  return { afterMs: performance.now() - began, longestMs };
}

describe("the primary of a Cluster that speaks TLS alone", () => {
  const usual = getCACertificates("default");
  let cluster: RedisCluster;
  let redis: RedisClient;
  let worker: RedisClient;
  beforeAll(async () => {
    setDefaultCACertificates([...usual, readFileSync(certificate, "utf8")]);
    cluster = await startCluster("gatehouse", { one: true, tls: true });
    redis = await connectRedis(cluster.url, "commands", silentLog());
    worker = await connectRedis(cluster.url, "worker", silentLog());
  }, 30_000);
  afterAll(async () => {
    redis.disconnect();
    worker.disconnect();
    await cluster[Symbol.asyncDispose]();
    setDefaultCACertificates(usual);
  });

  it("is found from the URL of any one node, as managed services give it", async () => {
    expect(cluster.url).not.toContain(",");
    expect(await redis.incr("{gatehouse}:n")).toBe(1);
    expect(await worker.get("{gatehouse}:n")).toBe("1");
  });

  it("is found again after CLUSTER FAILOVER, by connections that only wait as well", async () => {
    // "UNBLOCKED", and the next one works
    const waiting = worker.bzpopmin("{gatehouse}:queue", 1).catch(() => undefined);
    await cluster.failOver();
    expect((await untilWritten(redis)).afterMs).toBeLessThan(3_000);
    await waiting;
    expect((await untilWritten(worker)).afterMs).toBeLessThan(3_000);
  });

  it("is found again when our slot moves to another one", async () => {
    const n = Number(await redis.get("{gatehouse}:n"));
    await cluster.moveSlot();
    expect((await untilWritten(redis)).afterMs).toBeLessThan(3_000);
    expect(Number(await redis.get("{gatehouse}:n"))).toBe(n + 1);
    await untilWritten(worker);
  });

  it("is found again when it is frozen, while commands are refused within a second and a bit", async () => {
    const old = await cluster.primary();
    old.freeze();
    const waiting = worker.set("{gatehouse}:waited", "1").catch(() => undefined);
    const { afterMs, longestMs } = await untilWritten(redis);
    expect(afterMs).toBeLessThan(10_000);
    expect(longestMs).toBeLessThan(1_300);
    await waiting;
    await untilWritten(worker);
    old.thaw();
  });

  it("is found again when the node that REDIS_URL names is gone, by the addresses of the others", async () => {
    const [named] = cluster.nodes;
    await cluster.whole();
    if (named === (await cluster.primary())) await cluster.failOver();
    await named?.kill();
    redis.disconnect(true);
    expect((await untilWritten(redis)).afterMs).toBeLessThan(10_000);
  });
});

describe("the primary that sentinels know", () => {
  it("is reached with Redis's password, which sentinels needn't have, in the database named", async () => {
    await using nodes = await startSentinels({ password: "not-a-real-password" });
    const url = nodes.url.replace(/0$/, "3");
    const redis = await connectRedis(url, "commands", silentLog());
    expect(await redis.incr("{gatehouse}:n")).toBe(1);
    const { admin } = await nodes.primary();
    expect(await admin.info("keyspace")).toContain("db3:keys=1");
    redis.disconnect();
    const unknown = connectRedis(
      nodes.url.replace("gatehouse/", "other/"),
      "commands",
      silentLog(),
      {
        patienceMs: 1_000,
      },
    );
    await expect(unknown).rejects.toThrow("the sentinels know no primary called other");
  });
});

describe("a database that Redis hasn't", () => {
  it("is refused at the start, naming REDIS_URL, instead of working in database 0", async () => {
    await using server = await privateRedis(["--databases", "4"]);
    await expect(connectRedis(`${server.url}/4`, "commands", silentLog())).rejects.toMatchObject({
      name: "ConfigError",
      message: expect.stringMatching(/REDIS_URL: Redis at \S+ has no database 4/),
    });
    const redis = await connectRedis(`${server.url}/3`, "commands", silentLog());
    await redis.set("a", "1");
    redis.disconnect();
  });

  it("is refused after a restart, too", async () => {
    await using server = await privateRedis(["--databases", "4"]);
    const redis = await connectRedis(`${server.url}/3`, "commands", silentLog());
    const errors: string[] = [];
    // not its log, which is quiet for 10 s after an attempt that found no server yet
    redis.on("error", ({ message }) => errors.push(message));
    await server.stop();
    // A database 3 in the file would not be loaded
    await server.start(["--databases", "2"]);
    const refused = async () => errors.some((message) => /DB index/.test(message)) || undefined;
    await until(refused);
    await expect(redis.set("a", "1")).rejects.toThrow();
    redis.disconnect();
  });
});
