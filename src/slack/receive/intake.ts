import { randomBytes } from "node:crypto";
import { within } from "../../deadline.ts";
import { UserError, messageOf } from "../../errors.ts";
import type { Log } from "../../log/log.ts";
import { createDueList } from "../../redis/due-list.ts";
import {
  type Keys,
  type RedisClient,
  defineScript,
  redisTimeLua,
  redisTrouble,
} from "../../redis/redis.ts";
import { type Rounds, startRounds } from "../../redis/rounds.ts";
import type { Interaction } from "./interaction.ts";

/** Redis didn't store it: nothing was done, and the ack says so. */
export class IntakeDown extends UserError {
  /** Redis works, but too many interactions are pending. */
  readonly isCrowded: boolean;

  constructor(why: string, { isCrowded = false } = {}) {
    super(`${why}: nothing was done.`, "Try again in a minute.");
    this.isCrowded = isCrowded;
  }
}

/** A delivery may be dated 300 s ahead and redelivered until 300 s after that. */
const seenForMs = 11 * 60_000;
/** A frozen Redis may execute, when it wakes, what was sent to it on a connection that is long gone. */
const undoneForMs = 10 * 60_000;
const maxTakeovers = 3;
const maxPending = 10_000;

/**
 * Before the ack: once for each delivery within 11 minutes. An accept that was undone meanwhile stays undone.
 *
 * KEYS seen, undone, records, due
 * ARGV id, stamp, interaction ('' is only deduplicated), visibility timeout (ms) → new, seen, full, or late
 */
const acceptScript = `${redisTimeLua}
if redis.call('EXISTS', KEYS[2]) == 1 then return 'late' end
if redis.call('EXISTS', KEYS[1]) == 1 then return 'seen' end
if ARGV[3] ~= '' then
  if redis.call('HLEN', KEYS[3]) >= ${maxPending} then return 'full' end
  redis.call('HSET', KEYS[3], ARGV[1], ARGV[2] .. '|' .. now .. '|0|' .. ARGV[3])
  redis.call('ZADD', KEYS[4], now + ARGV[4], ARGV[1])
end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ${seenForMs})
return 'new'
`;

/** Undoes this accept, never another's.   KEYS seen, undone, records, due   ARGV id, stamp */
const undoScript = `
redis.call('SET', KEYS[2], 1, 'PX', ${undoneForMs})
local got = redis.call('HGET', KEYS[3], ARGV[1])
if got and string.sub(got, 1, #ARGV[2] + 1) == ARGV[2] .. '|' then
  redis.call('HDEL', KEYS[3], ARGV[1])
  redis.call('ZREM', KEYS[4], ARGV[1])
end
if redis.call('GET', KEYS[1]) == ARGV[2] then redis.call('DEL', KEYS[1]) end
return 1
`;

/**
 * What a gateway has in hand stays invisible to others. Stored again where a failover lost it: it was acked.
 *
 * KEYS records, due   ARGV id, visibility timeout (ms), what is stored if it is lost
 */
const renewScript = `${redisTimeLua}
redis.call('HSETNX', KEYS[1], ARGV[1], ARGV[3])
return redis.call('ZADD', KEYS[2], now + ARGV[2], ARGV[1])
`;

/**
 * Of what has become due: counts the take-over, or drops what is too old or was taken over too often.
 *
 * KEYS records, due   ARGV id, oldest (ms) → {taken, interaction, what is stored now}, {dropped, interaction}, or {gone}
 */
const takeOverScript = `${redisTimeLua}
local stamp, at, times, interaction = string.match(redis.call('HGET', KEYS[1], ARGV[1]) or '', '^([^|]*)|(%d+)|(%d+)|(.*)$')
if stamp and tonumber(times) < ${maxTakeovers} and now - tonumber(at) < tonumber(ARGV[2]) then
  local record = stamp .. '|' .. at .. '|' .. (tonumber(times) + 1) .. '|' .. interaction
  redis.call('HSET', KEYS[1], ARGV[1], record)
  return {'taken', interaction, record}
end
redis.call('HDEL', KEYS[1], ARGV[1])
redis.call('ZREM', KEYS[2], ARGV[1])
return stamp and {'dropped', interaction} or {'gone'}
`;

