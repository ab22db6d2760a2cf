import { type Due, createPending, dueOf, endWorkLua } from "../../redis/pending.ts";
import { type Keys, type RedisClient, defineScript, redisTimeLua } from "../../redis/redis.ts";
import type { RequestIn, StoredRequest } from "./stored-request.ts";
import { type PolledStage, isPolled } from "./stage.ts";
import { pendingKinds } from "./scripts.ts";

/**
 * Says after a poll when the next one is due, unless one was asked for meanwhile. A key with nothing
 * to poll is forgotten.
 *
 * KEYS pending, watched   ARGV member, in (ms), the score that marks this poll
 */
const next = `${redisTimeLua}${endWorkLua}
local score = tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1]) or '')
if redis.call('EXISTS', KEYS[2]) == 0 then return keepDue(KEYS[1], ARGV[1], '') end
if not score or not isOurs(score, tonumber(ARGV[3])) then return {} end
return keepDue(KEYS[1], ARGV[1], isWoken(score) and 0 or ARGV[2])
`;

/** A request whose outcome reads decide. */
export type Polled = RequestIn<PolledStage["state"]>;

export type Polls = ReturnType<typeof createPolls>;

/**
 * Keeps what is to be polled, and when. A request is watched from its claim until reads have
 * decided its outcome; the script that moves it says so. Any worker polls what is due. Two workers
 * that poll the same are harmless, because the result is saved by a compare-and-set.
 */
export function createPolls(
  redis: RedisClient,
  key: Keys,
  latest: (ids: readonly string[]) => Promise<StoredRequest[]>,
) {
  const pending = createPending(redis, key, pendingKinds.poll);
  const runNext = defineScript(redis, "gatehouseNextPoll", next);
  const watched = (pollKey: string) => key("watch", pollKey);
  return {
    pending,

    /**
     * Reads the requests that wait for the polls of a key. A request that is gone or has ended is
     * forgotten. Any other that isn't polled now is kept, because it may have been claimed again
     * since.
     */
    async waiting(pollKey: string): Promise<Polled[]> {
      const ids = await redis.smembers(watched(pollKey));
      const open = (await latest(ids)).filter(({ final }) => !final);
      const openIds = new Set(open.map(({ record }) => record.id));
      const over = ids.filter((id) => !openIds.has(id));
      if (over.length > 0) await redis.srem(watched(pollKey), ...over);
      return open.filter((request): request is Polled => isPolled(request.state));
    },

    async next(pollKey: string, inMs: number, mark: string): Promise<Due | undefined> {
      const args = [pending.memberOf(pollKey), Math.ceil(inMs), mark];
      return dueOf(await runNext([pending.list, watched(pollKey)], args));
    },

    /** Makes the poll due now. */
    async pollSoon(pollKey: string): Promise<void> {
      await pending.later(pollKey, 0);
    },
  };
}
