import { within } from "../../deadline.ts";
import { messageOf } from "../../errors.ts";
import type { Log } from "../../log/log.ts";
import { type Storage, storageOf } from "../../redis/check.ts";
import type { Keys, RedisClient } from "../../redis/redis.ts";
import { createBatches } from "./ledger.ts";
import type { StoredRequest } from "./stored-request.ts";
import { defineHolds } from "./scripts.ts";

/** How long what was read of Redis' storage counts (ms): its replicas come and go. */
const storageMs = 5_000;
/** The same where each claim says how many there are: the rest is what someone sets. */
const settingsMs = 60_000;

interface Claim {
  claimed: StoredRequest;
  replicas: number | undefined;
}

/**
 * Makes claims durable before their call leaves: on the disk of Redis' machine where Redis can tell, and on a replica where
 * there are any, so that a failover forgets none. What is sure already costs nothing; otherwise one write and one wait serve
 * all claims that arrived during the last one.
 */
export function createDurability(options: {
  /** Its own connection: WAIT blocks all that follows on it. */
  redis: RedisClient;
  key: Keys;
  /** How many replicas must have a claim; undefined: one, while any is connected. */
  replicas: number | undefined;
  /** For one wait. */
  waitMs: number;
  log: Log;
}) {
  const { redis, key, waitMs, log } = options;
  const fence = key("fence");
  const runHolds = defineHolds(redis);
  let storage: { read: Promise<Storage>; at: number } | undefined;

  // It may be another server now
  redis.on("ready", () => (storage = undefined));

  /** How many replicas must have them, and whether the disk of Redis' own machine must. */
  async function needs(claims: readonly Claim[]) {
    const seen = claims.map(({ replicas }) => replicas);
    const countsMs = seen.includes(undefined) ? storageMs : settingsMs;
    if (storage === undefined || performance.now() > storage.at + countsMs) {
      storage = { read: storageOf(redis), at: performance.now() };
      storage.read.catch(() => (storage = undefined));
    }
    const { appendOnly, fsync, replicas = 0, waitAof } = await storage.read;
    const most = Math.max(...seen.map((one) => one ?? replicas));
    return {
      replicas: options.replicas ?? Math.min(1, most),
      disk: appendOnly !== false && fsync !== "always" && waitAof === true,
    };
  }

  /** For each claim undefined, or why not. */
  async function waitFor(claims: readonly Claim[]): Promise<(string | undefined)[]> {
    const { replicas, disk } = await needs(claims);
    if (replicas === 0 && !disk) return claims.map(() => undefined);
    // WAIT speaks of what its own connection wrote: with a write of it, of all that was written before, by any connection
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
    ].find((one) => one !== false);
    return held.map((found) =>
      (found as number[])[1] === 1 ? why : "Redis lost the claim; nothing was sent",
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
    /** Undefined once it is durable; otherwise why that isn't known, in words. `replicas`: as the claim's own move saw them. */
    keep: (claimed: StoredRequest, replicas?: number): Promise<string | undefined> =>
      // Its wait may begin when the last one ends
      within(2 * waitMs, waits.add({ claimed, replicas }), () => slow),
  };
}

/** The first number of an answer. What is refused, or is none, counts as none. */
const numberIn = (asked: Promise<unknown>): Promise<number> =>
  asked.then(
    (answer) => Number([answer].flat()[0]) || 0,
    () => 0,
  );

const slow = "Redis was too slow to confirm that it keeps the claim; nothing was sent";
