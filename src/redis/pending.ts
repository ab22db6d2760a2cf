import {
  type Keys,
  type RedisClient,
  defineScript,
  redisNow,
  redisTimeLua,
  setBackMs,
} from "./redis.ts";

/**
 * How long a member that is being worked on is left to its process (ms). After that, the process
 * counts as dead, and another one may begin. One that is slow goes on beside it, which is harmless:
 * each move of a request is a compare-and-set, and each post has a mark.
 */
const inHandMs = 5_000;

/**
 * Lua code for scripts that have `now`. A score with a fraction marks a member as being worked on
 * since that time, .5 as it was taken and .75 once it was woken meanwhile; all other scores are whole
 * numbers. `isInHand` tells whether its process still counts as alive. `wake` makes a member due: the
 * process that works on it begins again afterwards, so that two never work on it at once.
 */
export const wakeLua = `
local function isInHand(score)
  return score % 1 ~= 0 and score <= now + ${setBackMs} and now - score < ${inHandMs}
end
local function wake(list, member)
  local score = tonumber(redis.call('ZSCORE', list, member) or '0')
  local due = now
  if isInHand(score) then due = string.format('%.2f', math.floor(score) + 0.75) end
  redis.call('ZADD', list, due, member)
end
`;

/**
 * Makes a member due.
 *
 * KEYS pending   ARGV member
 */
const wakeScript = `${redisTimeLua}${wakeLua}wake(KEYS[1], ARGV[1])`;

/**
 * Starts work on a member that is due.
 *
 * KEYS pending   ARGV member
 * → {'gone'}, {'busy'}, {'later', its score, in (ms)}, or {'taken', its new score}
 */
const takeScript = `${redisTimeLua}${wakeLua}
local due = tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1]) or '')
if not due then return {'gone'} end
if isInHand(due) then return {'busy'} end
if due % 1 == 0 and due > now then return {'later', tostring(due), tostring(math.ceil(due - now))} end
local taken = string.format('%.1f', now + 0.5)
redis.call('ZADD', KEYS[1], taken, ARGV[1])
return {'taken', taken}
`;

/**
 * For scripts with `now` that end the work on a member: whether `score` is that of the work that
 * began with `mark`, and whether the member was woken meanwhile. `keepDue` makes it due in `wait`
 * (ms, '' for never), and returns what the script returns.
 */
export const endWorkLua = `
local function isOurs(score, mark) return score % 1 ~= 0 and math.floor(score) == math.floor(mark) end
local function isWoken(score) return score % 1 == 0.75 end
local function keepDue(list, member, wait)
  if wait == '' then
    redis.call('ZREM', list, member)
    return {}
  end
  redis.call('ZADD', list, now + wait, member)
  return {tostring(now + wait), tostring(wait)}
end
`;

/**
 * Ends the work on a member. One that was woken meanwhile is due at once. So is one whose hash has
 * another revision than the one that was read, because a change to a member that is due anyway may
 * leave its score as it was.
 *
 * KEYS pending, hash (for messages)   ARGV member, its score while it was worked on, due in (ms, ''
 * for never), revision as read
 * → its score and in how long it is due (ms); empty when it is off the list, or another process has it
 */
const releaseScript = `${redisTimeLua}${endWorkLua}
local score = tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1]) or '')
if not score or not isOurs(score, tonumber(ARGV[2])) then return {} end
local isChanged = KEYS[2] and (redis.call('HGET', KEYS[2], 'revision') or ARGV[4]) ~= ARGV[4]
local wait = ARGV[3]
if isWoken(score) or isChanged then wait = 0 end
return keepDue(KEYS[1], ARGV[1], wait)
`;

/**
 * Finds members that are overdue. A member that is being worked on keeps its score, so that its
 * process still releases it.
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
 * A queue's job is only a wake-up. Scores with a fraction are explained at `wakeLua`.
 */
export const pendingList = (key: Keys): string => key("pending");

export type Pending = ReturnType<typeof createPending>;

/** When an ID is due: the Redis time (ms), and how long that is from now (ms). */
export interface Due {
  dueAt: number;
  waitMs: number;
}

/** Reads what a script returns that ends the work on a member. */
export function dueOf(answer: unknown): Due | undefined {
  const [score, waitMs] = answer as readonly string[];
  return score === undefined ? undefined : { dueAt: Number(score), waitMs: Number(waitMs) };
}

/**
 * The part of the pending list that belongs to one kind. The kind decides what an ID means and what
 * is done. `later` adds a job at once; a worker that takes it too early delays it until it is due.
 */
export function createPending(redis: RedisClient, key: Keys, kind: string) {
  const list = pendingList(key);
  const runWake = defineScript(redis, "gatehouseWakePending", wakeScript);
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
      if (inMs === 0) await runWake([list], [memberOf(id)]);
      else await redis.zadd(list, Math.ceil((await redisNow(redis)) + inMs), memberOf(id));
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
     * it isn't on the list. Busy while a process that counts as alive works on it, and begins again
     * where it was woken meanwhile.
     */
    async take(id: string): Promise<{ mark: string } | Due | { isBusy: true } | undefined> {
      const taken = (await runTake([list], [memberOf(id)])) as [string, string?, string?];
      const [state, score = "", waitMs] = taken;
      if (state === "gone") return undefined;
      if (state === "busy") return { isBusy: true };
      return state === "later" ? { dueAt: Number(score), waitMs: Number(waitMs) } : { mark: score };
    },

    /**
     * Takes the ID off the list, or makes it due again in `inMs`. It stays due as it is when it was
     * woken again, or its hash changed, after it was taken. Resolves with when it is due.
     */
    async release(
      id: string,
      mark: string,
      inMs?: number,
      read?: { hash: string; revision: number | string },
    ): Promise<Due | undefined> {
      const keys = read ? [list, read.hash] : [list];
      const due = inMs === undefined ? "" : Math.ceil(inMs);
      return dueOf(await runRelease(keys, [memberOf(id), mark, due, read?.revision ?? ""]));
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
