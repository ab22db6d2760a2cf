import {
  type Keys,
  type RedisClient,
  defineScript,
  redisNow,
  redisTimeLua,
  setBackMs,
} from "./redis.ts";

/** KEYS pending   ARGV member → {'gone'}, {'later', its score, in (ms)}, or {'taken', its new score} */
const takeScript = `${redisTimeLua}
local due = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not due then return {'gone'} end
-- A second worker, as of a stalled job, shares the mark: with marks of their own, each would find that the other asked meanwhile
if tonumber(due) % 1 ~= 0 then return {'taken', due} end
if tonumber(due) > now then return {'later', due, tostring(math.ceil(due - now))} end
-- Half a millisecond marks it: all other scores are whole
local taken = string.format('%.1f', now + 0.5)
redis.call('ZADD', KEYS[1], taken, ARGV[1])
return {'taken', taken}
`;

/**
 * One that was asked for meanwhile stays as it is. One whose hash has another revision than was read is due at once: what was due
 * anyway may change without a new score.
 *
 * KEYS pending, hash (of messages)   ARGV member, its score while it was worked on, due in (ms, '' for never), revision as read
 */
const releaseScript = `${redisTimeLua}
local due = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not due or tonumber(due) ~= tonumber(ARGV[2]) then return end
if KEYS[2] and (redis.call('HGET', KEYS[2], 'revision') or ARGV[4]) ~= ARGV[4] then redis.call('ZADD', KEYS[1], now, ARGV[1])
elseif ARGV[3] == '' then redis.call('ZREM', KEYS[1], ARGV[1])
else redis.call('ZADD', KEYS[1], now + ARGV[3], ARGV[1]) end
`;

/**
 * Those that are worked on keep their mark: else they would seem to be asked for meanwhile.
 *
 * KEYS pending   ARGV most, overdue by at least (ms) → the members; those not worked on are overdue again only after that time
 */
const overdueScript = `${redisTimeLua}
local found = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[2], 'WITHSCORES', 'LIMIT', 0, ARGV[1])
local members = {}
for i = 1, #found, 2 do
  members[#members + 1] = found[i]
  if tonumber(found[i + 1]) % 1 == 0 then redis.call('ZADD', KEYS[1], now, found[i]) end
end
return members
`;

/**
 * Once Redis's time has fallen behind what it was, its clock was set back, or another primary's is behind. What the list had put off by
 * the former time would stand still for as long, so all of it becomes due: each handler decides anew when it is.
 *
 * KEYS pending, the latest time   ARGV due since (ms) → by how much Redis's time was set back (ms), 0 for not at all
 */
const dueAfterSetBackScript = `${redisTimeLua}
local back = (tonumber(redis.call('GET', KEYS[2])) or 0) - now
if back < 0 or back > ${setBackMs} then redis.call('SET', KEYS[2], string.format('%d', now)) end
if back <= ${setBackMs} then return 0 end
for _, member in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. now, '+inf')) do
  redis.call('ZADD', KEYS[1], now - ARGV[1], member)
end
return back
`;

/**
 * The sorted set of all that is to be done: `<kind> <id>`, each with the time from when on (ms by Redis). The script that changes a
 * record puts its members here in the same step (the outbox pattern), so a process that dies right after it leaves nothing undone;
 * a job of a queue is only the wake-up.
 */
export const pendingList = (key: Keys): string => key("pending");

export type Pending = ReturnType<typeof createPending>;

/**
 * The part of the list that one kind has: what an ID stands for, and so what is to be done. `later` adds a job at once: a worker that takes it too early delays it until its time.
 */