export type Intake = ReturnType<typeof createIntake>;

interface IntakeOptions {
  redis: RedisClient;
  key: Keys;
  log: Log;
  /** Default: random. */
  gateway?: string;
  staleAfterMs?: number;
  acceptWithinMs?: number;
  /** What is in hand is renewed this often (ms). */
  beatMs?: number;
  /** How long a gateway may miss beats before its interactions are taken over: at least three. */
  takeOverAfterMs?: number;
}

const maxOwed = 20_000;
const settledPerBeat = 500;
const maxAtOnce = 100;
const maxBytes = 128 * 1024;

/**
 * Interactions from before their ack until they are handled. Each is invisible to other gateways while its own renews it:
 *
 *     accepted, acked ──► handled ──► finished
 *           │                └── its gateway renews it with each beat
 *           ├──► due again: another gateway takes it over, three times at most, and until it is too old
 *           └──► undone, where Redis didn't answer in time: the person read that nothing was done
 *
 * All keys share one hash tag, and times are Redis time (ms).
 *
 * - `seen:<id>`       who accepted this delivery (its stamp: gateway/count); expires after 11 minutes
 * - `records`         hash, id → "stamp|accepted at|times taken over|interaction"
 * - `due`             sorted set, id → when others take it over
 * - `undone:<stamp>`  this accept was undone, even if it comes later than that
 */
