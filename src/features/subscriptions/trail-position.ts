import type { Keys, RedisClient } from "../../redis/redis.ts";

export type TrailPosition = ReturnType<typeof createTrailPosition>;

/**
 * Stores up to which record of the audit trail subscribed channels were told, for all processes.
 * One that moves it back makes only lines be brought again, which feeds leave out.
 */
export function createTrailPosition(redis: RedisClient, key: Keys) {
  const named = key("subscriptions-told");
  return {
    async read(): Promise<string | undefined> {
      return (await redis.get(named)) ?? undefined;
    },
    /** Begins at a record, unless it has begun already. */
    begin: (id: string) => redis.set(named, id, "NX"),
    move: (id: string) => redis.set(named, id),
  };
}
