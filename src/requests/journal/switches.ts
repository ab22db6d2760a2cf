import { randomBytes } from "node:crypto";
import { isOlderPolicy } from "../../audit/sealer.ts";
import { createTrail } from "../../audit/trail.ts";
import {
  defineScript,
  type Keys,
  type RedisClient,
  redisNow,
  redisTimeLua,
  type Fields,
} from "../../redis/redis.ts";
import { createOutbox, membersIn, type Outbox, shownIn } from "../../redis/due-list.ts";

/** Why Gatehouse freezes by itself: what a person must know first comes last. A person's own reason weighs less than each. */
const causes = [
  "key-refused",
  "trail-unsealed",
  "ledger-unwritten",
  "certificate-untrusted",
  "records-lost",
  "sends-lost",
] as const;
type Cause = (typeof causes)[number];

export interface Freeze {
  /** User ID of a person. */
  id?: string;
  /** The person's name, or "Gatehouse". */
  by: string;
  /** Undefined for a person's. */
  cause?: Cause;
  reason: string;
  at: number;
  /** Of a person who froze before Gatehouse did, in words; part of `reason`. */
  before?: string;
}

interface NewFreeze extends Omit<Freeze, "at" | "before"> {
  sends?: readonly string[];
}

/**
 * KEYS freeze, audit, missing sends
 * ARGV the freeze that stands, or '', the new one, its audit record, ...sends that it names → 1, or 0 when another one stands
 */
const freezeScript = `${redisTimeLua}
if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2])
redis.call('XADD', KEYS[2], '*', 'at', now, 'record', ARGV[3])
for n = 4, #ARGV do redis.call('SADD', KEYS[3], ARGV[n]) end
return 1
`;

const weightOf = ({ cause }: Pick<Freeze, "cause">) => (cause ? causes.indexOf(cause) : -1);

/** What changes are frozen for once a further reason is found; undefined when the one that stands says enough. */
function outweighing(stands: Freeze, next: Omit<Freeze, "at">): Omit<Freeze, "at"> | undefined {
  const [weighs, more] = [weightOf(stands), weightOf(next)];
  if (more < weighs) return undefined;
  if (more === weighs) {
    // Each worker knows its own sends, and a thaw marks all of them as checked
    if (next.cause !== "sends-lost" || stands.reason.includes(next.reason)) return undefined;
    return { ...stands, reason: `${next.reason}; ${stands.reason}` };
  }
  const theirs = stands.reason && `: ${stands.reason}`;
  const before = stands.cause ? stands.before : `${stands.by} froze all changes before${theirs}`;
  if (before === undefined) return next;
  return { ...next, reason: `${next.reason}; ${before}`, before };
}

/** Freeze and throttling. */
export function createSwitches(redis: RedisClient, key: Keys) {
  const swapFreeze = defineScript(redis, "gatehouseFreeze", freezeScript);

  /** Adds an audit record of something that is no move: a refusal, a freeze, a read of the audit itself. */
  const note = createTrail(redis, key).append;

  return {
    note,

    async freezeState(): Promise<Freeze | undefined> {
      const text = await redis.get(key("freeze"));
      return text ? (JSON.parse(text) as Freeze) : undefined;
    },

    /**
     * From the next claim on, nothing is sent. Of several reasons the weightiest is kept, whichever was found first; false when
     * the one that stands weighs as much. `sends` are in a ledger and not in the journal: a thaw marks them as checked.
     */
    async freeze({ sends = [], ...freeze }: NewFreeze): Promise<boolean> {
      const record = { what: "freeze", who: freeze.id ?? freeze.by, why: freeze.reason };
      const keys = [key("freeze"), key("audit"), key("sends", "missing")];
      for (;;) {
        const text = (await redis.get(key("freeze"))) ?? "";
        const stands = text === "" ? undefined : (JSON.parse(text) as Freeze);
        const kept = stands ? outweighing(stands, freeze) : freeze;
        if (kept === undefined) return false;
        const next = { ...kept, at: stands?.at ?? (await redisNow(redis)) };
        const args = [text, JSON.stringify(next), JSON.stringify(record), ...sends];
        if ((await swapFreeze(keys, args)) === 1) return true;
      }
    },

    async thaw(by: string): Promise<boolean> {
      const [missing, looked] = [key("sends", "missing"), key("sends", "looked-at")];
      const ended = redis.multi().del(key("freeze"));
      const [frozen] = (await ended.sunionstore(looked, looked, missing).del(missing).exec()) ?? [];
      if (frozen?.[1] !== 1) return false;
      await note({ what: "thaw", who: by });
      return true;
    },

    /** What the journal knows of these sends; undefined for a missing request. One failed read fails them all. */
    claimsOf: (sends: readonly { request: string; attempt: number }[]) =>
      Promise.all(
        sends.map(async ({ request, attempt }) => {
          const fields = ["attempt", `claim:${attempt}`];
          const [attempts, nonce] = await redis.hmget(key("request", request), ...fields);
          return attempts ? { attempts: Number(attempts), nonce: nonce ?? undefined } : undefined;
        }),
      ),
    /** Which of these sends a freeze has named: it stands, or an administrator has ended it. */
    async named(ids: readonly string[]): Promise<Set<string>> {
      if (ids.length === 0) return new Set();
      const found = await Promise.all(
        ["missing", "looked-at"].map((set) => redis.smismember(key("sends", set), ...ids)),
      );
      return new Set(ids.filter((_, index) => found.some((flags) => flags[index] === 1)));
    },

    /** Whether this policy was superseded by ours. */
    isOlderPolicy: (version: string, ours: string): Promise<boolean> =>
      isOlderPolicy(redis, key, version, ours),

    /** True once in this time, across all processes. */
    async useOnce(name: string, forMs: number): Promise<boolean> {
      return (await redis.set(key("used", name), "1", "PX", forMs, "NX")) !== null;
    },

    /** For how long calls pause (ms). */
    async throttledMs(): Promise<number> {
      return Math.max(0, await redis.pttl(key("throttled")));
    },

    async throttle(forMs: number): Promise<void> {
      await redis.set(key("throttled"), "1", "PX", Math.max(1, Math.ceil(forMs)));
    },
  };
}

