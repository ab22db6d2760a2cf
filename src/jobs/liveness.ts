import type { Log } from "../log/log.ts";
import type { Keys, RedisClient } from "../redis/redis.ts";

/** After this many missed beats, a worker counts as gone. */
const missedBeats = 3;

/** Publishes this process's heartbeat. Without one, its sends are reconciled. */
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
    beat().catch((error: unknown) => log.warn("heart.missed", { error }));
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

/** How many workers have a heartbeat. Those that died are forgotten with it. */
export async function countWorkers(redis: RedisClient, key: Keys): Promise<number> {
  const ids = await redis.smembers(key("workers"));
  const beats = await Promise.all(ids.map((id) => redis.exists(key("worker", id))));
  const dead = ids.filter((_, index) => beats[index] === 0);
  if (dead.length > 0) await redis.srem(key("workers"), ...dead);
  return ids.length - dead.length;
}

/** Others take this one's probes so often only when it is stuck: each of n workers sends one a round, so by chance it is e^-15. */
const maxSilentRounds = 15;

/**
 * Liveness probe for the queue: a process out of whose queue nothing comes is stuck and must restart (workers may stop
 * silently after an outage: taskforcesh/bullmq#3185). Workers share the queue, so another one may take this one's probe: then
 * the queue moves, and only a long silence tells that this process takes no part.
 */
export function startQueueProbe(options: {
  workerId: string;
  everyMs: number;
  /** Resolves with whether the last probe still waits, taken by no one. */
  send(workerId: string): Promise<boolean>;
  onDead(why: string): void;
}) {
  const { everyMs } = options;
  let isHeard = true;
  let silentRounds = 0;

  async function round(): Promise<void> {
    const wasHeard = isHeard;
    // Before the send: the job may come out before it returns
    isHeard = false;
    let isStuck: boolean;
    try {
      isStuck = await options.send(options.workerId);
    } catch {
      // Redis is unavailable: no reason to restart
      isHeard = true;
      return;
    }
    silentRounds = wasHeard ? 0 : silentRounds + 1;
    if (silentRounds === 0 || isHeard) return;
    const silentFor = `for ${Math.round((silentRounds * everyMs) / 1000)} s`;
    if (isStuck) options.onDead(`nothing came out of the queue ${silentFor}`);
    else if (silentRounds >= maxSilentRounds)
      options.onDead(`nothing came out of the queue here ${silentFor}, only elsewhere`);
  }
  const timer = setInterval(() => void round(), everyMs);

  return {
    /** This process took a job. */
    heard(): void {
      isHeard = true;
    },
    close: async () => clearInterval(timer),
  };
}

/** After this many samples' worth of silence, what was seen says nothing of now. */
const staleBeats = 10;
/** A live worker renews its heartbeat within one beat. */
const missingBeats = 2;

/**
 * Whether a worker lives, judged by this process's own monotonic clock: a heartbeat expires by Redis' clock, which a step
 * ahead makes expire for every worker at once. One that stays missing for longer than it takes to renew it is gone.
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
