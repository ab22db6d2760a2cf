import { type RedisClient, defineScript, redisNow, redisTimeLua } from "./redis.ts";

/** KEYS list   ARGV most, visibility timeout (ms) → when the next is due (ms, '' for none), then what was due */
const take = `${redisTimeLua}
local taken = {''}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, ARGV[1])) do
  redis.call('ZADD', KEYS[1], now + ARGV[2], id)
  taken[#taken + 1] = id
end
local first = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
if first[2] then taken[1] = tostring(math.max(0, math.ceil(first[2] - now))) end
return taken
`;

export type DueList = ReturnType<typeof createDueList>;

/**
 * IDs in a sorted set, each with its due time by Redis's clock: a process's own may be hours off. A taken ID is invisible to
 * others until the visibility timeout; if its process dies, it becomes due again. At-least-once: processing must be
 * idempotent.
 */
export function createDueList(redis: RedisClient, list: string) {
  const runTake = defineScript(redis, "gatehouseTakeDue", take);
  const listeners = new Set<(id?: string) => void>();

  /** The longest due first, and when the next one is due (ms; Infinity: none). */
  async function takeDue(most: number, visibilityTimeoutMs: number) {
    const [nextMs, ...ids] = (await runTake([list], [most, visibilityTimeoutMs])) as string[];
    return { ids, nextMs: nextMs ? Number(nextMs) : Infinity };
  }

  return {
    list,
    takeDue,
    take: async (most: number, visibilityTimeoutMs: number): Promise<string[]> =>
      (await takeDue(most, visibilityTimeoutMs)).ids,
    async later(id: string, inMs: number): Promise<void> {
      await redis.zadd(list, Math.ceil((await redisNow(redis)) + inMs), id);
    },
    /** It is due now, unless it is on the list. */
    async expect(id: string): Promise<void> {
      await redis.zadd(list, "NX", String(await redisNow(redis)), id);
    },
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
    /** This process has put something on the list. */
    ring: (id?: string) => listeners.forEach((hear) => hear(id)),
    onRing: (hear: (id?: string) => void) => void listeners.add(hear),
  };
}
