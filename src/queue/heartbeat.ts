import type { Log } from "../log/log.ts";
import type { Keys, RedisClient } from "../redis/redis.ts";

/** A worker counts as gone after this many missed beats. */
const missedBeats = 3;

/**
 * Publishes this process's heartbeat. When it stops, other workers reconcile what this process
 * sent.
 */
export async function startHeartbeat(options: {
  redis: RedisClient;
  key: Keys;
  workerId: string;
  beatMs: number;
  log: Log;
}) {
  const { redis, key, workerId, beatMs, log } = options;
  const beat = async () => {
    const isSet = redis.set(key("worker", workerId), "1", "PX", beatMs * missedBeats);
    await Promise.all([isSet, redis.sadd(key("workers"), workerId)]);
  };
  await beat();
  const timer = setInterval(() => {
    beat().catch((error: unknown) => log.warn("heartbeat.missed", { error }));
  }, beatMs);

  return {
    isAlive: async (other: string): Promise<boolean> =>
      (await redis.exists(key("worker", other))) === 1,
    async close() {
      clearInterval(timer);
      await redis.del(key("worker", workerId)).catch(() => undefined);
      await redis.srem(key("workers"), workerId).catch(() => undefined);
    },
  };
}

/** Counts the workers that have a heartbeat, and removes those that died from the list. */
export async function countWorkers(redis: RedisClient, key: Keys): Promise<number> {
  const ids = await redis.smembers(key("workers"));
  const beats = await Promise.all(ids.map((id) => redis.exists(key("worker", id))));
  const dead = ids.filter((_, index) => beats[index] === 0);
  if (dead.length > 0) await redis.srem(key("workers"), ...dead);
  return ids.length - dead.length;
}

/**
 * When nobody asked about a worker for this many beats, the last observation says nothing about
 * now.
 */
const staleBeats = 10;
/** A live worker renews its heartbeat within one beat. */
const missingBeats = 2;

/**
 * Judges whether a worker is alive by this process's own monotonic clock. A heartbeat expires by
 * Redis's clock, and when that clock jumps ahead, the heartbeats of all workers expire at once. So
 * a worker counts as gone only when its heartbeat stays missing for longer than a renewal takes.
 */
export function observeAlive(
  hasHeartbeat: (workerId: string) => Promise<boolean>,
  beatMs: number,
  now: () => number = () => performance.now(),
): (workerId: string) => Promise<boolean> {
  const missing = new Map<string, { since: number; last: number }>();
  return async (workerId) => {
    if (await hasHeartbeat(workerId)) {
      missing.delete(workerId);
      return true;
    }
    const at = now();
    const seen = missing.get(workerId);
    const since = seen && at - seen.last < staleBeats * beatMs ? seen.since : at;
    missing.set(workerId, { since, last: at });
    return at - since < missingBeats * beatMs;
  };
}