export function createPending(redis: RedisClient, key: Keys, kind: string) {
  const list = pendingList(key);
  const runTake = defineScript(redis, "gatehouseTakePending", takeScript);
  const runRelease = defineScript(redis, "gatehouseReleasePending", releaseScript);
  const listeners = new Set<(id: string) => void>();
  const wake = (id: string): void => listeners.forEach((hear) => hear(id));
  const memberOf = (id: string): string => `${kind} ${id}`;

  return {
    kind,
    list,
    /** As scripts put it on the list. */
    memberOf,
    /** This process has put it on the list: a job is added. */
    wake,
    onWake: (hear: (id: string) => void) => void listeners.add(hear),

    async later(id: string, inMs: number): Promise<void> {
      await redis.zadd(list, Math.ceil((await redisNow(redis)) + inMs), memberOf(id));
      wake(id);
    },

    /** Puts those back that somebody took off the list by hand. The relay adds their jobs. */
    async restore(ids: readonly string[]): Promise<void> {
      if (ids.length === 0) return;
      const now = await redisNow(redis);
      await redis.zadd(list, "NX", ...ids.flatMap((id) => [now, memberOf(id)]));
    },

    /**
     * Begins its work: with the score that marks it, or when it is due (Redis time), and how long until then (ms). Undefined where it is
     * off the list.
     */
    async take(
      id: string,
    ): Promise<{ mark: string } | { dueAt: number; waitMs: number } | undefined> {
      const taken = (await runTake([list], [memberOf(id)])) as [string, string?, string?];
      const [is, score = "", waitMs] = taken;
      if (is === "gone") return undefined;
      return is === "later" ? { dueAt: Number(score), waitMs: Number(waitMs) } : { mark: score };
    },

    /** Off the list, or due again in so long (ms), unless it was asked for, or its hash has moved, since it was taken. */
    async release(
      id: string,
      mark: string,
      inMs?: number,
      read?: { hash: string; revision: number | string },
    ): Promise<void> {
      const keys = read ? [list, read.hash] : [list];
      const due = inMs === undefined ? "" : Math.ceil(inMs);
      await runRelease(keys, [memberOf(id), mark, due, read?.revision ?? ""]);
    },

    /** When it is due next (Redis time); undefined where it is off the list. */
    async dueAt(id: string): Promise<number | undefined> {
      const score = await redis.zscore(list, memberOf(id));
      return score === null ? undefined : Number(score);
    },

    async remove(id: string): Promise<void> {
      await redis.zrem(list, memberOf(id));
    },

    /** How many are on the list, due or not. Reads the whole list. */
    depth: async (): Promise<number> => (await readPending(redis, key)).get(kind)?.length ?? 0,

    /** Those on the list, due or not. */
    async among(ids: readonly string[]): Promise<Set<string>> {
      if (ids.length === 0) return new Set();
      const due = await redis.zmscore(list, ...ids.map(memberOf));
      return new Set(ids.filter((_, index) => due[index] !== null));
    },
  };
}

/** What is on the list, by kind, each in the order in which it is due. */
export async function readPending(
  redis: RedisClient,
  key: Keys,
  most = -1,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const members = await redis.zrange(pendingList(key), 0, String(most < 0 ? most : most - 1));
  const all = members.map(parseMember);
  return new Map(
    [...Map.groupBy(all, ({ kind }) => kind)].map(([kind, some]) => [
      kind,
      some.map(({ id }) => id),
    ]),
  );
}

/** Finds what is overdue: its job is missing, or under way for long. */
export function createOverdue(redis: RedisClient, key: Keys) {
  const run = defineScript(redis, "gatehouseOverdue", overdueScript);
  return async (most: number, byMs: number) => {
    const members = (await run([pendingList(key)], [most, byMs])) as string[];
    return members.map(parseMember);
  };
}

/**
 * Makes due what the list had put off, where Redis's time was set back since any process asked this. Resolves with by how much (ms), 0 for
 * not at all. It is overdue by `byMs` then, so that its jobs are added at once.
 */
export function createDueAfterSetBack(redis: RedisClient, key: Keys) {
  const run = defineScript(redis, "gatehouseDueAfterSetBack", dueAfterSetBackScript);
  return async (byMs: number) =>
    Number(await run([pendingList(key), key("pending", "latest-time")], [byMs]));
}

function parseMember(member: string): { kind: string; id: string } {
  const end = member.indexOf(" ");
  return { kind: member.slice(0, end), id: member.slice(end + 1) };
}