/**
 * A request joins the open card of its place, or begins one. Not when its own card was posted, or may have been.
 *
 * KEYS request, open, new card, outbox
 * ARGV request, id for a new card, place, how long a card takes more (ms), how many at most, gathering time (ms), how long
 *      it is kept (ms), key prefix of cards
 * → the id of the card, '' when the request can't join
 */
const join = `${redisTimeLua}
local r = redis.call('HMGET', KEYS[1], 'state', 'said:card', 'alone')
if not r[1] or (r[2] or '') ~= '' or r[3] then return '' end
local id = redis.call('GET', KEYS[2])
local size = id and tonumber(redis.call('HGET', ARGV[8] .. id, 'size') or '')
if not size or size >= tonumber(ARGV[5]) then
  id = ARGV[2]
  redis.call('HSET', KEYS[3], 'place', ARGV[3], 'createdAt', now)
  redis.call('SET', KEYS[2], id, 'PX', ARGV[4])
  redis.call('ZADD', KEYS[4], now + ARGV[6], id)
else
  redis.call('ZADD', KEYS[4], 'NX', now, id)
end
local card = ARGV[8] .. id
redis.call('HSET', card, 'member:' .. ARGV[1], redis.call('HINCRBY', card, 'size', 1))
redis.call('HINCRBY', card, 'revision', 1)
redis.call('PEXPIRE', card, ARGV[7])
redis.call('HSET', KEYS[1], 'said:card', 'shared ' .. id)
return id
`;

/** KEYS request, outbox of requests   ARGV request, id of the card → 1 when it has left */
const leave = `${redisTimeLua}
if redis.call('HGET', KEYS[1], 'said:card') ~= 'shared ' .. ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], 'said:card', '', 'alone', '1')
redis.call('HDEL', KEYS[1], 'card')
redis.call('ZADD', KEYS[2], now, ARGV[1])
return 1
`;

/** How long a card takes more requests (ms), and how many: a phone shows no more, and Slack takes some 13,000 characters. */
const opensForMs = 10_000;
const mostMembers = 60;
/** Before it is posted, so that one post serves all (ms). */
const gatherMs = 700;
const keptMs = 7 * 24 * 3600_000;

/** The size of a card that no request joins any more. */
const dissolved = "";

/** One message for several requests of a place where more is due than Slack takes. */
export interface SharedCard {
  id: string;
  place: { channelId: string; threadTs?: string };
  createdAt: number;
  revision: number;
  /** IDs of its requests, in the order in which they joined; those that have left too. */
  memberIds: readonly string[];
  /** Its requests get messages of their own again. */
  isDissolved: boolean;
  delivered: ReturnType<typeof shownIn>;
}

/** Undefined when it is gone. */
export function parseSharedCard(id: string, fields: Fields): SharedCard | undefined {
  if (!fields["place"]) return undefined;
  return {
    id,
    place: JSON.parse(fields["place"]) as SharedCard["place"],
    createdAt: Number(fields["createdAt"]),
    revision: Number(fields["revision"]),
    memberIds: membersIn(fields),
    isDissolved: fields["size"] === dissolved,
    delivered: shownIn(fields),
  };
}

/** `requests`: their outbox. */
export function createSharedCards(redis: RedisClient, key: Keys, requests: Outbox) {
  const runJoin = defineScript(redis, "gatehouseShareJoin", join);
  const runLeave = defineScript(redis, "gatehouseShareLeave", leave);
  const cardKey = (id: string) => key("shared", id);
  const openKey = ({ channelId, threadTs = "" }: SharedCard["place"]) =>
    key("sharing", channelId, threadTs);
  const outbox = createOutbox(redis, key("shared-cards"), cardKey);
  return {
    outbox,

    /** False when the request can't join. */
    async join(requestId: string, place: SharedCard["place"]): Promise<boolean> {
      const id = `s-${randomBytes(9).toString("base64url")}`;
      const keys = [requests.hashOf(requestId), openKey(place), cardKey(id), outbox.list];
      const limits = [opensForMs, mostMembers, gatherMs, keptMs];
      const args = [requestId, id, JSON.stringify(place), ...limits, cardKey("")];
      const joined = await runJoin(keys, args);
      outbox.ring();
      return joined !== "";
    },

    /** One of its requests has moved. Once it is shown, an end waits for no edit. */
    async touch(id: string, isEnd: boolean): Promise<void> {
      const [place, mark] = await redis.hmget(cardKey(id), "place", "said:card");
      if (!place) return;
      await redis.multi().hincrby(cardKey(id), "revision", 1).pexpire(cardKey(id), keptMs).exec();
      await (isEnd && mark ? outbox.later(id, 0) : outbox.expect(id));
      outbox.ring(id);
    },

    /** No request joins it any more. False when it grew beyond `size`. */
    async dissolve({ id }: SharedCard, size?: number): Promise<boolean> {
      if (size !== undefined) return outbox.mark(id, "size", String(size), dissolved);
      await outbox.remember(id, { size: dissolved });
      return true;
    },

    /** The request gets messages of its own. */
    async leave(requestId: string, id: string): Promise<void> {
      await runLeave([requests.hashOf(requestId), requests.list], [requestId, id]);
      requests.ring();
    },
  };
}
