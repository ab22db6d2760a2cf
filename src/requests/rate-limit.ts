import { UserError } from "../errors.ts";
import { duration } from "../messages/text.ts";
import { defineScript, type Keys, type RedisClient } from "../redis.ts";

const minuteMs = 60_000;
const hourMs = 3_600_000;

/**
 * Takes a place in a sliding window, once however often the same ask comes.
 *
 * KEYS places   ARGV ask, window (ms), most → 0 when taken, else in how many ms the next place is free
 */
const takePlace = `
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[2])
if redis.call('ZSCORE', KEYS[1], ARGV[1]) then return 0 end
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[3]) then
  local oldest = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
  if not oldest[2] then return tonumber(ARGV[2]) end
  return math.max(1, oldest[2] + ARGV[2] - now)
end
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 0
`;

/** How much may be asked for (reliability.md X6 and section 8, 25 and 26). Counted in Redis, for all processes together. */
export interface Limits {
  requestsPerMinute: number;
  destructivePerHour: number;
}

export interface AskedChange {
  personId: string;
  askId: string;
  destroys: boolean;
  limits: Limits;
}

/** Ended without touching anything. */
const harmless: ReadonlySet<string> = new Set([
  "denied",
  "expired",
  "cancelled",
  "rejected",
  "not-applied",
]);

export function createRateLimit(redis: RedisClient, key: Keys) {
  const take = defineScript(redis, "gatehouseTakePlace", takePlace);
  const destructive = key("rate", "destructive");
  const requests = key("rate", "destructive", "requests");

  /** In how many milliseconds there is a place; 0 when it was taken. */
  async function waitFor(places: string, askId: string, windowMs: number, most: number) {
    return Number(await take([places], [askId, windowMs, most]));
  }

  async function waitForDestructive({ askId, limits }: AskedChange): Promise<number> {
    const most = limits.destructivePerHour;
    const waitMs = await waitFor(destructive, askId, hourMs, most);
    if (waitMs === 0 || most === 0) return waitMs;
    const free = await harmlessAsks();
    if (free.length === 0) return waitMs;
    await redis.zrem(destructive, ...free);
    return waitFor(destructive, askId, hourMs, most);
  }

  /** Of those that hold a place, the asks that came to nothing: nobody should be able to use the places up by asking. */
  async function harmlessAsks(): Promise<string[]> {
    const askIds = await redis.zrange(destructive, 0, "-1");
    if (askIds.length === 0) return [];
    const ids = await redis.hmget(requests, ...askIds);
    const states = await Promise.all(
      ids.map((id) =>
        id ? redis.hmget(key("request", id), "state", "final") : Promise.resolve([]),
      ),
    );
    return askIds.filter((_, index) => {
      const [state, final] = states[index] ?? [];
      return final === "1" && harmless.has(state ?? "");
    });
  }

  return {
    /**
     * Counts one change that somebody asks for: so many a minute for each person, and of what destroys so many an hour
     * for everybody together. Throws UserError, and takes nothing, when it is one too many.
     */
    async takeTurn(asked: AskedChange): Promise<void> {
      const { personId, askId, destroys, limits } = asked;
      const own = key("rate", "person", personId);
      const waitMs = await waitFor(own, askId, minuteMs, limits.requestsPerMinute);
      if (waitMs > 0) {
        throw new UserError(
          `You asked for ${limits.requestsPerMinute} changes within a minute, and that is the most for one person. Nothing was done.`,
          `Try again in ${duration(waitMs)}. \`limits.requestsPerMinute\` in gatehouse.yml says how many.`,
        );
      }
      if (!destroys) return;
      const hourWaitMs = await waitForDestructive(asked);
      if (hourWaitMs === 0) return;
      await redis.zrem(own, askId);
      const { destructivePerHour: most } = limits;
      throw new UserError(
        most === 0
          ? "Nothing may be destroyed from here. Nothing was done."
          : `Enough was destroyed, or waits to be, within this hour: ${most} is the most for everybody together. Nothing was done.`,
        `${most === 0 ? "" : `There is room again in ${duration(hourWaitMs)}. `}\`limits.destructivePerHour\` in gatehouse.yml says how many.`,
      );
    },

    /** Which request came of an ask that destroys: when it comes to nothing, its place is free again. */
    async turnTaken(askId: string, requestId: string): Promise<void> {
      await redis.hset(requests, askId, requestId);
      await redis.pexpire(requests, 2 * hourMs);
    },
  };
}
