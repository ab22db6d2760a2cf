import { within } from "../../deadline.ts";
import { messageOf } from "../../errors.ts";
import type { Log } from "../../log/log.ts";
import { type Storage, storageOf } from "../../redis/check.ts";
import type { Keys, RedisClient } from "../../redis/redis.ts";
import type { StoredRequest } from "./record.ts";
import { defineHolds } from "./scripts.ts";

/** How long what was read of Redis' storage counts (ms): its replicas come and go. */
const storageMs = 5_000;
/** The same where each claim says how many there are: the rest is what someone sets. */
const settingsMs = 60_000;

interface Needs {
  /** Replicas that must have it. */
  replicas: number;
  /** Its own disk must have it. */
  disk: boolean;
}

interface Waiting {
  claimed: StoredRequest;
  replicas: number | undefined;
  told(why: string | undefined): void;
}

type Answer = readonly [error: Error | null, result: unknown];

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
  let waiting: Waiting[] = [];
  let running: Promise<void> | undefined;

  // It may be another server now
  redis.on("ready", () => (storage = undefined));

  async function needs(claims: readonly Waiting[]): Promise<Needs> {
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
  async function waitFor(claims: readonly Waiting[]): Promise<(string | undefined)[]> {
    const { replicas, disk } = await needs(claims);
    if (replicas === 0 && !disk) return claims.map(() => undefined);
    // WAIT speaks of what its own connection wrote: with a write of it, of all that was written before, by any connection
    const [, held, isReplicated, isStored] = await Promise.all([
      redis.set(fence, ""),
      Promise.all(
        claims.map(({ claimed }) =>
          runHolds([key("request", claimed.record.id)], [claimed.attempt, claimed.nonce ?? ""]),
        ),
      ),
      replicas > 0 ? answerOf(redis.wait(replicas, waitMs)) : undefined,
      disk ? answerOf(redis.call("WAITAOF", 1, 0, waitMs)) : undefined,
    ]);
    const why =
      (replicas > 0 ? replicasProblem(isReplicated, replicas) : undefined) ??
      (disk ? diskProblem(isStored) : undefined);
    return held.map((found) =>
      (found as number[])[1] === 1 ? why : "Redis lost the claim; nothing was sent",
    );
  }

  async function run(): Promise<void> {
    while (waiting.length > 0) {
      const batch = waiting;
      waiting = [];
      try {
        const why = await waitFor(batch);
        for (const [at, { told }] of batch.entries()) told(why[at]);
      } catch (error) {
        log.warn("claim.not-durable", { why: messageOf(error) });
        for (const { told } of batch) told(slow);
        storage = undefined;
      }
    }
    running = undefined;
  }

  return {
    /** Undefined once it is durable; otherwise why that isn't known, in words. `replicas`: as the claim's own move saw them. */
    async keep(claimed: StoredRequest, replicas?: number): Promise<string | undefined> {
      const { promise, resolve } = Promise.withResolvers<string | undefined>();
      waiting.push({ claimed, replicas, told: resolve });
      running ??= run();
      // Its wait may begin when the last one ends
      return within(2 * waitMs, promise, () => slow);
    },
  };
}

/** A refusal is an answer too. */
const answerOf = (asked: Promise<unknown>): Promise<Answer> =>
  asked.then(
    (result): Answer => [null, result],
    (error: Error): Answer => [error, undefined],
  );

const slow = "Redis was too slow to confirm that it keeps the claim; nothing was sent";

function replicasProblem(answer: Answer | undefined, replicas: number): string | undefined {
  if (answer && answer[0] === null && Number(answer[1]) >= replicas) return undefined;
  return `fewer than ${replicas} ${replicas === 1 ? "replica" : "replicas"} of Redis had the claim in time; nothing was sent`;
}

function diskProblem(answer: Answer | undefined): string | undefined {
  const [error, result] = answer ?? [new Error("no answer"), undefined];
  if (error === null && Array.isArray(result) && Number(result[0]) >= 1) return undefined;
  return "the disk of Redis had not stored the claim in time; nothing was sent";
}
