import {
  type Keys,
  type RedisClient,
  defineScript,
  redisNow,
  redisTimeLua,
} from "../../redis/redis.ts";
import { UserError } from "../../errors.ts";
import { duration } from "../../messages/message.ts";
import { createDueList } from "../../redis/due-list.ts";
import { parseSteps, type Step, type StoredRequest, isPolled } from "./record.ts";
import type { Policy } from "../../config/policy-file.ts";
import { metBy } from "../../config/seats.ts";
import {
  lacking,
  meets,
  needsOf,
  totalOf,
  type VoteNeed,
  voteRefusal,
} from "../../policy/approval-rule.ts";
import type { Vote } from "../../approvals/votes.ts";
import type { Person } from "../../registry/invocation.ts";

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
type Limits = Policy["limits"];

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
  const isDestructive = hourly === "destructivePerHour";
  if (most === 0)
    return `${isDestructive ? "Destructive commands are" : "Break-glass is"} disabled`;
  const s = most === 1 ? "" : "s";
  const what = isDestructive ? `destructive request${s}` : `use${s} of break-glass`;
  return `Limit reached: ${most} ${what} an hour in total`;
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
    how: {
      windowMs: number;
      most: number;
      look?: boolean;
      /** What holders are. */
      of?: string;
      isOver?(state: string): boolean;
    },
  ): Promise<number> {
    const { windowMs, most, look = false, of = "request", isOver } = how;
    const args = [holder, windowMs, most, look ? 1 : 0];
    const waitMs = Number(await take([places], args));
    if (waitMs === 0 || most === 0 || !isOver) return waitMs;
    // The newest may not be written down yet
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

  return {
    /** Counts what a person asks for, and looks for a place that its send would take. Over a limit, throws UserError. */
    async takeTurn(asked: {
      personId: string;
      interactionId: string;
      hourly?: Hourly | undefined;
      limits: Limits;
    }): Promise<void> {
      const { personId, interactionId, hourly, limits } = asked;
      const hourWaitMs = hourly ? await waitForHourly(hourly, interactionId, limits, true) : 0;
      if (hourly && hourWaitMs > 0) {
        const most = limits[hourly];
        throw overLimit(hourly, limitWords(hourly, most), most === 0 ? "" : tryAgain(hourWaitMs));
      }
      const most = limits.requestsPerMinute;
      const own = key("rate", "person", personId);
      const waitMs = await waitFor(own, interactionId, { windowMs: minuteMs, most });
      const what = `You requested ${most} changes within a minute, the limit for one person`;
      if (waitMs > 0) throw overLimit("requestsPerMinute", what, tryAgain(waitMs));
    },

    /** Of a program, for a call or an open proposal: 0, or how long until there is room (ms). */
    takeDoorPlace: (caller: string, id: string, how: Parameters<typeof waitFor>[2]) =>
      waitFor(key("rate", "door", caller), id, how),

    async noteDoorCall(route: string, caller: string): Promise<void> {
      await redis.hset(key("door", "last"), `${route} ${caller}`, await redisNow(redis));
    },
    /** When a program last had something taken (Redis time), by `<route> <caller>`. */
    async doorCalls(): Promise<ReadonlyMap<string, number>> {
      const calls = Object.entries(await redis.hgetall(key("door", "last")));
      return new Map(calls.map(([who, at]) => [who, Number(at)]));
    },

    /** Right before its send: whether a request has a place. Idempotent. */
    async takeHourlyPlace(hourly: Hourly, requestId: string, limits: Limits): Promise<boolean> {
      return (await waitForHourly(hourly, requestId, limits, false)) === 0;
    },

    /** Before a request that waits for approval is written down. Throws UserError when too many of the person's wait. */
    async takeDraftPlace(personId: string, requestId: string, limits: Limits): Promise<void> {
      const most = limits.draftsPerPerson;
      const places = key("rate", "drafts", personId);
      const isOver = (state: string) => state !== "draft";
      if ((await waitFor(places, requestId, { windowMs: draftMs, most, isOver })) === 0) return;
      const what = `${most} of your requests wait for approval, the limit for one person`;
      throw overLimit("draftsPerPerson", what, "Cancel one, or wait for a decision. ");
    },
    /** It was not written down. */
    async leaveDraftPlace(personId: string, requestId: string): Promise<void> {
      await redis.zrem(key("rate", "drafts", personId), requestId);
    },
  };
}

const tryAgain = (inMs: number) => `Try again in ${duration(inMs)}. `;

const overLimit = (limit: keyof Limits, what: string, way: string) =>
  new UserError(
    `${what}. Nothing was done.`,
    `${way}\`limits.${limit}\` in gatehouse.yml sets this limit.`,
  );

