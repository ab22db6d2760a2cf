import {
  type Keys,
  type RedisClient,
  defineScript,
  redisNow,
  redisTimeLua,
  setBackMs,
} from "../../redis/redis.ts";

/** How long a holder counts as possibly not stored yet (ms). */
const unstoredMs = 60_000;

/**
 * Takes a place in a sliding window, once for each holder.
 *
 * `onlyLooks` (0|1) takes none.
 * → 0 when there is one, else in how many ms the next is
 */
const takePlace = `${redisTimeLua}
local places = KEYS[1]
local holder, windowMs, most, onlyLooks = unpack(ARGV)
redis.call('ZREMRANGEBYSCORE', places, '-inf', now - windowMs)
-- Taken before Redis's clock was set back: they count from now on, for no longer than a window
for _, early in ipairs(redis.call('ZRANGEBYSCORE', places, now + ${setBackMs}, '+inf')) do
  redis.call('ZADD', places, now, early)
end
if redis.call('ZSCORE', places, holder) then return 0 end
if redis.call('ZCARD', places) >= tonumber(most) then
  local oldest = redis.call('ZRANGE', places, 0, 0, 'WITHSCORES')
  if not oldest[2] then return tonumber(windowMs) end
  return math.max(1, oldest[2] + windowMs - now)
end
if onlyLooks == '1' then return 0 end
redis.call('ZADD', places, now, holder)
redis.call('PEXPIRE', places, windowMs)
return 0
`;

export interface PlaceOptions {
  windowMs: number;
  most: number;
  /** Takes no place. */
  onlyLooks?: boolean;
  /** The kind of record that holds a place. Its hash has the state. */
  holderKind?: "request" | "proposal";
  /** Whether a holder in this state gives its place back. It is asked where all places are taken. */
  isOver?(state: string): boolean;
}

export type SlidingWindows = ReturnType<typeof createSlidingWindows>;

/** Counts who has a place within a time, in Redis for all processes together. */
export function createSlidingWindows(redis: RedisClient, key: Keys) {
  const take = defineScript(redis, "gatehouseTakePlace", takePlace);

  /** Takes back the places of holders that are over. */
  async function freePlaces(
    places: string,
    holderKind: string,
    isOver: (state: string) => boolean,
  ): Promise<void> {
    const before = (await redisNow(redis)) - unstoredMs;
    const stored = new Set(await redis.zrangebyscore(places, 0, before));
    const ids = await redis.zrange(places, 0, "-1");
    const states = await Promise.all(ids.map((id) => redis.hget(key(holderKind, id), "state")));
    const over = ids.filter((id, n) => (states[n] ?? stored.has(id)) && isOver(states[n] ?? ""));
    if (over.length > 0) await redis.zrem(places, ...over);
  }

  return {
    /** Resolves with 0 when there is a place, otherwise with how long until one is free (ms). */
    async waitFor(
      places: string,
      holder: string,
      { windowMs, most, onlyLooks = false, holderKind = "request", isOver }: PlaceOptions,
    ): Promise<number> {
      const args = [holder, windowMs, most, onlyLooks ? 1 : 0];
      const waitMs = Number(await take([places], args));
      if (waitMs === 0 || most === 0 || !isOver) return waitMs;
      await freePlaces(places, holderKind, isOver);
      return Number(await take([places], args));
    },
  };
}
