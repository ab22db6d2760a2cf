import {
  type Keys,
  type RedisClient,
  defineScript,
  redisNow,
  redisTimeLua,
  setBackMs,
} from "./redis.ts";

/**
 * Starts work on a member that is due.
 *
 * KEYS pending   ARGV member
 * → {'gone'}, {'later', its score, in (ms)}, or {'taken', its new score}
 */
const takeScript = `${redisTimeLua}
local due = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not due then return {'gone'} end
-- Two workers may have the same job, after it stalled. They share one mark: with a mark each, each would
-- mistake the other's mark for a wake-up.
if tonumber(due) % 1 ~= 0 then return {'taken', due} end
if tonumber(due) > now then return {'later', due, tostring(math.ceil(due - now))} end
-- Half a millisecond marks the member as being worked on: all other scores are whole numbers.
local taken = string.format('%.1f', now + 0.5)
redis.call('ZADD', KEYS[1], taken, ARGV[1])
return {'taken', taken}
`;

/**
 * Ends the work on a member. A member that was woken meanwhile keeps its new score. A member whose
 * hash has another revision than the one that was read is due at once, because a change to a member
 * that is due anyway may leave its score as it was.
 *
 * KEYS pending, hash (for messages)   ARGV member, its score while it was worked on, due in (ms, ''
 * for never), revision as read
 */
const releaseScript = `${redisTimeLua}
local due = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not due or tonumber(due) ~= tonumber(ARGV[2]) then return end
if KEYS[2] and (redis.call('HGET', KEYS[2], 'revision') or ARGV[4]) ~= ARGV[4] then redis.call('ZADD', KEYS[1], now, ARGV[1])
elseif ARGV[3] == '' then redis.call('ZREM', KEYS[1], ARGV[1])
else redis.call('ZADD', KEYS[1], now + ARGV[3], ARGV[1]) end
`;

/**
 * Finds members that are overdue. A member that is being worked on keeps its score: a new score
 * would look like a wake-up.
 *
 * KEYS pending   ARGV the most members, overdue by at least (ms)
 * → the members. Each one that isn't being worked on counts as overdue again only after that time.
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
 * Handles a clock of Redis that was set back, or a failover to a primary whose clock is behind.
 * Members that were scheduled by the former clock would wait too long, so all of them become due
 * now; each handler then decides again when its member is due.
 *
 * KEYS pending, the latest time   ARGV how long they count as due (ms)
 * → by how much Redis's time was set back (ms), 0 if it wasn't
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
 * The sorted set of everything that must be done: `<kind> <id>`, each scored with the time from
 * which on it is due (Redis time in ms). The script that changes a record adds its members here in
 * the same step (the outbox pattern), so a process that dies right after it leaves nothing undone.
 * A queue's job is only a wake-up.
 */
export const pendingList = (key: Keys): string => key("pending");

export type Pending = ReturnType<typeof createPending>;

/**
 * The part of the pending list that belongs to one kind. The kind decides what an ID means and what
 * is done. `later` adds a job at once; a worker that takes it too early delays it until it is due.
 */
export function createPending(redis: RedisClient, key: Keys, kind: string) {
  const list = pendingList(key);
  const runTake = defineScript(redis, "gatehouseTakePending", takeScript);
  const runRelease = defineScript(redis, "gatehouseReleasePending", releaseScript);
  const listeners = new Set<(id: string) => void>();
  const wake = (id: string): void => listeners.forEach((listener) => listener(id));
  const memberOf = (id: string): string => `${kind} ${id}`;

  return {
    kind,
    list,
    /** The member as scripts add it to the list. */
    memberOf,
    /** Tells the listeners that this process has put the ID on the list, so that a job is added. */
    wake,
    onWake: (listener: (id: string) => void) => void listeners.add(listener),

    async later(id: string, inMs: number): Promise<void> {
      await redis.zadd(list, Math.ceil((await redisNow(redis)) + inMs), memberOf(id));
      wake(id);
    },

    /** Puts IDs back that somebody removed from the list by hand. The relay adds their jobs. */
    async restore(ids: readonly string[]): Promise<void> {
      if (ids.length === 0) return;
      const now = await redisNow(redis);
      await redis.zadd(list, "NX", ...ids.flatMap((id) => [now, memberOf(id)]));
    },

    /**
     * Starts work on an ID. Resolves with the score that marks it as being worked on; when it isn't
     * due yet, with the time when it is (Redis time) and how long until then (ms); undefined when
     * it isn't on the list.
     */
    async take(
      id: string,
    ): Promise<{ mark: string } | { dueAt: number; waitMs: number } | undefined> {
      const taken = (await runTake([list], [memberOf(id)])) as [string, string?, string?];
      const [state, score = "", waitMs] = taken;
      if (state === "gone") return undefined;
      return state === "later" ? { dueAt: Number(score), waitMs: Number(waitMs) } : { mark: score };
    },

    /**
     * Takes the ID off the list, or makes it due again in `inMs`. It stays due as it is when it was
     * woken again, or its hash changed, after it was taken.
     */
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

    /** When the ID is due next (Redis time). Undefined when it isn't on the list. */
    async dueAt(id: string): Promise<number | undefined> {
      const score = await redis.zscore(list, memberOf(id));
      return score === null ? undefined : Number(score);
    },

    async remove(id: string): Promise<void> {
      await redis.zrem(list, memberOf(id));
    },

    /** How many IDs of this kind are on the list, due or not. It reads the whole list. */
    depth: async (): Promise<number> => (await readPending(redis, key)).get(kind)?.length ?? 0,

    /** The given IDs that are on the list, due or not. */
    async among(ids: readonly string[]): Promise<Set<string>> {
      if (ids.length === 0) return new Set();
      const due = await redis.zmscore(list, ...ids.map(memberOf));
      return new Set(ids.filter((_, index) => due[index] !== null));
    },
  };
}

/** The IDs on the list by kind, each in the order in which they are due. */
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

/** Finds what is overdue: either its job is missing, or it has been running for long. */
export function createOverdue(redis: RedisClient, key: Keys) {
  const run = defineScript(redis, "gatehouseOverdue", overdueScript);
  return async (most: number, byMs: number) => {
    const members = (await run([pendingList(key)], [most, byMs])) as string[];
    return members.map(parseMember);
  };
}

/**
 * Makes everything due that was scheduled for later, if Redis's clock was set back since any
 * process last called this. Resolves with by how much it was set back (ms), 0 if it wasn't. Members
 * count as overdue by `byMs` then, so that their jobs are added at once.
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
