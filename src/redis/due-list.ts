import {
  defineMark,
  defineScript,
  type Fields,
  fieldsNamed,
  type RedisClient,
  redisNow,
  redisTimeLua,
} from "./redis.ts";
import { setTimeout as sleep } from "node:timers/promises";
import { within } from "../deadline.ts";
import type { Log } from "../log/log.ts";
import { messageOf } from "../errors.ts";

/** KEYS list   ARGV most, visibility timeout (ms) → when the next is due (ms, '' for none), then what was due */
const take = `${redisTimeLua}
local taken = {''}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, ARGV[1])) do
  redis.call('ZADD', KEYS[1], now + ARGV[2], id)
  taken[#taken + 1] = id
end
local first = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
if first[2] then taken[1] = tostring(math.max(0, math.ceil(first[2] - now))) end
return taken
`;

export type DueList = ReturnType<typeof createDueList>;

/**
 * IDs in a sorted set, each with its due time by Redis's clock: a process's own may be hours off. A taken ID is invisible to
 * others until the visibility timeout; if its process dies, it becomes due again. At-least-once: processing must be
 * idempotent.
 */
export function createDueList(redis: RedisClient, list: string) {
  const runTake = defineScript(redis, "gatehouseTakeDue", take);
  const listeners = new Set<(id?: string) => void>();

  /** The longest due first, and when the next one is due (ms; Infinity: none). */
  async function takeDue(most: number, visibilityTimeoutMs: number) {
    const [nextMs, ...ids] = (await runTake([list], [most, visibilityTimeoutMs])) as string[];
    return { ids, nextMs: nextMs ? Number(nextMs) : Infinity };
  }

  return {
    list,
    takeDue,
    take: async (most: number, visibilityTimeoutMs: number): Promise<string[]> =>
      (await takeDue(most, visibilityTimeoutMs)).ids,
    async later(id: string, inMs: number): Promise<void> {
      await redis.zadd(list, Math.ceil((await redisNow(redis)) + inMs), id);
    },
    /** It is due now, unless it is on the list. */
    async expect(id: string): Promise<void> {
      await redis.zadd(list, "NX", String(await redisNow(redis)), id);
    },
    async remove(id: string): Promise<void> {
      await redis.zrem(list, id);
    },
    depth: (): Promise<number> => redis.zcard(list),
    /** Those on the list, due or not. */
    async among(ids: readonly string[]): Promise<Set<string>> {
      if (ids.length === 0) return new Set();
      const due = await redis.zmscore(list, ...ids);
      return new Set(ids.filter((_, index) => due[index] !== null));
    },
    /** This process has put something on the list. */
    ring: (id?: string) => listeners.forEach((hear) => hear(id)),
    onRing: (hear: (id?: string) => void) => void listeners.add(hear),
  };
}

/** KEYS list, hash   ARGV id, revision, due in (ms, 0 for never), else in (ms) → 1, or 0 when its hash has another revision */
const settle = `${redisTimeLua}
local same = (redis.call('HGET', KEYS[2], 'revision') or ARGV[2]) == ARGV[2]
if same and ARGV[3] == '0' then redis.call('ZREM', KEYS[1], ARGV[1])
else redis.call('ZADD', KEYS[1], now + (same and ARGV[3] or ARGV[4]), ARGV[1]) end
return same and 1 or 0
`;

/** `<channel> <ts>`, as `createPostOnce` keeps it. */
export function placeIn(field = ""): { channelId: string; ts: string } | undefined {
  const [channelId, ts] = field.split(" ");
  return channelId && ts ? { channelId, ts } : undefined;
}

/**
 * What Slack shows, as a hash says: the marks of its messages by their keys, where its card is, and, of one that is edited as things
 * go on, what that shows. `formerCard`: the one before, where it was posted anew because Slack no longer lets it be edited.
 */
export function shownIn(fields: Fields) {
  const { card: at, "was:card": was, shown = "" } = fields;
  const [card, formerCard] = [placeIn(at), placeIn(was)];
  return {
    said: Object.fromEntries(fieldsNamed("said:", fields)),
    shown,
    ...(card ? { card } : {}),
    ...(formerCard ? { formerCard } : {}),
  };
}

/** The ID of the message for several that shows this one. */
export const sharedBy = ({ said }: Pick<ReturnType<typeof shownIn>, "said">): string | undefined =>
  /^shared (.+)/.exec(said["card"] ?? "")?.[1];

/** The IDs of what a message for several shows, in the order in which they joined. */
export const membersIn = (fields: Fields): readonly string[] =>
  fieldsNamed("member:", fields)
    .toSorted(([, a], [, b]) => Number(a) - Number(b))
    .map(([member]) => member);

/**
 * Messages owed to Slack: a due list of IDs, and for each ID a hash that also says what Slack shows of it. Every script
 * that changes a hash puts its ID on the list.
 */
export type Outbox = ReturnType<typeof createOutbox>;

