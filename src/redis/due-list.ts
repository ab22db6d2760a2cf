import { defineScript, type Fields, fromPairs, type RedisClient, redisTimeLua } from "./redis.ts";

/**
 * KEYS ...lists   ARGV for each list: most, visibility timeout (ms), key prefix of the hashes that come along ('' for none)
 * → when the next is due (ms, '' for none), then of each list its IDs, each followed by its hash
 */
const take = `${redisTimeLua}
local taken, next = {''}, nil
for n, list in ipairs(KEYS) do
  local most, prefix = tonumber(ARGV[3 * n - 2]), ARGV[3 * n]
  local first = most > 0 and redis.call('ZRANGE', list, 0, 0, 'WITHSCORES') or {}
  local found = {}
  if first[2] and tonumber(first[2]) <= now then
    for _, id in ipairs(redis.call('ZRANGEBYSCORE', list, '-inf', now, 'LIMIT', 0, most)) do
      redis.call('ZADD', list, now + ARGV[3 * n - 1], id)
      found[#found + 1] = id
      found[#found + 1] = prefix ~= '' and redis.call('HGETALL', prefix .. id) or {}
    end
    first = redis.call('ZRANGE', list, 0, 0, 'WITHSCORES')
  end
  taken[n + 1] = found
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
  /** Key prefix of the hashes that come along. */
  hashes?: string | undefined;
}

interface Taken {
  id: string;
  /** Its hash, empty when it is gone; undefined where none comes along. */
  fields: Fields | undefined;
}

/** Takes what is due from several lists at once, the longest due first, and says when the next of them is due (ms). */
export function createTakeDue(redis: RedisClient) {
  const run = defineScript(redis, "gatehouseTakeDue", take);
  return async (wanted: readonly Wanted[]): Promise<{ taken: Taken[][]; nextMs?: number }> => {
    const [nextMs, ...lists] = (await run(
      wanted.map(({ list }) => list),
      wanted.flatMap(({ most, visibilityTimeoutMs, hashes = "" }) => [
        most,
        visibilityTimeoutMs,
        hashes,
      ]),
    )) as [string, ...(string | string[])[][]];
    const taken = lists.map((found, n) => pairsOf(found, wanted[n]?.hashes !== undefined));
    return { taken, ...(nextMs === "" ? {} : { nextMs: Number(nextMs) }) };
  };
}

function pairsOf(found: readonly (string | string[])[], isAlong: boolean): Taken[] {
  const taken: Taken[] = [];
  for (let at = 0; at < found.length; at += 2)
    taken.push({
      id: String(found[at]),
      fields: isAlong ? fromPairs(found[at + 1] as string[]) : undefined,
    });
  return taken;
}

/** KEYS list[, hash]   ARGV id, due in (ms), ...fields and values to set */
const later = `${redisTimeLua}
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
if #ARGV > 2 then redis.call('HSET', KEYS[2], unpack(ARGV, 3)) end
return 1
`;

/**
 * IDs in a sorted set, each with its due time by Redis's clock: a process's own may be hours off. A taken ID is invisible to
 * others until the visibility timeout; if its process dies, it becomes due again. At-least-once: processing must be
 * idempotent.
 */
export function createDueList(redis: RedisClient, list: string) {
  const takeDue = createTakeDue(redis);
  const runLater = defineScript(redis, "gatehouseDueLater", later);
  return {
    list,
    /** The longest due first. */
    async take(most: number, visibilityTimeoutMs: number): Promise<string[]> {
      const { taken } = await takeDue([{ list, most, visibilityTimeoutMs }]);
      return (taken[0] ?? []).map(({ id }) => id);
    },
    async later(id: string, inMs: number): Promise<void> {
      await runLater([list], [id, Math.ceil(inMs)]);
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

/**
 * What Slack has by now is set, and then it is done: unless its hash has another revision, or something is to be done first.
 *
 * KEYS list, hash[, what there is something to do for]
 * ARGV id, revision ('' when it isn't done yet), when it is due else (ms), how many fields and values are set in any case, those,
 *      then fields and values to set when it is done
 * → 1 when it is done, 0 when something is to be done first, otherwise the hash
 */
const done = `${redisTimeLua}
local kept = 5 + ARGV[4]
if kept > 5 then redis.call('HSET', KEYS[2], unpack(ARGV, 5, kept - 1)) end
local revision = redis.call('HGET', KEYS[2], 'revision')
if ARGV[2] == '' or (revision and revision ~= ARGV[2]) then
  redis.call('ZADD', KEYS[1], now + ARGV[3], ARGV[1])
  return redis.call('HGETALL', KEYS[2])
