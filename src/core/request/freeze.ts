import * as z from "zod";
import { type AuditRecord, Trail } from "../../audit/trail.ts";
import { defineRecord, objectOf } from "../../redis/define-record.ts";
import { createPending, wakeLua } from "../../redis/pending.ts";
import {
  type Keys,
  type RedisClient,
  defineScript,
  isBeforeSetBack,
  redisNow,
  redisTimeLua,
} from "../../redis/redis.ts";

/**
 * The reasons for which Gatehouse freezes by itself, the weightiest last. A person's own reason
 * weighs less than each of them.
 */
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
  /** The user ID of a person. Undefined when Gatehouse froze. */
  id?: string;
  /** The person's name, or "Gatehouse". */
  by: string;
  /** Undefined when a person froze. */
  cause?: Cause;
  reason: string;
  /** Redis time (ms); 0 when it isn't known. */
  at: number;
  /** When its present reason was found (Redis, ms); 0 when it isn't known. */
  changedAt: number;
  /** The reason of a person who froze before Gatehouse did, in words. It is part of `reason`. */
  before?: string;
}

export const freezeRecord = defineRecord({
  name: "freeze",
  schema: objectOf<Freeze>({
    id: z.string().exactOptional(),
    by: z.string(),
    cause: z.enum(causes).exactOptional(),
    reason: z.string(),
    at: z.number(),
    changedAt: z.number(),
    before: z.string().exactOptional(),
  }),
});

/**
 * Reads a stored freeze. One that can't be read still freezes, and weighs the most, so that no
 * further reason takes its place.
 */
export const parseFreeze = (text: string, key: Keys): Freeze =>
  freezeRecord.parse(text, key("freeze")) ?? {
    by: "Gatehouse",
    cause: "sends-lost",
    reason: "the freeze in Redis can't be read",
    at: 0,
    changedAt: 0,
  };

/** A freeze without its times. */
type Reason = Omit<Freeze, "at" | "changedAt">;

interface NewFreeze extends Omit<Reason, "before"> {
  sends?: readonly string[];
  /** The interaction that freezes. When it is handled again, that counts as the same freeze. */
  act?: string | undefined;
}

/** Who ends a freeze, and with which interaction, so that handling it again ends no other one. */
interface ThawRequest {
  id: string;
  name: string;
  act?: string | undefined;
  /** How long ago the person asked (ms). What began since then is a freeze they don't know of. */
  askedAgoMs?: number;
}

type Thawed =
  | { kind: "thawed"; ended: Freeze }
  /** The freeze that stands began after the person asked, or got another reason since. */
  | { kind: "newer"; stands: Freeze }
  | { kind: "not-frozen" };

/** The news of a freeze, or of the end of one. People are told, and messages then show it. */
type FreezeNews =
  | ({ is: "frozen" } & Pick<Freeze, "by" | "reason">)
  | { is: "thawed"; by: string; ended: Pick<Freeze, "by" | "reason"> };

/** The audit record of a freeze or a thaw. */
type FreezeRecord = { what: "freeze" | "thaw"; who: string } & AuditRecord;

const freezeAndReason = { by: z.string(), reason: z.string() };

export const freezeNewsRecord = defineRecord<FreezeNews>({
  name: "news of a freeze",
  schema: z.discriminatedUnion("is", [
    z.looseObject({ is: z.literal("frozen"), ...freezeAndReason }),
    z.looseObject({
      is: z.literal("thawed"),
      by: z.string(),
      ended: z.looseObject(freezeAndReason),
    }),
  ]),
});

/** The kind of pending work with this one ID: the list of news that nobody has announced yet. */
const newsKind = "freeze-news";
const newsId = "all";

/** How long an interaction is known to have frozen or thawed (ms): longer than it is recovered. */
const actKeptMs = 24 * 3600_000;

