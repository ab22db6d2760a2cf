import { readFileSync } from "node:fs";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { stretchDeadlines } from "../../src/deadline.ts";
import { silentLog } from "../../src/log/log.ts";
import { connectRedis, type RedisClient } from "../../src/redis/redis.ts";
import {
  certificate,
  type RedisCluster,
  startCluster,
  startSentinels,
} from "../support/redis-nodes.ts";
import { until } from "../support/until.ts";

/** Writes until it works; resolves with how often that was refused. */
async function untilWritten(redis: RedisClient): Promise<number> {
  let refusals = 0;
  await until(() => redis.incr("{gatehouse}:n").catch(() => void (refusals += 1)));
  return refusals;
}

describe("the primary of a Cluster that speaks TLS alone", () => {
  const usual = getCACertificates("default");
  let cluster: RedisCluster;
  let redis: RedisClient;
  let worker: RedisClient;
  beforeAll(async () => {
    setDefaultCACertificates([...usual, readFileSync(certificate, "utf8")]);
    cluster = await startCluster("gatehouse", { one: true, tls: true });
    // The deadlines of production: a node that is frozen answers no sooner
    stretchDeadlines(1);
    redis = await connectRedis(cluster.url, "commands", silentLog());
    worker = await connectRedis(cluster.url, "worker", silentLog());
  });
  afterAll(async () => {
    stretchDeadlines(30);
    redis.disconnect();
    worker.disconnect();
    await cluster[Symbol.asyncDispose]();
    setDefaultCACertificates(usual);
  });

  it("is found from the URL of any one node, as managed services give it", async () => {
    expect(cluster.url).not.toContain(",");
    await untilWritten(redis);
    expect(await worker.get("{gatehouse}:n")).toBe("1");
  });

  it("is found again after CLUSTER FAILOVER, by connections that only wait as well", async () => {
    // "UNBLOCKED", and the next one works
    const waiting = worker.bzpopmin("{gatehouse}:queue", 1).catch(() => undefined);
    await cluster.failOver();
    await untilWritten(redis);
    await waiting;
    await untilWritten(worker);
  });

  it("is found again when our slot moves to another one", async () => {
    const n = Number(await worker.get("{gatehouse}:n"));
    await cluster.moveSlot();
    await untilWritten(redis);
    await untilWritten(worker);
    expect(Number(await worker.get("{gatehouse}:n"))).toBeGreaterThanOrEqual(n + 2);
  });

  it("is found again when it is frozen, while commands are refused instead of waiting", async () => {
    const old = await cluster.primary();
    old.freeze();
    const waiting = worker.set("{gatehouse}:waited", "1").catch(() => undefined);
    expect(await untilWritten(redis)).toBeGreaterThan(0);
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
    await untilWritten(redis);
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
