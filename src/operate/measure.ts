import { statfs } from "node:fs/promises";
import { Trail } from "../audit/trail.ts";
import { certificatesIn } from "../config/compute-tls.ts";
import type { Config } from "../config/config.ts";
import type { QueueDepth, Queues } from "../queue/queues.ts";
import { readMemory } from "../redis/check.ts";
import { readPending } from "../redis/pending.ts";
import { problemOfWriting } from "./checks/redis.ts";
import type { Source } from "../core/deliver/deliver.ts";
import type { Journal } from "../core/request/journal.ts";
import type { Inventory } from "../fleet/inventory/inventory.ts";
import type { Telemetry } from "../log/telemetry.ts";
import type { RedisPlace } from "../redis/redis.ts";
import type { Services } from "./services.ts";

/** How many open requests are looked at in one scrape, the oldest first. */
const maxCounted = 5_000;
/** How many pending members are looked at, the first ones first. */
const maxPending = 20_000;
/** How many waiting messages of a kind are looked at to find the oldest. */
const maxOwed = 200;

/** The states that an open request can have. They are exported even when no request is in them. */
const openStates = "draft authorized sending accepted unclear not-applied unknown".split(" ");

/**
 * Reads what all processes share into the gauges, and the age of the inventory. Never rejects:
 * without Redis, this process's own metrics remain.
 */