/**
 * Freezes, changes the reason, or thaws. The audit record and what people must be told are written
 * in the same step, because the process may die right after it. An act that already changed
 * something changes nothing more.
 *
 * KEYS freeze, audit, pending, news, act, missing sends, checked sends
 * ARGV the freeze that stands, or ''; the next one, or '' for none; audit record; news; pending
 *      member; how long the act is known (ms), 0 for none; ...sends that the freeze names
 * → 1, or 0 when another freeze stands
 */
const swapScript = `${redisTimeLua}${wakeLua}
if redis.call('EXISTS', KEYS[5]) == 1 then return 1 end
if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then return 0 end
if ARGV[2] == '' then
  redis.call('DEL', KEYS[1])
  redis.call('SUNIONSTORE', KEYS[7], KEYS[7], KEYS[6])
  redis.call('DEL', KEYS[6])
else
  redis.call('SET', KEYS[1], ARGV[2])
  for n = 7, #ARGV do redis.call('SADD', KEYS[6], ARGV[n]) end
end
local id = redis.call('XADD', KEYS[2], '*', 'at', now, 'record', ARGV[3])
redis.call('RPUSH', KEYS[4], id .. ' ' .. ARGV[4])
wake(KEYS[3], ARGV[5])
if ARGV[6] ~= '0' then redis.call('SET', KEYS[5], ARGV[1], 'PX', ARGV[6]) end
return 1
`;

const weightOf = ({ cause }: Pick<Freeze, "cause">) => (cause ? causes.indexOf(cause) : -1);

/**
 * Resolves what changes are frozen for once a further reason is found. Undefined when the freeze
 * that stands says enough.
 */
function outweighing(stands: Freeze, next: Reason): Reason | undefined {
  const [weighs, more] = [weightOf(stands), weightOf(next)];
  if (more < weighs) return undefined;
  if (more === weighs) {
    // Each worker knows only its own sends, and a thaw marks the sends of all workers as checked.
    if (next.cause !== "sends-lost" || stands.reason.includes(next.reason)) return undefined;
    return { ...stands, reason: `${next.reason}; ${stands.reason}` };
  }
  const standingReason = stands.reason && `: ${stands.reason}`;
  const before = stands.cause
    ? stands.before
    : `${stands.by} froze all changes before${standingReason}`;
  if (before === undefined) return next;
  return { ...next, reason: `${next.reason}; ${before}`, before };
}

