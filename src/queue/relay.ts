import type { Log } from "../log/log.ts";
import { createBringForward } from "../redis/expiries.ts";
import { createDueAfterSetBack, createOverdue } from "../redis/pending.ts";
import type { Keys, RedisClient } from "../redis/redis.ts";
import { repeatHere } from "../redis/repeat.ts";
import type { Queues } from "./queues.ts";

/** The most overdue members that one round handles. */
const mostOverdue = 1_000;

/**
 * Adds a job for whatever is overdue on the pending list, because its process died before it could
 * add one, or because the job was lost. It runs in every process, for all queues. After Redis's
 * clock was set back, everything on the list counts as overdue, and keys expire when they should have.
 */
export function startRelay(options: {
  redis: RedisClient;
  key: Keys;
  queues: Pick<Queues, "wake">;
  everyMs: number;
  log: Log;
}) {
  const { redis, key, queues, everyMs, log } = options;
  const overdue = createOverdue(redis, key);
  const dueAfterSetBack = createDueAfterSetBack(redis, key);
  const bringForward = createBringForward(redis, key);
  const relay = async () => {
    const setBackMs = await dueAfterSetBack(everyMs);
    if (setBackMs > 0) {
      log.warn("clock.redis-set-back", { setBackMs });
      await bringForward(setBackMs);
    }
    for (const { kind, id } of await overdue(mostOverdue, everyMs)) await queues.wake(kind, id);
  };
  return repeatHere("relay", everyMs, relay, log);
}