/** Whatever tells of requests but `get` and `getMany`: what a person reads of it depends on what they may see. */
export function createLists(
  redis: RedisClient,
  key: Keys,
  get: (id: string) => Promise<StoredRequest | undefined>,
) {
  return {
    /** The request that this interaction made, if any. */
    async madeBy(interactionId: string): Promise<StoredRequest | undefined> {
      const id = await redis.get(key("ask", interactionId));
      return id ? get(id) : undefined;
    },

    async history(id: string): Promise<Step[]> {
      const [createdAt, history] = await redis.hmget(key("request", id), "createdAt", "history");
      return parseSteps({ createdAt: Number(createdAt), history: history ?? "" });
    },

    openIds: (): Promise<string[]> => redis.zrange(key("requests", "open"), 0, "-1"),
    openCount: (): Promise<number> => redis.zcard(key("requests", "open")),

    async recentIds(
      filter: { requesterId?: string; targetId?: string; open?: boolean },
      most: number,
    ): Promise<string[]> {
      const list = filter.requesterId
        ? key("requests", "person", filter.requesterId)
        : filter.targetId
          ? key("requests", "target", filter.targetId)
          : key("requests", filter.open ? "open" : "recent");
      return redis.zrevrange(list, 0, most - 1);
    },

    /** Requested between these times (Redis, ms), newest first. */
    idsAskedBetween: (from: number, to: number, most: number): Promise<string[]> =>
      redis.zrevrangebyscore(key("requests", "recent"), to, from, "LIMIT", 0, most),

    async openReviews(): Promise<Review[]> {
      const all = Object.values(await redis.hgetall(key("reviews")));
      return all.map((text) => JSON.parse(text) as Review).toSorted((a, b) => a.at - b.at);
    },
  };
}

/** A use of break-glass that another administrator has yet to sign. */
export interface Review {
  request: string;
  command: string;
  target: string;
  /** User ID. */
  by: string;
  reason: string;
  at: number;
}

export function createReviews(redis: RedisClient, key: Keys) {
  return {
    /** Idempotent, also after the review was signed. */
    async openReview(review: Review): Promise<void> {
      if ((await redis.sismember(key("reviews-signed"), review.request)) === 1) return;
      await redis.hsetnx(key("reviews"), review.request, JSON.stringify(review));
    },
    /** False when it was already signed. */
    async closeReview(request: string): Promise<boolean> {
      await redis.sadd(key("reviews-signed"), request);
      return (await redis.hdel(key("reviews"), request)) === 1;
    },
  };
}

/** At most `most`, newest first. */
export async function recentRequests(
  filter: { open?: boolean; requesterId?: string; targetId?: string; most: number },
  journal: Pick<ReturnType<typeof createLists>, "recentIds"> & {
    getMany(ids: readonly string[]): Promise<StoredRequest[]>;
  },
): Promise<readonly StoredRequest[]> {
  const { open, requesterId, targetId, most } = filter;
  // Finished ones are filtered out below, so more are read
  const ids = await journal.recentIds(filter, open ? most * 5 : most);
  const requests = await journal.getMany(ids);
  return requests
    .filter(({ final, record }) => {
      if (open && final) return false;
      if (requesterId && record.requester.id !== requesterId) return false;
      return targetId === undefined || record.target.id === targetId;
    })
    .slice(0, most);
}

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
    async soon(pollKey: string): Promise<void> {
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

/** The needs that its approvals haven't met, each with what it lacks, as of the votes. */
function openNeeds<Need extends VoteNeed>(
  needs: readonly Need[],
  { votes }: { votes: readonly Pick<Vote, "vote" | "meets">[] },
): readonly Need[] {
  const yes = votes.filter(({ vote }) => vote === "approve");
  // Who could take several seats counts for the narrowest: what is named as missing is then what others can give
  const narrowFirst = needs
    .map((need, index) => ({ ...need, index }))
    .toSorted((a, b) => breadthOf(a) - breadthOf(b));
  const met = metBy(narrowFirst, yes, ({ index }, vote) => vote.meets?.includes(index) ?? true);
  const places = new Map(narrowFirst.map(({ index }, place) => [index, met[place] ?? 0]));
  return lacking(
    needs,
    needs.map((_, index) => places.get(index) ?? 0),
  );
}

/** People one by one are fewer than groups, and everyone is the most. */
function breadthOf({ from }: VoteNeed): number {
  if (from.includes("*")) return Number.MAX_SAFE_INTEGER;
  return from.reduce((sum, entry) => sum + (entry.startsWith("S") ? 1_000 : 1), 0);
}

/** The same with names; undefined where `access.approve` says who. */
export function namedNeeds({ record, votes }: Pick<StoredRequest, "record" | "votes">) {
  const { votes: needs, needs: named } = record.approval ?? {};
  if (!needs || !named) return undefined;
  const all = needs.map((need, index) => ({ ...need, called: [], ...named[index] }));
  return { all, open: openNeeds(all, { votes }) };
}

/** Whether it waits for this person: they may vote on it, haven't, and one more seat would be taken by their vote. */
export function waitsFor(
  person: Person,
  request: StoredRequest,
  { policy, ourTeamId }: { policy: Policy; ourTeamId: string },
): boolean {
  const { record, state, votes: given } = request;
  if (state !== "draft" || !record.approval) return false;
  const votes = needsOf(policy, record.approval);
  if (voteRefusal({ votes, voter: person, ourTeamId, requester: record.requester })) return false;
  if (given.some(({ voterId }) => voterId === person.id)) return false;
  // Whoever approved may count for another need, and leave theirs to this person
  const theirs = { vote: "approve", meets: meets(votes, person) } as const;
  const after = openNeeds(votes, { votes: [...given, theirs] });
  return totalOf(after) < totalOf(openNeeds(votes, request));
}