export function createIntake(options: IntakeOptions) {
  const { redis, key, log, acceptWithinMs = 1_000, beatMs = 2_000 } = options;
  const { staleAfterMs = 10 * 60_000, takeOverAfterMs = 15_000 } = options;
  const gateway = options.gateway ?? `gw-${randomBytes(6).toString("hex")}`;
  const visibilityTimeoutMs = Math.max(takeOverAfterMs, 3 * beatMs);
  const records = key("intake", "records");
  const due = createDueList(redis, key("intake", "due"));
  const keysOf = (id: string, stamp: string) => [
    key("intake", "seen", id),
    key("intake", "undone", stamp),
    records,
    due.list,
  ];
  const run = {
    accept: defineScript(redis, "gatehouseIntakeAccept", acceptScript),
    undo: defineScript(redis, "gatehouseIntakeUndo", undoScript),
    renew: defineScript(redis, "gatehouseIntakeRenew", renewScript),
    takeOver: defineScript(redis, "gatehouseIntakeTakeOver", takeOverScript),
  };
  /** Writes not yet confirmed: what was finished, and accepts to undo, by their stamp or ID. */
  const owed = new Map<string, { id: string; stamp: string | undefined }>();
  /** Stored and not finished: what this gateway accepted or took over, by ID as it is stored. */
  const inHand = new Map<string, string>();
  /** Under way to Redis: stored perhaps, and its answer not read yet. */
  const accepting = new Set<string>();
  let count = 0;
  let rounds: Rounds | undefined;

  /**
   * Stores the interaction before its ack, so that another gateway can take over until `finish`; `seen`: it is a redelivery.
   * Throws IntakeDown within about a second when Redis doesn't store it or too many are pending, and UserError when it is too
   * large.
   */
  async function accept(interaction: Interaction): Promise<"new" | "seen"> {
    const { id, kind } = interaction;
    const isKept = keptKinds.has(kind);
    const record = isKept ? toRecord(interaction) : "";
    if (Buffer.byteLength(record) > maxBytes)
      throw new UserError("That message is too long.", "Nothing was done.");
    const stamp = `${gateway}/${(count += 1)}`;
    accepting.add(id);
    let answer: unknown;
    try {
      const asked = run.accept(keysOf(id, stamp), [id, stamp, record, visibilityTimeoutMs]);
      answer = await within(acceptWithinMs, asked, (): never => {
        throw new Error("Command timed out");
      });
    } catch (error) {
      // Only the answer may be lost. The person reads "nothing was done", so that must become true.
      owe(id, stamp);
      log.warn("intake.down", { error: messageOf(error), kind });
      throw new IntakeDown(redisTrouble(error) ?? "Redis is down");
    } finally {
      accepting.delete(id);
    }
    if (answer === "full")
      throw new IntakeDown("Too many requests are pending", { isCrowded: true });
    if (answer !== "new") return "seen";
    if (isKept) inHand.set(id, `${stamp}|${Date.now()}|0|${record}`);
    return "new";
  }

  /** Handled, or with `forget` refused: the same delivery may come again. Never throws. */
  async function finish(id: string, { forget = false }: { forget?: boolean } = {}): Promise<void> {
    const [stamp] = inHand.get(id)?.split("|", 1) ?? [];
    inHand.delete(id);
    await settle(owe(id, forget ? stamp : undefined));
  }

  function owe(id: string, stamp: string | undefined): string {
    const name = stamp ?? id;
    owed.set(name, { id, stamp });
    const [oldest] = owed.keys();
    if (owed.size > maxOwed && oldest !== undefined) owed.delete(oldest);
    return name;
  }

  async function settle(name: string): Promise<boolean> {
    const write = owed.get(name);
    if (write === undefined) return true;
    const { id, stamp } = write;
    try {
      if (stamp === undefined)
        await Promise.all([redis.hdel(records, id), redis.zrem(due.list, id)]);
      else await run.undo(keysOf(id, stamp), [id, stamp]);
      if (owed.get(name) === write) owed.delete(name);
      return true;
    } catch (error) {
      log.warn("intake.owed", { error: messageOf(error), owed: owed.size });
      return false;
    }
  }

  async function* recover(): AsyncGenerator<LeftInteraction> {
    const owing = new Set([...owed.values()].map(({ id }) => id));
    for (const id of await due.take(maxAtOnce, visibilityTimeoutMs)) {
      if (inHand.has(id) || accepting.has(id) || owing.has(id)) continue;
      const taken = await run.takeOver([records, due.list], [id, staleAfterMs]);
      const [is, text = "", record = ""] = taken as string[];
      if (is === "gone") continue;
      const kept = JSON.parse(text) as Omit<LeftInteraction, "tooLate">;
      const tooLate = is === "dropped";
      const { kind, userId: user } = kept.interaction;
      if (tooLate) log.error("intake.too-late", { interaction: id, kind, user });
      else inHand.set(id, record);
      yield { ...kept, tooLate };
    }
  }

  async function beat(): Promise<void> {
    for (const [id, record] of inHand)
      await run.renew([records, due.list], [id, visibilityTimeoutMs, record]);
    for (const one of [...owed.keys()].slice(0, settledPerBeat)) if (!(await settle(one))) return;
  }

  return {
    accept,
    finish,
    /**
     * Takes over what other gateways renew no more, and what this one finished, if Redis lost that; each goes to one caller, as
     * it is taken: Redis may fail before the next. What is older than `staleAfterMs`, or had three gateways die, comes once, as
     * too late.
     */
    recover,
    /** Renews what is in hand every `beatMs`. */
    start(): void {
      rounds ??= startRounds("intake", beatMs, beat, log);
    },
    /** Renews no more, and leaves what isn't finished to the next gateway that recovers. */
    async close(): Promise<void> {
      await rounds?.close();
      await beat().catch(() => undefined);
      for (const id of inHand.keys()) await due.later(id, 0).catch(() => undefined);
    },
  };
}

/** A pending interaction of a dead gateway. Its trigger and response URL are gone. */
export interface LeftInteraction {
  interaction: Interaction;
  /** Too old, or several gateways died during it: the person is only told. */
  tooLate: boolean;
}

/** What is kept until it is handled. The Home tab and shortcuts change nothing, so they are only deduplicated. */
const keptKinds = new Set<Interaction["kind"]>(["command", "mention", "button", "submission"]);

/** Without the trigger, which expires, and the response URL: whoever has it speaks as the bot for half an hour. */
function toRecord(received: Interaction): string {
  const { triggerId: _trigger, responseUrl: _url, ...interaction } = received;
  return JSON.stringify({ interaction });
}
