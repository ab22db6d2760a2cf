import { deadlineMs, within } from "../../deadline.ts";
import { messageOf } from "../../errors.ts";
import type { Log } from "../../log/log.ts";
import { type Storage, checkRedis, storageOf } from "../../redis/check.ts";
import type { Keys, RedisClient } from "../../redis/redis.ts";
import { createBatches } from "./ledger.ts";
import type { StoredRequest } from "./stored-request.ts";
import { defineHolds } from "./scripts.ts";

/** How long an answer about Redis's storage is believed (ms). Its replicas come and go. */
const storageMs = 5_000;
/**
 * How long it is believed where each claim says how many replicas there are (ms): everything else
 * changes only when somebody sets it, and what would lose a claim is asked each time.
 */
const settingsMs = 60_000;

interface Claim {
  claimed: StoredRequest;
  replicas: number | undefined;
}

/**
 * Makes claims durable before their call leaves, so that a failover forgets none: on the disk of
 * Redis's machine where Redis can tell, and on a replica where there are any. No claim is durable in
 * a Redis that somebody has set to evict, or to keep nothing, since the start. A claim that is known
 * to be durable costs one question; otherwise one write and one wait serve all claims that arrived
 * during the last one.
 */
export function createDurability(options: {
  /** A connection of its own, because WAIT blocks everything that follows on a connection. */
  redis: RedisClient;
  key: Keys;
  /** How many replicas must have a claim. Undefined for one, while any is connected. */
  replicas: number | undefined;
  /** Whether GATEHOUSE_ALLOW_VOLATILE_REDIS accepts a Redis that may lose data. */
  allowVolatile: boolean;
  /** How long one wait may take (ms). */
  waitMs: number;
  log: Log;
}) {
  const { redis, key, allowVolatile, waitMs, log } = options;
  const fence = key("fence");
  const runHolds = defineHolds(redis);
  let storage: { read: Promise<Storage>; at: number } | undefined;

  // After a reconnection this may be another server.
  redis.on("ready", () => (storage = undefined));

  /**
   * Says how many replicas must have the claims, and whether the disk of Redis's own machine must
   * have them.
   */
  async function needs(claims: readonly Claim[]) {
    const seen = claims.map(({ replicas }) => replicas);
    const countsMs = seen.includes(undefined) ? storageMs : settingsMs;
    if (storage === undefined || performance.now() > storage.at + countsMs) {
      storage = { read: storageOf(redis), at: performance.now() };
      storage.read.catch(() => (storage = undefined));
    }
    const { appendOnly, fsync, replicas = 0, waitAof } = await storage.read;
    const most = Math.max(...seen.map((count) => count ?? replicas));
    return {
      replicas: options.replicas ?? Math.min(1, most),
      disk: appendOnly !== false && fsync !== "always" && waitAof === true,
    };
  }

  /**
   * Resolves with undefined for each claim that is durable, and otherwise with the reason why that
   * isn't known.
   */
  async function waitFor(claims: readonly Claim[]): Promise<(string | undefined)[]> {
    const [{ replicas, disk }, kept] = await Promise.all([
      needs(claims),
      checkRedis(redis, { allowVolatile }),
    ]);
    if (kept.kind === "volatile" && !kept.allowed)
      return claims.map(() => `${kept.why}; nothing was sent`);
    if (replicas === 0 && !disk) return claims.map(() => undefined);
    // WAIT counts only writes of its own connection. After a write of this one, it covers
    // everything that any connection wrote before.
    const [, held, replicated, stored] = await Promise.all([
      redis.set(fence, ""),
      Promise.all(
        claims.map(({ claimed }) =>
          runHolds([key("request", claimed.record.id)], [claimed.attempt, claimed.nonce ?? ""]),
        ),
      ),
      replicas > 0 ? numberIn(redis.wait(replicas, waitMs)) : 0,
      disk ? numberIn(redis.call("WAITAOF", 1, 0, waitMs)) : 1,
    ]);
    const why = [
      replicated < replicas &&
        `fewer than ${replicas} ${replicas === 1 ? "replica" : "replicas"} of Redis had the claim in time; nothing was sent`,
      stored < 1 && "the disk of Redis had not stored the claim in time; nothing was sent",
    ].find((problem) => problem !== false);
    return held.map((answer) =>
      (answer as number[])[1] === 1 ? why : "Redis lost the claim; nothing was sent",
    );
  }

  const waits = createBatches((claims: readonly Claim[]) =>
    waitFor(claims).catch((error: unknown) => {
      log.warn("claim.not-durable", { why: messageOf(error) });
      storage = undefined;
      return claims.map(() => slow);
    }),
  );

  return {
    /**
     * Resolves with undefined once the claim is durable; otherwise with the reason why that isn't
     * known, in words. `replicas` is the number that the claim's own move saw.
     */
    keep: (claimed: StoredRequest, replicas?: number): Promise<string | undefined> =>
      // Its wait may have to begin only after the one before.
      within(deadlineMs(2 * waitMs), waits.add({ claimed, replicas }), () => slow),
  };
}

/** The first number of an answer. 0 when Redis refuses the question or answers something else. */
const numberIn = (asked: Promise<unknown>): Promise<number> =>
  asked.then(
    (answer) => Number([answer].flat()[0]) || 0,
    () => 0,
  );

const slow = "Redis was too slow to confirm that it keeps the claim; nothing was sent";