export function createMeasure(
  on: RedisPlace & {
    redisCheckNow: Services["redisCheckNow"];
    store: Journal;
    telemetry: Telemetry;
    config: Pick<Config, "dataDir" | "authorities" | "compute" | "redisCertificate">;
    queues: { depths: Queues["depths"] };
    inventory: { state: Inventory["state"] };
    /** The sources of all messages that Slack may lack. */
    sources: readonly Pick<Source, "outbox" | "owedSince">[];
  },
): () => Promise<void> {
  const { redis, key, store, telemetry, config } = on;
  const { shared } = telemetry;
  const startedAt = Date.now();

  async function measureRequests(now: number): Promise<void> {
    const ids = await redis.zrange(key("requests", "open"), 0, `${maxCounted - 1}`);
    const open = (await Promise.all(ids.map(stateOf))).filter(({ state }) => state !== null);
    const byState = Map.groupBy(open, ({ state }) => state ?? "");
    shared.openRequests.reset();
    shared.openRequestAge.reset();
    for (const state of new Set([...openStates, ...byState.keys()])) {
      const all = byState.get(state) ?? [];
      shared.openRequests.set({ state }, all.length);
      const since = all.map(({ at }) => at);
      shared.openRequestAge.set({ state }, secondsSince(since, now));
    }
    const uncounted = (await store.openCount()) - open.length;
    shared.openRequests.set({ state: "uncounted" }, Math.max(0, uncounted));
  }

  async function stateOf(id: string): Promise<{ state: string | null; at: number }> {
    const hash = key("request", id);
    const fields = await redis.hmget(hash, "state", "changedAt", "createdAt");
    const [state = null, changedAt, createdAt] = fields;
    if (state === "draft") return { state, at: Number(createdAt) };
    // A reminder changes `changedAt`, too, so the stage says since when the outcome has been
    // unknown.
    const unknown = state === "unknown" ? await store.get(id) : undefined;
    const since = unknown?.state === "unknown" ? unknown.stage.since : undefined;
    return { state, at: since ?? Number(changedAt) };
  }

  async function measureOwed(now: number): Promise<void> {
    const pending = await readPending(redis, key, maxPending);
    const lists = on.sources.map(async ({ outbox, owedSince: field }) => {
      const ids = field === undefined ? [] : (pending.get(outbox.kind) ?? []);
      const oldest = ids.slice(0, maxOwed);
      const oldestFields = await Promise.all(
        oldest.map((id) => redis.hmget(outbox.hashOf(id), field ?? "", "card")),
      );
      // A posted message is pending because of a later change, whose time isn't known.
      const dated = oldestFields.filter(([at, card]) => at && !(field === "createdAt" && card));
      return { many: ids.length, since: dated.map(([at]) => Number(at)) };
    });
    const owed = await Promise.all(lists);
    shared.outboxDepth.set(owed.reduce((sum, { many }) => sum + many, 0));
    const since = owed.flatMap((list) => list.since);
    shared.outboxAge.set(secondsSince(since, now));
  }

  async function measureTrail(now: number): Promise<void> {
    const trail = new Trail(redis, key);
    const head = await trail.head();
    const [unsealed] = await trail.records({ after: head?.id, most: 1 });
    shared.auditRecords.reset();
    shared.auditRecords.inc(head?.seq ?? 0);
    shared.auditHeadAge.set(secondsSince([Number(head?.at ?? now)], now));
    shared.auditUnsealedAge.set(secondsSince([Number.parseInt(unsealed?.id ?? `${now}`, 10)], now));
  }

  /** Measured by the processes' clocks, which BullMQ uses. */
  async function measureJobs(): Promise<void> {
    const depths: readonly QueueDepth[] = await on.queues.depths();
    for (const { queue, oldestAt, ...states } of depths) {
      for (const [state, many] of Object.entries(states))
        shared.queueJobs.set({ queue, state }, many);
      const now = Date.now();
      shared.queueAge.set({ queue }, secondsSince([oldestAt ?? now], now));
    }
  }

  /** A folder that is gone has no free space. */
  async function measureDisk(): Promise<void> {
    const disk = await statfs(config.dataDir).catch(() => undefined);
    telemetry.dataDirFree.set(disk ? disk.bavail * disk.bsize : 0);
  }

  /** The files are read anew when they change, so their ends may change. */
  function measureCertificates(): void {
    for (const [file, pem] of certificateFiles(config)) {
      const end = firstEnd(pem);
      if (end === undefined) telemetry.certificateEnd.remove({ file });
      else telemetry.certificateEnd.set({ file }, end / 1000);
    }
  }

  async function measureShared(): Promise<void> {
    const began = performance.now();
    await redis.ping();
    shared.redisRoundTrip.set((performance.now() - began) / 1000);
    const now = await store.now();
    const memory = await readMemory(redis);
    shared.redisMemoryRatio.set(memory?.mostBytes ? memory.usedBytes / memory.mostBytes : 0);
    const freeze = await store.freezeState();
    const isByPerson = freeze !== undefined && !freeze.cause && freeze.by !== "Gatehouse";
    shared.frozen.set(freeze ? 1 : 0);
    shared.frozenByPerson.set(isByPerson ? 1 : 0);
    const parts = [measureRequests, measureOwed, measureTrail, measureJobs];
    await Promise.all(parts.map((measure) => measure(now)));
  }

  return async () => {
    const isKnown = await measureShared().then(
      () => true,
      () => false,
    );
    // A full Redis, or one with a full disk, still answers all the reads above.
    const refused = await problemOfWriting(redis, key);
    telemetry.sawRedisWrite(isKnown && refused === undefined);
    telemetry.knowShared(isKnown);
    await measureDisk();
    measureCertificates();
    const kept = await on.redisCheckNow().catch(() => undefined);
    if (kept) telemetry.redisVolatile.set(kept.kind === "volatile" && !kept.allowed ? 1 : 0);
    // This comes from memory, so it grows older even without Redis.
    const { refreshedAt = startedAt, unread, gaps = [] } = await on.inventory.state();
    telemetry.inventoryAge.set(Math.max(0, Date.now() - refreshedAt) / 1000);
    telemetry.inventoryUnread.set(unread.length);
    telemetry.inventoryGaps.set(gaps.length);
  };
}

/** The certificates that this process has, by the variable that names their file. */
function certificateFiles({
  authorities,
  compute,
  redisCertificate,
}: Pick<Config, "authorities" | "compute" | "redisCertificate">) {
  const { ca, cert } = compute.tls();
  return [
    ["CA_FILE", authorities],
    ["COMPUTE_CA_FILE", ca],
    ["COMPUTE_CLIENT_CERT_FILE", cert],
    ["REDIS_CERT_FILE", redisCertificate?.cert],
  ] as const;
}

/**
 * When the first certificate of a file (PEM) ends (ms). Of those with one subject the last one
 * counts, because a renewed authority stands beside the former one for a while.
 */
function firstEnd(pem = ""): number | undefined {
  const all = certificatesIn(pem).filter((certificate) => certificate !== undefined);
  const ends = [...Map.groupBy(all, ({ subject }) => subject).values()].map((same) =>
    Math.max(...same.map(({ validTo }) => Date.parse(validTo))),
  );
  return ends.length === 0 ? undefined : Math.min(...ends);
}

/** The age of the oldest time in seconds. 0 without one. */
const secondsSince = (times: readonly number[], now: number) =>
  Math.max(0, ...times.map((at) => now - at)) / 1000;
