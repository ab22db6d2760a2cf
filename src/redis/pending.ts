import { type RedisClient, defineScript, redisNow, redisTimeLua } from "./redis.ts";

/** KEYS list   ARGV id → {'gone'}, {'later', in (ms)}, or {'taken', its new score} */
const takeScript = `${redisTimeLua}
local due = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not due then return {'gone'} end
if tonumber(due) > now then return {'later', tostring(math.ceil(due - now))} end
-- Half a millisecond marks it: nobody else writes such a score
local taken = string.format('%.1f', now + 0.5)
redis.call('ZADD', KEYS[1], taken, ARGV[1])
return {'taken', taken}
`;

/** KEYS list   ARGV most, overdue by at least (ms) → the IDs, which are overdue again only after that time */
const overdueScript = `${redisTimeLua}
local ids = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[2], 'LIMIT', 0, ARGV[1])
for _, id in ipairs(ids) do redis.call('ZADD', KEYS[1], now, id) end
return ids
`;

export type Pending = ReturnType<typeof createPending>;

/**
 * IDs that have work to do, each with the time from when on (ms by Redis). The script that changes a record puts its ID here in
 * the same step, so a process that dies right after it leaves nothing undone; a job of a queue is only the wake-up.
 */
export function createPending(redis: RedisClient, list: string) {
  const runTake = defineScript(redis, "gatehouseTakePending", takeScript);
  const runOverdue = defineScript(redis, "gatehouseOverdue", overdueScript);
  const listeners = new Set<(id: string) => void>();
  const wake = (id: string): void => listeners.forEach((hear) => hear(id));

  return {
    list,
    /** This process has put it on the list: a job is added. */
    wake,
    onWake: (hear: (id: string) => void) => void listeners.add(hear),

    async later(id: string, inMs: number): Promise<void> {
      await redis.zadd(list, Math.ceil((await redisNow(redis)) + inMs), id);
      wake(id);
    },

    /** It is due now, unless it is on the list. */
    async expect(id: string): Promise<void> {
      await redis.zadd(list, "NX", String(await redisNow(redis)), id);
      wake(id);
    },

    /** Begins its work: with the score that marks it, or how long it waits for its time (ms). Undefined where it is off the list. */
    async take(id: string): Promise<{ mark: string } | { waitMs: number } | undefined> {
      const [is, value = ""] = (await runTake([list], [id])) as [string, string?];
      if (is === "gone") return undefined;
      return is === "later" ? { waitMs: Number(value) } : { mark: value };
    },

    /** When it is due next (ms from now, 0 for now); undefined where it is off the list. */
    async dueInMs(id: string): Promise<number | undefined> {
      const [score, now] = await Promise.all([redis.zscore(list, id), redisNow(redis)]);
      return score === null ? undefined : Math.max(0, Math.ceil(Number(score) - now));
    },

    /** Those whose job is missing: it was never added, or got lost. */
    overdue: async (most: number, byMs: number): Promise<string[]> =>
      (await runOverdue([list], [most, byMs])) as string[],

    async remove(id: string): Promise<void> {
      await redis.zrem(list, id);
    },
    depth: (): Promise<number> => redis.zcard(list),
    /** Those on the list, due or not. */
    async among(ids: readonly string[]): Promise<Set<string>> {
      if (ids.length === 0) return new Set();
      const due = await redis.zmscore(list, ...ids);
      return new Set(ids.filter((_, index) => due[index] !== null));
    },
  };
}