end
if KEYS[3] and redis.call('EXISTS', KEYS[3]) == 1 then return 0 end
redis.call('ZREM', KEYS[1], ARGV[1])
if revision and kept <= #ARGV then redis.call('HSET', KEYS[2], unpack(ARGV, kept)) end
return 1
`;

/**
 * Compare-and-set.
 *
 * KEYS hash   ARGV field, expected value ('' for none), new value, with the time behind it (0|1), then fields and values to set in any case
 * → now, or 0
 */
const mark = `${redisTimeLua}
if #ARGV > 4 then redis.call('HSET', KEYS[1], unpack(ARGV, 5)) end
if (redis.call('HGET', KEYS[1], ARGV[1]) or '') ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[4] == '1' and ARGV[3] .. ' ' .. string.format('%d', now) or ARGV[3])
return now
`;

/**
 * Messages owed to Slack: a due list of IDs, and for each ID a hash that also says what Slack shows of it. Every script
 * that changes a hash puts its ID on the list.
 */
export type Outbox = ReturnType<typeof createOutbox>;

/** What is marked before a call: a field that must still be as it was read ("" for none). */
export interface Beginning {
  field: string;
  before: string;
  /** It becomes `<doing> <Redis time (ms)>`. */
  doing: string;
  /** Fields that are set in any case. */
  also?: Fields;
}

/** How it is done. */
export interface Ending {
  /** As it was read; undefined when it isn't done yet. */
  revision: number | undefined;
  /** When it is due where it isn't done (ms). */
  elseInMs: number;
  /** Fields that are set in any case. */
  said?: Fields;
  /** Fields that are set when it is done. */
  kept?: Fields | undefined;
  /** Where this key exists, something is to be done first. */
  unless?: string | undefined;
}

/** A hash that changed meanwhile comes along. */
export type Ended = { is: "done" } | { is: "owed" } | { is: "changed"; fields: Fields };

export function createOutbox(redis: RedisClient, list: string, hashOf: (id: string) => string) {
  const due = createDueList(redis, list);
  const runLater = defineScript(redis, "gatehouseDueLater", later);
  const runDone = defineScript(redis, "gatehouseDueDone", done);
  const runMark = defineScript(redis, "gatehouseMark", mark);
  const listeners = new Set<(id?: string) => void>();
  return {
    ...due,
    hashOf,
    /** What its hashes' keys begin with; undefined where they may be too long to come along. */
    hashes: hashOf("") as string | undefined,
    get: (id: string): Promise<Fields> => redis.hgetall(hashOf(id)),
    /** This process has put something on the list. */
    ring: (id?: string) => listeners.forEach((hear) => hear(id)),
    onRing: (hear: (id?: string) => void) => void listeners.add(hear),
    async later(id: string, inMs: number, said: Fields = {}): Promise<void> {
      await runLater([list, hashOf(id)], [id, Math.ceil(inMs), ...Object.entries(said).flat()]);
    },
    async done(
      id: string,
      { revision, elseInMs, said = {}, kept = {}, unless }: Ending,
    ): Promise<Ended> {
      const always = Object.entries(said).flat();
      const answer = await runDone(
        [list, hashOf(id), ...(unless === undefined ? [] : [unless])],
        [id, revision ?? "", elseInMs, always.length, ...always, ...Object.entries(kept).flat()],
      );
      if (Array.isArray(answer)) return { is: "changed", fields: fromPairs(answer as string[]) };
      return { is: answer === 1 ? "done" : "owed" };
    },
    /** Compare-and-set of one field ("" for none). */
    mark: async (id: string, field: string, before: string, value: string): Promise<boolean> =>
      Number(await runMark([hashOf(id)], [field, before, value, 0])) > 0,
    /** The same, to `<doing> <Redis time (ms)>`. That time, or undefined when it wasn't set. */
    async begin(
      id: string,
      { field, before, doing, also = {} }: Beginning,
    ): Promise<number | undefined> {
      const args = [field, before, doing, 1, ...Object.entries(also).flat()];
      return Number(await runMark([hashOf(id)], args)) || undefined;
    },
    async remember(id: string, fields: Record<string, string>): Promise<void> {
      await redis.hset(hashOf(id), fields);
    },
  };
}
