import { isOlderPolicy } from "../../audit/policies.ts";
import { type Keys, type RedisClient, redisNow } from "../../redis/redis.ts";

export interface Freeze {
  /** User ID of a person. */
  id?: string;
  /** The person's name, or "Gatehouse". */
  by: string;
  reason: string;
  at: number;
}

/** Freeze and throttling. */
export function createSwitches(redis: RedisClient, key: Keys) {
  async function note(entry: Record<string, unknown>): Promise<void> {
    const at = String(await redisNow(redis));
    await redis.xadd(key("audit"), "*", "at", at, "record", JSON.stringify(entry));
  }

  return {
    /** Adds an audit record of something that is no move: a refusal, a freeze, a read of the audit itself. */
    note,

    async freezeState(): Promise<Freeze | undefined> {
      const text = await redis.get(key("freeze"));
      return text ? (JSON.parse(text) as Freeze) : undefined;
    },

    /** From the next claim on, nothing is sent. False when frozen already: the first freeze keeps its reason. */
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

    /** Sends that are in a ledger but not in the journal; a thaw marks them as checked. */
    async noteMissingSends(ids: readonly string[]): Promise<void> {
      if (ids.length > 0) await redis.sadd(key("sends", "missing"), ...ids);
    },
    /** What the journal knows of these sends, whichever version wrote it; undefined for a missing request. */
    async claimsOf(
      sends: readonly { request: string; attempt: number }[],
    ): Promise<({ attempts: number; nonce: string | undefined } | undefined)[]> {
      const pipeline = redis.pipeline();
      for (const { request, attempt } of sends)
        pipeline.hmget(key("request", request), "attempt", `claim:${attempt}`);
      return ((await pipeline.exec()) ?? []).map(([error, fields]) => {
        // A failed read is not a missing request
        if (error) throw error;
        const [attempts, nonce] = fields as [string | null, string | null];
        return attempts === null
          ? undefined
          : { attempts: Number(attempts), nonce: nonce ?? undefined };
      });
    },
    async lookedAt(ids: readonly string[]): Promise<Set<string>> {
      if (ids.length === 0) return new Set();
      const found = await redis.smismember(key("sends", "looked-at"), ...ids);
      return new Set(ids.filter((_, index) => found[index] === 1));
    },

    /** Whether this policy was superseded by ours. */
    isOlderPolicy: (version: string, ours: string): Promise<boolean> =>
      isOlderPolicy(redis, key, version, ours),

    /** True once in this time, across all processes. */
    async useOnce(name: string, forMs: number): Promise<boolean> {
      return (await redis.set(key("used", name), "1", "PX", forMs, "NX")) !== null;
    },

    async throttle(forMs: number): Promise<void> {
      await redis.set(key("throttled"), "1", "PX", Math.max(1, Math.ceil(forMs)));
    },
  };
}
