import { redisTimeLua, defineScript, type RedisClient } from "./redis.ts";

/** KEYS ...lists   ARGV most, visibility timeout (ms), for each list → when the next is due (ms, '' for none), then ids of each */
const take = `${redisTimeLua}
local taken, next = {''}, nil
for n, list in ipairs(KEYS) do
  local most = tonumber(ARGV[2 * n - 1])
  local first = most > 0 and redis.call('ZRANGE', list, 0, 0, 'WITHSCORES') or {}
  local ids = {}
  if first[2] and tonumber(first[2]) <= now then
    ids = redis.call('ZRANGEBYSCORE', list, '-inf', now, 'LIMIT', 0, most)
    for _, id in ipairs(ids) do redis.call('ZADD', list, now + ARGV[2 * n], id) end
    first = redis.call('ZRANGE', list, 0, 0, 'WITHSCORES')
  end
  taken[n + 1] = ids
  if first[2] and (not next or tonumber(first[2]) < next) then next = tonumber(first[2]) end
end
if next then taken[1] = tostring(math.max(0, math.ceil(next - now))) end
return taken
`;

export interface Wanted {
  /** As `createDueList` has it. */
  list: string;
  most: number;
  visibilityTimeoutMs: number;
}

/** Takes what is due from several lists at once, the longest due first, and says when the next of them is due (ms). */
export function createTakeDue(redis: RedisClient) {
  const run = defineScript(redis, "gatehouseTakeDue", take);
  return async (wanted: readonly Wanted[]): Promise<{ ids: string[][]; nextMs?: number }> => {
    const [nextMs, ...ids] = (await run(
      wanted.map(({ list }) => list),
      wanted.flatMap(({ most, visibilityTimeoutMs }) => [most, visibilityTimeoutMs]),
    )) as [string, ...string[][]];
    return { ids, ...(nextMs === "" ? {} : { nextMs: Number(nextMs) }) };
  };
}

/**
 * KEYS list, hash   ARGV id, revision, when it is due else (ms), ...fields and values to keep when done
 * → 1 when done, 0 when the hash has another revision
 */
const done = `${redisTimeLua}
local revision = redis.call('HGET', KEYS[2], 'revision')
if not revision or revision == ARGV[2] then
  redis.call('ZREM', KEYS[1], ARGV[1])
  for i = 4, revision and #ARGV or 0, 2 do redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 1]) end
  return 1
end
redis.call('ZADD', KEYS[1], now + ARGV[3], ARGV[1])
return 0
`;

/** KEYS list   ARGV id, due in (ms) */
const later = `${redisTimeLua}
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
return 1
`;

/**
 * IDs in a sorted set, each with its due time by Redis's clock: a process's own may be hours off. A taken ID is invisible to
 * others until the visibility timeout; if its process dies, it becomes due again. At-least-once: processing must be
 * idempotent.
 */
export function createDueList(redis: RedisClient, list: string) {
  const takeDue = createTakeDue(redis);
  const runDone = defineScript(redis, "gatehouseDueDone", done);
  const runLater = defineScript(redis, "gatehouseDueLater", later);
  return {
    list,
    /** The longest due first. */
    async take(most: number, visibilityTimeoutMs: number): Promise<string[]> {
      const { ids } = await takeDue([{ list, most, visibilityTimeoutMs }]);
      return ids[0] ?? [];
    },
    async later(id: string, inMs: number): Promise<void> {
      await runLater([list], [id, Math.ceil(inMs)]);
    },
    /**
     * Removes it; when its hash changed since this revision, it is due in so many milliseconds instead: false. No revision: always
     * done.
     */
    doneIfUnchanged: async (
      id: string,
      hash: string,
      revision: number,
      elseInMs = 0,
      kept: Readonly<Record<string, string>> = {},
    ): Promise<boolean> => {
      const fields = Object.entries(kept).flat();
      return (await runDone([list, hash], [id, revision, elseInMs, ...fields])) === 1;
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
  };
}

/** Compare-and-set. KEYS hash   ARGV field, expected value ('' for none), new value, with the time behind it (0|1) → now, or 0 */
const mark = `${redisTimeLua}
if (redis.call('HGET', KEYS[1], ARGV[1]) or '') ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[4] == '1' and ARGV[3] .. ' ' .. string.format('%d', now) or ARGV[3])
return now
`;

/**
 * Messages owed to Slack: a due list of IDs, and for each ID a hash that also says what Slack shows of it. Every script
 * that changes a hash puts its ID on the list.
 */
export type Outbox = ReturnType<typeof createOutbox>;

export function createOutbox(redis: RedisClient, list: string, hashOf: (id: string) => string) {
  const due = createDueList(redis, list);
  const runMark = defineScript(redis, "gatehouseMark", mark);
  const listeners = new Set<(id?: string) => void>();
  return {
    ...due,
    hashOf,
    /** This process has put something on the list. */
    ring: (id?: string) => listeners.forEach((hear) => hear(id)),
    onRing: (hear: (id?: string) => void) => void listeners.add(hear),
    done: (id: string, revision: number, elseInMs?: number, kept?: Record<string, string>) =>
      due.doneIfUnchanged(id, hashOf(id), revision, elseInMs, kept),
    /** Compare-and-set of one field ("" for none). */
    mark: async (id: string, field: string, before: string, value: string): Promise<boolean> =>
      Number(await runMark([hashOf(id)], [field, before, value, 0])) > 0,
    /** The same, to `<doing> <Redis time (ms)>`. That time, or undefined when it wasn't set. */
    async begin(
      id: string,
      { field, before, doing }: { field: string; before: string; doing: string },
    ): Promise<number | undefined> {
      return Number(await runMark([hashOf(id)], [field, before, doing, 1])) || undefined;
    },
    async remember(id: string, fields: Record<string, string>): Promise<void> {
      await redis.hset(hashOf(id), fields);
    },
  };
}
