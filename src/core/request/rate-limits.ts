import type { Policy } from "../../config/policy-file.ts";
import { UserError } from "../../errors.ts";
import { counted, duration } from "../../messages/markdown.ts";
import {
  type Keys,
  type RedisClient,
  defineScript,
  redisNow,
  redisTimeLua,
  setBackMs,
} from "../../redis/redis.ts";
import type { Origin } from "./origin.ts";

const minuteMs = 60_000;
const hourMs = 3_600_000;
/** How long it is known when programs last called, after the last call of any (ms). */
const callsForMs = 90 * 24 * hourMs;
/** Longer than any approval may take. */
const draftMs = 30 * 24 * hourMs;

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

/** The limits of policy, counted in Redis for all processes together. */
type Limits = Policy["limits"];

/**
 * Places that everyone shares. An emergency has places of its own: it neither takes those of others
 * nor waits for them.
 */
export type Hourly = "destructivePerHour" | "breakGlassPerHour";

/** Says which shared place a request takes right before its send. */
export function hourlyOf(
  command: { class: string },
  record: { breakGlass?: boolean | undefined; approval?: unknown; origin: Pick<Origin, "kind"> },
): Hourly | undefined {
  if (record.breakGlass && !record.approval)
    return record.origin.kind === "safety" ? undefined : "breakGlassPerHour";
  return command.class === "destroy" ? "destructivePerHour" : undefined;
}

/** Says in a sentence why there is no place. */
export function limitWords(hourly: Hourly, most: number): string {
  const isDestructive = hourly === "destructivePerHour";
  if (most === 0)
    return `${isDestructive ? "Destructive commands are" : "Break-glass is"} disabled`;
  const s = most === 1 ? "" : "s";
  const noun = isDestructive ? `destructive request${s}` : `use${s} of break-glass`;
  return `Limit reached: ${most} ${noun} an hour in total`;
}

/** States in which a request had no effect. */
const harmless = ["denied", "expired", "cancelled", "rejected", "not-applied"];

/** What is counted against the limits of policy. */
interface Counted {
  personId: string;
  /** Is counted once: the key of an origin, or the ID of a rollout or an interaction. */
  holder: string;
  hourly?: Hourly | undefined;
  limits: Limits;
}

/** A limit without room: a sentence without full stop, and what to do. */
interface Reached {
  limit: keyof Limits;
  sentence: string;
  way: string;
}

