import type { Keys, RedisClient } from "../redis/redis.ts";

/**
 * How long a delivery is remembered. It may be dated up to 300 s ahead, and redelivered until 300 s
 * after that.
 */
const seenForMs = 11 * 60_000;

export type SeenMarks = ReturnType<typeof createSeenMarks>;

/**
 * Marks which copies of deliveries were seen: a key for each, which is `stored`, `left` once the
 * gateway leaves the interaction to another, or `handled`. Its expiry, which each heartbeat renews,
 * tells by Redis's clock whether the gateway lives.
 */
export function createSeenMarks(redis: RedisClient, key: Keys) {
  const seenKey = (id: string) => key("seen", id);
  return {
    /** Marks a delivery as stored, unless it is marked. Resolves with the mark before. */
    markStored: (id: string): Promise<string | null> =>
      redis.set(seenKey(id), "stored", "PX", seenForMs, "NX", "GET"),
    markHandled: (id: string) => redis.set(seenKey(id), "handled", "PX", seenForMs),
    /** Lets another gateway handle this one at once, unless one has done so. */
    async markLeft(id: string): Promise<void> {
      const seen = seenKey(id);
      if ((await redis.get(seen)) === "stored")
        await redis.set(seen, "left", "PX", seenForMs, "XX");
    },
    markOf: (id: string): Promise<string | null> => redis.get(seenKey(id)),
    /** Says that the gateway of this interaction lives. */
    renew: (id: string) => redis.pexpire(seenKey(id), seenForMs),
    /** How long ago the gateway of an interaction said that it lives (ms). */
    sinceRenewedMs: async (id: string): Promise<number> =>
      seenForMs - (await redis.pttl(seenKey(id))),
    /** Lets the same delivery come again. */
    remove: (id: string) => redis.del(seenKey(id)),
  };
}
