import { createTrail } from "../../audit/trail.ts";
import {
  type Keys,
  type RedisClient,
  defineScript,
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
  at: number;
  /** The reason of a person who froze before Gatehouse did, in words. It is part of `reason`. */
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

/**
 * Resolves what changes are frozen for once a further reason is found. Undefined when the freeze
 * that stands says enough.
 */
function outweighing(stands: Freeze, next: Omit<Freeze, "at">): Omit<Freeze, "at"> | undefined {
  const [weighs, more] = [weightOf(stands), weightOf(next)];
  if (more < weighs) return undefined;
  if (more === weighs) {
    // Each worker knows only its own sends, and a thaw marks the sends of all workers as checked.
    if (next.cause !== "sends-lost" || stands.reason.includes(next.reason)) return undefined;
    return { ...stands, reason: `${next.reason}; ${stands.reason}` };
  }
  const theirs = stands.reason && `: ${stands.reason}`;
  const before = stands.cause ? stands.before : `${stands.by} froze all changes before${theirs}`;
  if (before === undefined) return next;
  return { ...next, reason: `${next.reason}; ${before}`, before };
}

/** Stops every change that was not sent yet, for all processes. */
export function createFreeze(redis: RedisClient, key: Keys) {
  const swapFreeze = defineScript(redis, "gatehouseFreeze", freezeScript);

  /**
   * Adds an audit record of something that moves no request: a refusal, a freeze, a read of the
   * audit itself.
   */
  const note = createTrail(redis, key).append;

  return {
    note,

    async freezeState(): Promise<Freeze | undefined> {
      const text = await redis.get(key("freeze"));
      return text ? (JSON.parse(text) as Freeze) : undefined;
    },

    /**
     * Freezes changes: from the next claim on, nothing is sent. Of several reasons the weightiest
     * is kept, whichever was found first; false when the freeze that stands weighs as much. `sends`
     * are in a ledger and not in the journal, and a thaw marks them as checked.
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

    /**
     * Tells which of these sends a freeze has named, whether that freeze still stands or an
     * administrator has ended it.
     */
    async named(ids: readonly string[]): Promise<Set<string>> {
      if (ids.length === 0) return new Set();
      const found = await Promise.all(
        ["missing", "looked-at"].map((set) => redis.smismember(key("sends", set), ...ids)),
      );
      return new Set(ids.filter((_, index) => found.some((flags) => flags[index] === 1)));
    },
  };
}
