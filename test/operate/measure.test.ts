import { expect, it, onTestFinished } from "vitest";
import { silentLog } from "../../src/log/log.ts";
import { connectRedis, createKeys } from "../../src/redis/redis.ts";
import type { Config } from "../../src/config/config.ts";
import { createTelemetry } from "../../src/log/telemetry.ts";
import { sentence } from "../../src/messages/card.ts";
import { md } from "../../src/messages/markdown.ts";
import { createJournal } from "../../src/core/request/journal.ts";
import { createNotices } from "../../src/core/deliver/notices.ts";
import { createMeasure } from "../../src/operate/measure.ts";
import { claimedBy, storeRequest, restartOf, vmTarget, movedBy, stageOf } from "../core/asking.ts";
import { mintAuthority } from "../support/mint-authority.ts";
import { privateRedis, testRedis } from "../support/with-redis.ts";

const minuteMs = 60_000;
const nothingRead = {
  refreshedAt: undefined,
  version: 0,
  stale: true,
  vms: 0,
  projects: 0,
  unread: [],
};

const nothingSet = {
  authorities: undefined,
  compute: { tls: () => ({}) },
  redisCertificate: undefined,
} as unknown as Pick<Config, "authorities" | "compute" | "redisCertificate">;

it("tells how full Redis is, what is free for DATA_DIR, and when certificates end", async () => {
  await using own = await privateRedis();
  const redis = await connectRedis(own.url, "commands", silentLog());
  onTestFinished(() => redis.disconnect());
  const key = createKeys("gatehouse");
  const store = createJournal(redis, key);
  const telemetry = createTelemetry();
  const authority = mintAuthority("Acme");
  const { cert } = authority.mint("gatehouse", { untilDays: 9 });
  const { cert: renewed } = authority.mint("an authority", { untilDays: 90 });
  const { cert: former } = authority.mint("an authority", { untilDays: 2 });
  const config = {
    ...nothingSet,
    dataDir: ".",
    authorities: former + renewed,
    redisCertificate: { cert, key: "" },
  };
  const measure = createMeasure({
    config,
    redis,
    key,
    store,
    queues: { depths: async () => [] },
    inventory: { state: async () => nothingRead },
    telemetry,
    sources: [],
    redisCheckNow: async () => ({ kind: "ok" }),
  });
  async function figure(name: string): Promise<number> {
    await measure();
    const { text } = await telemetry.render();
    const line = text.split("\n").find((one) => one.startsWith(`gatehouse_${name} `));
    return Number(line?.split(" ").at(-1));
  }
  expect(await figure("redis_memory_ratio")).toBe(0);
  await redis.config("SET", "maxmemory", 1024 ** 3);
  expect(await figure("redis_memory_ratio")).toBeGreaterThan(0);
  expect(await figure("redis_memory_ratio")).toBeLessThan(0.1);
  expect(await figure("data_dir_free_bytes")).toBeGreaterThan(0);
  const dayMs = 86_400_000;
  const days = async (file: string) =>
    Math.round(
      ((await figure(`certificate_end_seconds{file="${file}"}`)) * 1000 - Date.now()) / dayMs,
    );
  expect(await days("REDIS_CERT_FILE")).toBe(9);
  expect(await days("CA_FILE")).toBe(90);
  config.dataDir = "/nowhere";
  config.authorities = "";
  expect(await figure("data_dir_free_bytes")).toBe(0);
  expect(await days("CA_FILE")).toBeNaN();
});

it("counts what is open by state, with the age of the oldest, what is owed, and what isn't sealed", async () => {
  const began = performance.now();
  await using at = await testRedis();
  const { redis, key } = at;
  const store = createJournal(redis, key);
  const telemetry = createTelemetry();
  const requests = { queue: "requests", waiting: 2, active: 1, delayed: 0 };
  const queues = { depths: async () => [{ ...requests, oldestAt: Date.now() - minuteMs }] };
  const inventory = { state: async () => nothingRead };
  const { announce, source } = createNotices({ redis, key });
  const sources = [{ outbox: store.outbox, owedSince: "changedAt" as const }, source];
  const measure = createMeasure({
    config: { ...nothingSet, dataDir: "." },
    redis,
    key,
    store,
    queues,
    inventory,
    telemetry,
    sources,
    redisCheckNow: async () => ({ kind: "ok" }),
  });
  async function figures(): Promise<Record<string, number>> {
    await measure();
    const { text } = await telemetry.render();
    const samples = text.split("\n").filter((line) => line.startsWith("gatehouse_"));
    return Object.fromEntries(
      samples.map((line) => {
        const [, name = "", value] = /^gatehouse_(\S+(?: \S+)*?) (\S+)$/.exec(line) ?? [];
        return [name, Number(value)];
      }),
    );
  }
  const empty = await figures();
  expect(empty).toMatchObject({
    'open_requests{state="draft"}': 0,
    'open_request_age_seconds{state="unknown"}': 0,
    outbox_messages: 0,
    outbox_age_seconds: 0,
    audit_records_total: 0,
    audit_head_age_seconds: 0,
    audit_unsealed_age_seconds: 0,
    frozen: 0,
    'queue_jobs{queue="requests",state="waiting"}': 2,
  });
  expect(empty['queue_age_seconds{queue="requests"}']).toBeGreaterThanOrEqual(60);

  const old = await storeRequest(store, restartOf(vmTarget("web-1")));
  await storeRequest(store, restartOf(vmTarget("web-2")));
  const { approval: _none, ...plain } = restartOf(vmTarget("db-1"));
  const lost = await storeRequest(store, plain);
  const requestKey = (id: string) => key("request", id);
  const now = await store.now();
  await redis.hset(requestKey(old.record.id), "createdAt", now - 5 * minuteMs);
  const sending = await claimedBy("w-1", lost, store);
  const unclear = await movedBy(
    store.move(sending, { to: { ...sending.stage, state: "unclear" }, why: "no answer" }),
  );
  // A reminder is a move that leaves the time since when it is unknown
  const unknown = stageOf("unknown", {
    ...unclear.stage,
    state: "unknown",
    since: now - 10 * minuteMs,
  });
  await store.move(unclear, { to: unknown, why: "still unknown" });
  await store.freeze({ by: "Gatehouse", reason: "a test" });
  await announce({ id: "n-1", channelId: "C01OPS", message: sentence(md`Something happened.`) });
  await redis.hset(key("notice", "n-1"), "at", now - 2 * minuteMs);
  const seal = ["id", `${now - minuteMs}-0`, "at", now - minuteMs, "payload", "x", "hash", "y"];
  await redis.xadd(key("audit", "seals"), "7-0", ...seal);

  const full = await figures();
  expect(full).toMatchObject({
    'open_requests{state="draft"}': 2,
    'open_requests{state="unknown"}': 1,
    'open_requests{state="uncounted"}': 0,
    outbox_messages: 4,
    audit_records_total: 7,
    frozen: 1,
  });
  const between = (name: string, least: number) => {
    expect(full[name], name).toBeGreaterThanOrEqual(least);
    expect(full[name], name).toBeLessThanOrEqual(least + (performance.now() - began) / 1_000 + 1);
  };
  between('open_request_age_seconds{state="draft"}', 300);
  between('open_request_age_seconds{state="unknown"}', 600);
  between("outbox_age_seconds", 120);
  between("audit_head_age_seconds", 60);
  between("audit_unsealed_age_seconds", 0);
  expect(full["audit_unsealed_age_seconds"]).toBeGreaterThan(0);
});
