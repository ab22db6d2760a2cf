import {
  type Keys,
  type RedisClient,
  defineScript,
  redisNow,
  redisTimeLua,
} from "../../redis/redis.ts";
import { UserError } from "../../errors.ts";
import { duration } from "../../messages/text.ts";

const minuteMs = 60_000;
const hourMs = 3_600_000;
/** Longer than any approval may take. */
const draftMs = 30 * 24 * hourMs;

/**
 * Takes a place in a sliding window, once for each holder.
 *
 * KEYS places   ARGV holder, window (ms), most, look (1: takes none) → 0 when there is one, else in how many ms the next is
 */
const takePlace = `${redisTimeLua}
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[2])
if redis.call('ZSCORE', KEYS[1], ARGV[1]) then return 0 end
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[3]) then
  local oldest = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
  if not oldest[2] then return tonumber(ARGV[2]) end
  return math.max(1, oldest[2] + ARGV[2] - now)
end
if ARGV[4] == '1' then return 0 end
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 0
`;

/** Counted in Redis, for all processes together. */
export interface Limits {
  requestsPerMinute: number;
  draftsPerPerson: number;
  destructivePerHour: number;
  breakGlassPerHour: number;
}

/** What is counted for everyone together. An emergency has places of its own: it neither takes the others' nor waits for them. */
export type Hourly = "destructivePerHour" | "breakGlassPerHour";

/** The places that a request takes right before its send. */
export function hourlyOf(
  command: { class: string },
  record: { breakGlass?: boolean | undefined; approval?: unknown; via?: string },
): Hourly | undefined {
  if (record.breakGlass && !record.approval)
    return record.via === "safety" ? undefined : "breakGlassPerHour";
  return command.class === "destroy" ? "destructivePerHour" : undefined;
}

/** Why there is no place: a sentence about the limit. */
export function limitWords(hourly: Hourly, most: number): string {
  if (most === 0)
    return hourly === "destructivePerHour"
      ? "Destructive commands are disabled"
      : "Break-glass is disabled";
  const what = hourly === "destructivePerHour" ? "destructive request" : "use of break-glass";
  const many = hourly === "destructivePerHour" ? "destructive requests" : "uses of break-glass";
  return `Limit reached: ${most} ${most === 1 ? what : many} an hour in total`;
}

/** States without an effect. What may be resent takes its place again. */
const harmless = ["denied", "expired", "cancelled", "rejected", "not-applied"];

/** Limits of policy (decision 020). */
export function createLimits(redis: RedisClient, key: Keys) {
  const take = defineScript(redis, "gatehouseTakePlace", takePlace);

  /** 0 when there is a place; otherwise milliseconds until one is free. `isOver`: gives back its place where all are taken. */
  async function waitFor(
    places: string,
    holder: string,
    how: { windowMs: number; most: number; look?: boolean; isOver?(state?: string): boolean },
  ): Promise<number> {
    const { windowMs, most, look = false, isOver } = how;
    const args = [holder, windowMs, most, look ? 1 : 0];
    const waitMs = Number(await take([places], args));
    if (waitMs === 0 || most === 0 || !isOver) return waitMs;
    // The newest may not be written down yet
    const before = (await redisNow(redis)) - minuteMs;
    const settled = new Set(await redis.zrangebyscore(places, 0, before));
    const ids = await redis.zrange(places, 0, "-1");
    const states = await Promise.all(ids.map((id) => redis.hget(key("request", id), "state")));
    const over = ids.filter((id, index) => {
      const state = states[index] ?? undefined;
      return (state !== undefined || settled.has(id)) && isOver(state);
    });
    if (over.length > 0) await redis.zrem(places, ...over);
    return Number(await take([places], args));
  }

  const waitForHourly = (hourly: Hourly, holder: string, limits: Limits, look: boolean) =>
    waitFor(key("rate", hourly), holder, {
      windowMs: hourMs,
      most: limits[hourly],
      look,
      isOver: (state = "") => harmless.includes(state),
    });

  return {
    /** Counts what a person asks for, and looks for a place that its send would take. Over a limit, throws UserError. */
    async takeTurn(asked: {
      personId: string;
      interactionId: string;
      hourly?: Hourly | undefined;
      limits: Limits;
    }): Promise<void> {
      const { personId, interactionId, hourly, limits } = asked;
      const own = key("rate", "person", personId);
      const most = limits.requestsPerMinute;
      const waitMs = await waitFor(own, interactionId, { windowMs: minuteMs, most });
      if (waitMs > 0) {
        throw new UserError(
          `You requested ${most} changes within a minute, the limit for one person. Nothing was done.`,
          `Try again in ${duration(waitMs)}. \`limits.requestsPerMinute\` in gatehouse.yml sets this limit.`,
        );
      }
      if (hourly === undefined) return;
      const hourWaitMs = await waitForHourly(hourly, interactionId, limits, true);
      if (hourWaitMs === 0) return;
      await redis.zrem(own, interactionId);
      const again = limits[hourly] === 0 ? "" : `Try again in ${duration(hourWaitMs)}. `;
      throw new UserError(
        `${limitWords(hourly, limits[hourly])}. Nothing was done.`,
        `${again}\`limits.${hourly}\` in gatehouse.yml sets this limit.`,
      );
    },

    /** Right before its send: whether a request has a place. Idempotent. */
    async takeHourlyPlace(hourly: Hourly, requestId: string, limits: Limits): Promise<boolean> {
      return (await waitForHourly(hourly, requestId, limits, false)) === 0;
    },

    /** Before a request that waits for approval is written down. Throws UserError when too many of the person's wait. */
    async takeDraftPlace(personId: string, requestId: string, limits: Limits): Promise<void> {
      const most = limits.draftsPerPerson;
      const places = key("rate", "drafts", personId);
      const isOver = (state?: string) => state !== "draft";
      if ((await waitFor(places, requestId, { windowMs: draftMs, most, isOver })) === 0) return;
      throw new UserError(
        `${most} of your requests wait for approval, the limit for one person. Nothing was done.`,
        "Cancel one, or wait for a decision. `limits.draftsPerPerson` in gatehouse.yml sets this limit.",
      );
    },
    /** It was not written down. */
    async leaveDraftPlace(personId: string, requestId: string): Promise<void> {
      await redis.zrem(key("rate", "drafts", personId), requestId);
    },
  };
}