/** Stops every change that was not sent yet, for all processes. */
export function createFreeze(redis: RedisClient, key: Keys) {
  const runSwap = defineScript(redis, "gatehouseFreeze", swapScript);
  const pending = createPending(redis, key, newsKind);
  const newsKey = key("freeze", "news");
  const actKey = (kind: "freeze" | "thaw", act = "") => key("used", kind, act);

  const trail = new Trail(redis, key);

  /**
   * Reads the freeze that stands, as text; undefined when none does. `earlierText` is the one that this
   * act found when it was handled before, and undefined when it wasn't or changed nothing.
   */
  async function readFreeze(kind: "freeze" | "thaw", act: string | undefined) {
    const [stands, earlierText] = await redis.mget(key("freeze"), actKey(kind, act));
    return { text: stands ?? undefined, earlierText: earlierText ?? undefined };
  }

  /** Puts `next` in the place of a freeze. False when another one stands there by now. */
  async function swapFreeze(swap: {
    before: string;
    next?: Freeze;
    act: string | undefined;
    record: FreezeRecord;
    news: FreezeNews;
    sends?: readonly string[];
  }): Promise<boolean> {
    const { before, next, act, record, news, sends = [] } = swap;
    const keys = [
      key("freeze"),
      key("audit"),
      pending.list,
      newsKey,
      actKey(record.what, act),
      key("sends", "missing"),
      key("sends", "looked-at"),
    ];
    const args = [
      before,
      next ? freezeRecord.write(next) : "",
      JSON.stringify(record),
      freezeNewsRecord.write(news),
      pending.memberOf(newsId),
      act === undefined ? 0 : actKeptMs,
      ...sends,
    ];
    const isSwapped = (await runSwap(keys, args)) === 1;
    if (isSwapped) pending.wake(newsId);
    return isSwapped;
  }

  return {
    /**
     * Adds an audit record of something that moves no request: a refusal, a read of the audit itself.
     */
    note: (record: AuditRecord) => trail.append(record),
    noteOnce: (name: string, record: AuditRecord) => trail.appendOnce(name, record),

    async freezeState(): Promise<Freeze | undefined> {
      const text = await redis.get(key("freeze"));
      return text === null ? undefined : parseFreeze(text, key);
    },

    /**
     * Freezes changes: from the next claim on, nothing is sent. Of several reasons the weightiest
     * is kept, whichever was found first; false when the freeze that stands weighs as much. `sends`
     * are in a ledger and not in the journal, and a thaw marks them as checked.
     */
    async freeze({ sends = [], act, ...freeze }: NewFreeze): Promise<boolean> {
      const { by: frozenBy, reason } = freeze;
      const record = { what: "freeze", who: freeze.id ?? frozenBy, why: reason } as const;
      for (;;) {
        const { text, earlierText } = await readFreeze("freeze", act);
        if (earlierText !== undefined) return true;
        const stands = text === undefined ? undefined : parseFreeze(text, key);
        const kept = stands ? outweighing(stands, freeze) : freeze;
        if (kept === undefined) return false;
        const changedAt = await redisNow(redis);
        const next = { ...kept, at: stands?.at ?? changedAt, changedAt };
        const news = { is: "frozen", by: frozenBy, reason } as const;
        if (await swapFreeze({ before: text ?? "", next, act, record, news, sends })) return true;
      }
    },

    /**
     * Ends the freeze that the person could know of when they asked, and marks the sends that it
     * names as checked.
     */
    async thaw({ id, name, act, askedAgoMs = 0 }: ThawRequest): Promise<Thawed> {
      const began = performance.now();
      for (;;) {
        const { text, earlierText } = await readFreeze("thaw", act);
        // After this act ended a freeze, another one may have begun.
        if (earlierText !== undefined)
          return text === undefined
            ? { kind: "thawed", ended: parseFreeze(earlierText, key) }
            : { kind: "newer", stands: parseFreeze(text, key) };
        if (text === undefined) return { kind: "not-frozen" };
        const stands = parseFreeze(text, key);
        const { by: frozenBy, reason, at, changedAt } = stands;
        // Rounded down, like Redis's time, so that a freeze of the same millisecond was before.
        const agoMs = Math.floor(askedAgoMs + performance.now() - began);
        const now = await redisNow(redis);
        if (changedAt > now - agoMs && !isBeforeSetBack(changedAt, now))
          return { kind: "newer", stands };
        const ended = { by: stands.id ?? frozenBy, at, why: reason };
        const record = { what: "thaw", who: id, ended } as const;
        const news = { is: "thawed", by: name, ended: { by: frozenBy, reason } } as const;
        if (await swapFreeze({ before: text, act, record, news }))
          return { kind: "thawed", ended: stands };
      }
    },

    freezeNews: {
      pending,
      /**
       * Resolves with the news that nobody has announced yet, oldest first, each with its own ID.
       * `news` is undefined for what can't be read.
       */
      async owed(): Promise<readonly { id: string; news: FreezeNews | undefined; text: string }[]> {
        const texts = await redis.lrange(newsKey, 0, "-1");
        return texts.map((text) => {
          const end = text.indexOf(" ");
          const news = freezeNewsRecord.parse(text.slice(end + 1), newsKey);
          return { id: text.slice(0, end), news, text };
        });
      },
      async forget({ text }: { text: string }): Promise<void> {
        await redis.lrem(newsKey, 1, text);
      },
    },

    /**
     * Tells which of these sends a freeze has named, whether that freeze still stands or an
     * administrator has ended it.
     */
    async named(ids: readonly string[]): Promise<Set<string>> {
      if (ids.length === 0) return new Set();
      const flagsPerSet = await Promise.all(
        ["missing", "looked-at"].map((set) => redis.smismember(key("sends", set), ...ids)),
      );
      return new Set(ids.filter((_, index) => flagsPerSet.some((flags) => flags[index] === 1)));
    },
  };
}
