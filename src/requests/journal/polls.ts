import { createDueList } from "../../redis/due-list.ts";
import {
  type Keys,
  type RedisClient,
  defineScript,
  redisNow,
  redisTimeLua,
} from "../../redis/redis.ts";
import { type StoredRequest, isPolled } from "./record.ts";

/**
 * After a poll: when the next one is due, unless it was asked for meanwhile and is due already. Nothing to poll is forgotten.
 *
 * KEYS polls, watched   ARGV key, in (ms)
 */
const next = `${redisTimeLua}
local due = redis.call('ZSCORE', KEYS[1], ARGV[1])
if redis.call('EXISTS', KEYS[2]) == 0 then redis.call('ZREM', KEYS[1], ARGV[1])
elseif due and tonumber(due) > now then redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1]) end
return 1
`;

export type Polls = ReturnType<typeof createPolls>;

/**
 * What is to be polled, and when. A request is watched from its claim until reads have decided it: the script that moves it
 * says so. Any worker polls what is due; two that poll the same are harmless, because what a poll finds is compared and set.
 */
export function createPolls(
  redis: RedisClient,
  key: Keys,
  getMany: (ids: readonly string[]) => Promise<StoredRequest[]>,
) {
  const due = createDueList(redis, key("polls"));
  const runNext = defineScript(redis, "gatehouseNextPoll", next);
  const watched = (pollKey: string) => key("watch", pollKey);
  return {
    due,
    expect: due.expect,

    /**
     * The requests that wait for the polls of a key. What is gone or has ended is forgotten; any other that isn't polled now may
     * have been claimed again by the time that this reads on.
     */
    async waiting(pollKey: string): Promise<StoredRequest[]> {
      const ids = await redis.smembers(watched(pollKey));
      const open = (await getMany(ids)).filter(({ final }) => !final);
      const openIds = new Set(open.map(({ record }) => record.id));
      const over = ids.filter((id) => !openIds.has(id));
      if (over.length > 0) await redis.srem(watched(pollKey), ...over);
      return open.filter(({ state }) => isPolled(state));
    },

    async next(pollKey: string, inMs: number): Promise<void> {
      await runNext([due.list, watched(pollKey)], [pollKey, Math.ceil(inMs)]);
    },

    /** It is due now. */
    async pollSoon(pollKey: string): Promise<void> {
      await due.later(pollKey, 0);
      due.ring(pollKey);
    },

    /** For metrics: how many are overdue, how many are not, and since when the longest is (ms). */
    async depth(): Promise<{ overdue: number; waiting: number; oldestAt: number | undefined }> {
      const now = await redisNow(redis);
      const [overdue, all, [, since]] = await Promise.all([
        redis.zcount(due.list, "-inf", now),
        redis.zcard(due.list),
        redis.zrange(due.list, 0, "0", "WITHSCORES"),
      ]);
      const oldestAt = overdue === 0 ? undefined : Number(since);
      return { overdue, waiting: all - overdue, oldestAt };
    },
  };
}
