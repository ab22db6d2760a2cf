import {
  defineMark,
  defineScript,
  type Fields,
  fieldsNamed,
  type RedisClient,
  redisNow,
  redisTimeLua,
} from "./redis.ts";

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

  /** The longest due first, and when the next one is due (ms). */
  async function takeDue(
    most: number,
    visibilityTimeoutMs: number,
  ): Promise<{ ids: string[]; nextMs?: number }> {
    const [nextMs = "", ...ids] = (await runTake([list], [most, visibilityTimeoutMs])) as string[];
    return { ids, ...(nextMs === "" ? {} : { nextMs: Number(nextMs) }) };
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

/**
 * Nothing more is owed as of a revision.
 *
 * KEYS list, hash   ARGV id, revision, when it is due else (ms) → 1, or 0 when its hash has another revision by now
 */
const done = `${redisTimeLua}
local revision = redis.call('HGET', KEYS[2], 'revision')
if revision and revision ~= ARGV[2] then
  redis.call('ZADD', KEYS[1], now + ARGV[3], ARGV[1])
  return 0
end
redis.call('ZREM', KEYS[1], ARGV[1])
return 1
`;

/** `<channel> <ts>`, as `createPostOnce` keeps it. */
export function placeIn(field = ""): { channelId: string; ts: string } | undefined {
  const [channelId, ts] = field.split(" ");
  return channelId && ts ? { channelId, ts } : undefined;
}

/** What Slack shows, as a hash says: the marks of its messages by their keys, and where its card is. */
export function shownIn(fields: Fields) {
  const card = placeIn(fields["card"]);
  return { said: Object.fromEntries(fieldsNamed("said:", fields)), ...(card ? { card } : {}) };
}

/**
 * Messages owed to Slack: a due list of IDs, and for each ID a hash that also says what Slack shows of it. Every script
 * that changes a hash puts its ID on the list.
 */
export type Outbox = ReturnType<typeof createOutbox>;

export function createOutbox(redis: RedisClient, list: string, hashOf: (id: string) => string) {
  const due = createDueList(redis, list);
  const runDone = defineScript(redis, "gatehouseDueDone", done);
  const runMark = defineMark(redis);
  return {
    ...due,
    hashOf,
    get: (id: string): Promise<Fields> => redis.hgetall(hashOf(id)),
    /** False when its hash has another revision by now: then it is still on the list. */
    done: async (id: string, revision: number, elseInMs: number): Promise<boolean> =>
      (await runDone([list, hashOf(id)], [id, revision, elseInMs])) === 1,
    /** Compare-and-set of one field ("" for none). */
    mark: async (id: string, field: string, before: string, value: string): Promise<boolean> =>
      (await runMark([hashOf(id)], [field, before, value])) === 1,
    async remember(id: string, fields: Record<string, string>): Promise<void> {
      await redis.hset(hashOf(id), fields);
    },
  };
}
