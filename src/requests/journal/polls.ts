import { type Keys, defineScript, type RedisClient, redisTimeLua } from "../../redis/redis.ts";
import { fromPairs, parseStored } from "./parse-stored.ts";
import type { StoredRequest } from "./record.ts";

/** In one script: few enough that Redis doesn't stand still. */
const maxReadAtOnce = 100;

/**
 * Takes a key to poll it, and reads what a poll begins with. The worker that took it last keeps it, whoever asks; `always`
 * takes it from that one, because what was just sent must be read at once.
 *
 * KEYS polls, pollers, watched
 * ARGV key, worker, lease (ms), always (0|1), key prefix of requests, most requests to read at once
 * → {now} when it is another's, or {now, ids, then the fields of each, or none when there are more}
 */
const take = `${redisTimeLua}
if ARGV[4] ~= '1' and redis.call('HGET', KEYS[2], ARGV[1]) ~= ARGV[2] then return {now} end
local ids = redis.call('SMEMBERS', KEYS[3])
if #ids == 0 then
  redis.call('ZREM', KEYS[1], ARGV[1])
  redis.call('HDEL', KEYS[2], ARGV[1])
  return {now, ids}
end
redis.call('ZADD', KEYS[1], now + ARGV[3], ARGV[1])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
local found = {now, ids}
if #ids <= tonumber(ARGV[6]) then
  for i, id in ipairs(ids) do found[i + 2] = redis.call('HGETALL', ARGV[5] .. id) end
end
return found
`;

/** KEYS polls, pollers   ARGV worker, lease (ms), most → keys whose lease has run out: they are this worker's now */
const takeOver = `${redisTimeLua}
local keys = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, ARGV[3])
for _, key in ipairs(keys) do
  redis.call('ZADD', KEYS[1], now + ARGV[2], key)
  redis.call('HSET', KEYS[2], key, ARGV[1])
end
return keys
`;

/** KEYS polls, pollers   ARGV worker, for how long from now (ms, '' ends it), ...keys → how many are still this worker's: of those alone */
const keep = `${redisTimeLua}
local kept = 0
for i = 3, #ARGV do
  if redis.call('HGET', KEYS[2], ARGV[i]) == ARGV[1] then
    kept = kept + 1
    if ARGV[2] == '' then
      redis.call('ZREM', KEYS[1], ARGV[i])
      redis.call('HDEL', KEYS[2], ARGV[i])
    else redis.call('ZADD', KEYS[1], 'XX', now + ARGV[2], ARGV[i]) end
  end
end
return kept
`;

/** KEYS polls   ARGV key */
const expect = `${redisTimeLua}
return redis.call('ZADD', KEYS[1], 'NX', now, ARGV[1])
`;

/** KEYS polls → how many are overdue, how many are not, since when the longest overdue is (ms) */
const depth = `${redisTimeLua}
local first = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
local overdue = redis.call('ZCOUNT', KEYS[1], '-inf', now)
return {overdue, redis.call('ZCARD', KEYS[1]) - overdue, first[2] or '0'}
`;

/** A worker's right to poll a key, for a time. */
export interface PollLease {
  worker: string;
  leaseMs: number;
  /** Takes it from another worker. */
  always: boolean;
}

export type Polls = ReturnType<typeof createPolls>;

/**
 * Who polls what. A worker takes a key for a lease and polls it by its own timers; each poll renews the lease, and when it has
 * run out, any other worker takes the key. So two may poll one key for a moment: what a poll finds is compared and set.
 */
export function createPolls(
  redis: RedisClient,
  key: Keys,
  getMany: (ids: readonly string[]) => Promise<StoredRequest[]>,
) {
  const lists = [key("polls"), key("pollers")];
  const runTake = defineScript(redis, "gatehouseTakePoll", take);
  const runTakeOver = defineScript(redis, "gatehouseTakePolls", takeOver);
  const runKeep = defineScript(redis, "gatehouseKeepPolls", keep);
  const runExpect = defineScript(redis, "gatehouseExpectPoll", expect);
  const runDepth = defineScript(redis, "gatehousePollDepth", depth);
  return {
    /** What waits for the polls of a key, and Redis time; undefined when the key is another worker's. */
    async take(
      pollKey: string,
      { worker, leaseMs, always }: PollLease,
    ): Promise<{ now: number; requests: StoredRequest[] } | undefined> {
      const keys = [...lists, key("watch", pollKey)];
      const args = [pollKey, worker, leaseMs, always ? 1 : 0, key("request", ""), maxReadAtOnce];
      const answer = (await runTake(keys, args)) as [number, string[]?, ...string[][]];
      const [now, ids, ...all] = answer;
      if (ids === undefined) return undefined;
      const requests =
        all.length < ids.length
          ? await getMany(ids)
          : all.map((fields) => parseStored(fromPairs(fields))).filter((one) => one !== undefined);
      return { now, requests };
    },
    /** Keys that no one has polled for too long: they are this worker's now. */
    async takeOver(worker: string, leaseMs: number, most: number): Promise<string[]> {
      return (await runTakeOver(lists, [worker, leaseMs, most])) as string[];
    },
    /** Others may take them in so many milliseconds. False when they took one before. */
    async keep(pollKeys: readonly string[], worker: string, forMs: number): Promise<boolean> {
      if (pollKeys.length === 0) return true;
      return (await runKeep(lists, [worker, Math.ceil(forMs), ...pollKeys])) === pollKeys.length;
    },
    /** Nothing is left to poll. */
    async end(pollKey: string, worker: string): Promise<void> {
      await runKeep(lists, [worker, "", pollKey]);
    },
    /** Someone must poll it: at once, unless someone does. */
    async expect(pollKey: string): Promise<void> {
      await runExpect(lists.slice(0, 1), [pollKey]);
    },
    /** For metrics: how many are overdue, how many are not, and since when the longest is (ms). */
    async depth(): Promise<{ overdue: number; leased: number; oldestAt: number | undefined }> {
      const answer = (await runDepth(lists.slice(0, 1), [])) as [number, number, string];
      const [overdue, leased, since] = answer;
      return { overdue, leased, oldestAt: overdue === 0 ? undefined : Number(since) };
    },
  };
}
