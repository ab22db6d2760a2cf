import type { Keys, RedisClient } from "../redis.ts";
import { createRateLimit } from "./rate-limit.ts";
import { redisNow } from "./redis-now.ts";

export interface Freeze {
  /** User id, when a person froze. */
  id?: string;
  /** A name for people to read; "Gatehouse" when it froze by itself. */
  by: string;
  reason: string;
  at: number;
}

/** What stops people: the freeze, the service's wish to be left alone for a while, and asking too much. */
export function createSwitches(redis: RedisClient, key: Keys) {
  async function note(entry: Record<string, unknown>): Promise<void> {
    const at = String(await redisNow(redis));
    await redis.xadd(key("audit"), "*", "at", at, "record", JSON.stringify(entry));
  }

  return {
    ...createRateLimit(redis, key),

    /** An audit record of something that is no move: a refusal, a freeze, a look at the audit itself. */
    note,

    async freezeState(): Promise<Freeze | undefined> {
      const text = await redis.get(key("freeze"));
      return text ? (JSON.parse(text) as Freeze) : undefined;
    },

    /** From the next claim on, nothing is sent. The first freeze stands; its reason is not overwritten. */
    async freeze(freeze: Omit<Freeze, "at">): Promise<boolean> {
      const at = await redisNow(redis);
      const set = await redis.set(key("freeze"), JSON.stringify({ ...freeze, at }), "NX");
      if (set === null) return false;
      await note({ what: "freeze", who: freeze.id ?? freeze.by, why: freeze.reason });
      return true;
    },

    async thaw(by: string): Promise<boolean> {
      if ((await redis.del(key("freeze"))) === 0) return false;
      const [missing, looked] = [key("sends", "missing"), key("sends", "looked-at")];
      await redis.sunionstore(looked, looked, missing);
      await redis.del(missing);
      await note({ what: "thaw", who: by });
      return true;
    },

    /** Sends that stand in a ledger but not in the journal: whoever thaws has looked at them. */
    async noteMissingSends(ids: readonly string[]): Promise<void> {
      if (ids.length > 0) await redis.sadd(key("sends", "missing"), ...ids);
    },
    /** How often each was claimed, whatever version wrote it. What isn't there is left out. */
    async attemptsOf(ids: readonly string[]): Promise<ReadonlyMap<string, number>> {
      const pipeline = redis.pipeline();
      for (const id of ids) pipeline.hget(key("request", id), "attempt");
      const answers = (await pipeline.exec()) ?? [];
      const found = new Map<string, number>();
      for (const [at, [error, attempt]] of answers.entries()) {
        // What could not be read is not what isn't there
        if (error) throw error;
        if (typeof attempt === "string") found.set(ids[at] ?? "", Number(attempt));
      }
      return found;
    },
    async lookedAt(ids: readonly string[]): Promise<Set<string>> {
      if (ids.length === 0) return new Set();
      const found = await redis.smismember(key("sends", "looked-at"), ...ids);
      return new Set(ids.filter((_, index) => found[index] === 1));
    },

    /** True for the first who asks, whichever process: what may happen once in this time. */
    async useOnce(name: string, forMs: number): Promise<boolean> {
      return (await redis.set(key("used", name), "1", "PX", forMs, "NX")) !== null;
    },

    async throttle(forMs: number): Promise<void> {
      await redis.set(key("throttled"), "1", "PX", Math.max(1, Math.ceil(forMs)));
    },
    async throttledMs(): Promise<number> {
      return Math.max(0, await redis.pttl(key("throttled")));
    },
  };
}