/** Counts against the limits of policy (decision 020). */
export function createLimits(redis: RedisClient, key: Keys) {
  const take = defineScript(redis, "gatehouseTakePlace", takePlace);

  /**
   * Resolves with 0 when there is a place, otherwise with how long until one is free (ms). `isOver`
   * tells of a holder whether it gives its place back; it is asked where all places are taken.
   */
  async function waitFor(
    places: string,
    holder: string,
    how: {
      windowMs: number;
      most: number;
      look?: boolean;
      /** The kind of holder, as the reason says it. */
      of?: string;
      isOver?(state: string): boolean;
    },
  ): Promise<number> {
    const { windowMs, most, look = false, of = "request", isOver } = how;
    const args = [holder, windowMs, most, look ? 1 : 0];
    const waitMs = Number(await take([places], args));
    if (waitMs === 0 || most === 0 || !isOver) return waitMs;
    // The newest holder may not be stored yet.
    const before = (await redisNow(redis)) - minuteMs;
    const settled = new Set(await redis.zrangebyscore(places, 0, before));
    const ids = await redis.zrange(places, 0, "-1");
    const states = await Promise.all(ids.map((id) => redis.hget(key(of, id), "state")));
    const over = ids.filter((id, n) => (states[n] ?? settled.has(id)) && isOver(states[n] ?? ""));
    if (over.length > 0) await redis.zrem(places, ...over);
    return Number(await take([places], args));
  }

  const waitForHourly = (hourly: Hourly, holder: string, limits: Limits, look: boolean) =>
    waitFor(key("rate", hourly), holder, {
      windowMs: hourMs,
      most: limits[hourly],
      look,
      isOver: (state) => harmless.includes(state),
    });

  /** Which limit has no room for what a person asks for. With `look`, no place is taken. */
  async function limitReached(
    { personId, holder, hourly, limits }: Counted,
    look: boolean,
  ): Promise<Reached | undefined> {
    const hourWaitMs = hourly ? await waitForHourly(hourly, holder, limits, true) : 0;
    if (hourly && hourWaitMs > 0) {
      const most = limits[hourly];
      const way = most === 0 ? "" : tryAgain(hourWaitMs);
      return { limit: hourly, sentence: limitWords(hourly, most), way };
    }
    const most = limits.requestsPerMinute;
    const own = key("rate", "person", personId);
    const waitMs = await waitFor(own, holder, { windowMs: minuteMs, most, look });
    const words = `You requested ${counted(most, "change")} within a minute, the limit for one person`;
    return waitMs > 0
      ? { limit: "requestsPerMinute", sentence: words, way: tryAgain(waitMs) }
      : undefined;
  }

  async function draftsReached(
    personId: string,
    requestId: string,
    limits: Limits,
    look: boolean,
  ): Promise<Reached | undefined> {
    const most = limits.draftsPerPerson;
    const places = key("rate", "drafts", personId);
    const isOver = (state: string) => state !== "draft";
    const how = { windowMs: draftMs, most, isOver, look };
    if ((await waitFor(places, requestId, how)) === 0) return undefined;
    const words = `${most} of your requests wait for approval, the limit for one person`;
    return {
      limit: "draftsPerPerson",
      sentence: words,
      way: "Cancel one, or wait for a decision. ",
    };
  }

  return {
    /**
     * Counts what a person asks for, and checks that a place for its send is free. Throws UserError
     * over a limit.
     */
    async countAgainstLimits(asked: Counted): Promise<void> {
      const reached = await limitReached(asked, false);
      if (reached) throw overLimit(reached);
    },

    /**
     * Says in a sentence which limit would refuse this now, and counts nothing. `isDraft`: it would
     * wait for approval.
     */
    async limitRefusal(
      asked: Omit<Counted, "holder"> & { isDraft: boolean },
    ): Promise<string | undefined> {
      const { personId, isDraft, limits } = asked;
      const reached =
        (await limitReached({ ...asked, holder: "" }, true)) ??
        (isDraft ? await draftsReached(personId, "", limits, true) : undefined);
      return reached && `${reached.sentence}. ${reached.way}`.trim();
    },

    /**
     * Takes a program's place, for a call or an open proposal. Resolves with 0, or with how long
     * until there is room (ms).
     */
    takeApiPlace: (caller: string, id: string, how: Parameters<typeof waitFor>[2]) =>
      waitFor(key("rate", "api", caller), id, how),

    async noteApiCall(route: string, caller: string): Promise<void> {
      const last = key("api", "last");
      await redis.hset(last, `${route} ${caller}`, await redisNow(redis));
      await redis.pexpire(last, callsForMs);
    },
    /** When something of a program was last taken (Redis time), by `<route> <caller>`. */
    async apiCalls(): Promise<ReadonlyMap<string, number>> {
      const calls = Object.entries(await redis.hgetall(key("api", "last")));
      return new Map(calls.map(([who, at]) => [who, Number(at)]));
    },

    /**
     * Takes a request's place right before its send, and tells whether there was one. Idempotent.
     */
    async takeHourlyPlace(hourly: Hourly, requestId: string, limits: Limits): Promise<boolean> {
      return (await waitForHourly(hourly, requestId, limits, false)) === 0;
    },

    /**
     * Takes a place right before a request that waits for approval is stored. Throws UserError when
     * too many of the person's requests wait.
     */
    async takeDraftPlace(personId: string, requestId: string, limits: Limits): Promise<void> {
      const reached = await draftsReached(personId, requestId, limits, false);
      if (reached) throw overLimit(reached);
    },
    /** Gives the place back when the request was not stored. */
    async leaveDraftPlace(personId: string, requestId: string): Promise<void> {
      await redis.zrem(key("rate", "drafts", personId), requestId);
    },
  };
}

const tryAgain = (inMs: number) => `Try again in ${duration(inMs)}. `;

const overLimit = ({ limit, sentence: words, way }: Reached) =>
  new UserError(
    `${words}. Nothing was done.`,
    `${way}\`limits.${limit}\` in gatehouse.yml sets this limit.`,
  );