export function createOutbox(redis: RedisClient, list: string, hashOf: (id: string) => string) {
  const due = createDueList(redis, list);
  const runSettle = defineScript(redis, "gatehouseDueSettle", settle);
  const runMark = defineMark(redis);
  return {
    ...due,
    hashOf,
    get: (id: string): Promise<Fields> => redis.hgetall(hashOf(id)),
    /** Off the list (0), or due in `inMs`. False, and due in `elseInMs`, when its hash has another revision by now: read again. */
    settle: async (id: string, ...how: [revision: number, inMs: number, elseInMs: number]) =>
      (await runSettle([list, hashOf(id)], [id, ...how])) === 1,
    /** Compare-and-set of one field ("" for none). */
    mark: async (id: string, field: string, before: string, value: string): Promise<boolean> =>
      (await runMark([hashOf(id)], [field, before, value])) === 1,
    async remember(id: string, fields: Record<string, string>): Promise<void> {
      await redis.hset(hashOf(id), fields);
    },
  };
}

/** What is done with the IDs of a due list. */
export interface DueWork {
  /** For the log: what failed, and what its IDs name. */
  name: string;
  of: string;
  due: Pick<DueList, "takeDue" | "onRing">;
  /** How many at a time. */
  atOnce: number;
  visibilityTimeoutMs(): number;
  /**
   * Ends with the ID off the list, or due later: then in how many milliseconds. What throws is due again after the visibility
   * timeout.
   */
  handle(id: string): Promise<number | undefined>;
}

export type Dispatcher = ReturnType<typeof startDispatcher>;

/**
 * Takes what is due and does it: at once what this process puts on a list, and what others left within `everyMs`. One ID is
 * never worked on twice at the same time here; two processes may work on the same one.
 */
export function startDispatcher(
  works: readonly DueWork[],
  options: { everyMs(): number; log: Log },
) {
  const closing = new AbortController();
  const running = Promise.all(works.map((work) => runWork(work, closing.signal, options)));
  return {
    /** Takes nothing more, and waits for what is in flight. */
    async close(deadlineMs: number): Promise<void> {
      closing.abort();
      await within(deadlineMs, running, () => undefined);
    },
  };
}

/** Resolves once the signal is aborted and what is in flight has ended. */
async function runWork(
  work: DueWork,
  closing: AbortSignal,
  { everyMs, log }: { everyMs(): number; log: Log },
): Promise<void> {
  const { due, atOnce, handle } = work;
  const inFlight = new Map<string, Promise<void>>();
  /** Of those in flight: put on the list again, or taken again, since they were begun. */
  const again = new Set<string>();
  let rest = new AbortController();
  const wake = () => rest.abort();
  closing.addEventListener("abort", wake);
  due.onRing((id) => {
    if (id !== undefined && inFlight.has(id)) again.add(id);
    else wake();
  });
  while (!closing.aborted) {
    const pauseMs = Math.min(everyMs(), await takeDue());
    if (pauseMs <= 0 || closing.aborted) continue;
    await Promise.allSettled([sleep(pauseMs, undefined, { signal: rest.signal })]);
    rest = new AbortController();
  }
  await Promise.all(inFlight.values());

  /** Resolves with when to look again (ms). */
  async function takeDue(): Promise<number> {
    const room = atOnce - inFlight.size;
    if (room <= 0) return Infinity;
    try {
      const { ids, nextMs } = await due.takeDue(room, work.visibilityTimeoutMs());
      for (const id of ids)
        if (inFlight.has(id)) again.add(id);
        else begin(id);
      return nextMs;
    } catch {
      // Redis is unavailable: its connection reports it, and the lists persist
      return Infinity;
    }
  }

  function begin(id: string): void {
    const mine = handle(id)
      .catch((error: unknown) => log.error(`${work.name}.failed`, { [work.of]: id, error }))
      .then((dueInMs) => {
        const wasFull = inFlight.size >= atOnce;
        inFlight.delete(id);
        if (again.delete(id) && !closing.aborted) begin(id);
        else if (wasFull) wake();
        else if (typeof dueInMs === "number") setTimeout(wake, dueInMs).unref();
      });
    inFlight.set(id, mine);
  }
}

export type Rounds = ReturnType<typeof startRounds>;

/** A repeated task, never twice at once in this process; a failure is logged and the next round runs. */
export function startRounds(
  name: string,
  everyMs: number,
  round: () => Promise<unknown>,
  log: Log,
) {
  let running: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;
  let isClosed = false;

  async function run(): Promise<void> {
    clearTimeout(timer);
    try {
      await round();
    } catch (error) {
      log.warn("round.failed", { name, why: messageOf(error) });
    }
    running = undefined;
    if (!isClosed) next();
  }

  function next(): void {
    // Jitter, so that processes don't run it at the same moment
    timer = setTimeout(() => void now(), everyMs * (0.75 + Math.random() / 2));
  }

  /** Runs a round now, or joins the running one. */
  const now = (): Promise<void> => (running ??= run());

  next();
  return {
    now,
    async close(): Promise<void> {
      isClosed = true;
      clearTimeout(timer);
      await running;
    },
  };
}

/** True in one process per interval; if that process dies, another does the next interval. */
export async function takeTurn(
  redis: RedisClient,
  key: (...parts: string[]) => string,
  what: string,
  everyMs: number,
): Promise<boolean> {
  const ms = Math.max(1, Math.round(everyMs * 0.7));
  return (await redis.set(key("turn", what), "taken", "PX", ms, "NX")) !== null;
}
