import { defineScript, type Keys, type RedisClient } from "../redis.ts";
import { takeDue } from "../requests/scripts.ts";
import { keepFinalMs } from "../requests/journal-entry.ts";
import { redisNow } from "../requests/redis-now.ts";
import {
  isFinalState,
  type Outcome,
  type RollProgress,
  type RollRecord,
  type RollState,
  type RollTargets,
  rollVersion,
  type StoredRoll,
} from "./roll.ts";
import * as scripts from "./scripts.ts";

/** A plan that nobody said yes to is forgotten after this time: what it shows is old by then (ms). */
const planKeptMs = 30 * 60_000;

export interface RollMove {
  state: RollState;
  progress: RollProgress;
  outcomes?: readonly Outcome[];
  /** Goes into the audit trail, with who did it when a person did. */
  why?: string;
  actor?: string;
  /** At the yes of a person: what exactly they said yes to. */
  record?: RollRecord;
  /** Whether Slack is told: in due course, or at once. */
  tell?: "soon" | "now";
}

/** Rolls in Redis, beside the journal. */
export type RollStore = ReturnType<typeof createRollStore>;

export function createRollStore(redis: RedisClient, key: Keys) {
  const runPlan = defineScript(redis, "gatehouseRollPlan", scripts.plan);
  const runMove = defineScript(redis, "gatehouseRollMove", scripts.move);
  const runTold = defineScript(redis, "gatehouseRollTold", scripts.told);
  const runRelease = defineScript(redis, "gatehouseRollRelease", scripts.release);
  const runTakeDue = defineScript(redis, "gatehouseTakeRolls", takeDue);
  const rollKey = (id: string) => key("roll", id);
  const outbox = key("rolls", "outbox");

  return {
    now: () => redisNow(redis),

    /** Keeps what a dialog shows, so that what runs is what was seen. Nothing runs yet. */
    async plan(record: RollRecord, targets: RollTargets): Promise<void> {
      const progress: RollProgress = { next: 0, open: [], ok: 0, already: 0, failed: 0 };
      const texts = [record, targets, progress].map((part) => JSON.stringify(part));
      await runPlan([rollKey(record.id)], [...texts, planKeptMs]);
    },

    async get(id: string): Promise<StoredRoll | undefined> {
      return parseRoll(await redis.hgetall(rollKey(id)));
    },

    /** As it stands now, for those who are in the middle of something. */
    stateOf: (id: string): Promise<string | null> => redis.hget(rollKey(id), "state"),

    async targets(id: string): Promise<RollTargets> {
      return JSON.parse((await redis.hget(rollKey(id), "targets")) ?? "[]") as RollTargets;
    },

    /** How those that ended have ended, by their place. */
    async outcomes(id: string): Promise<Map<number, Outcome>> {
      const fields = await redis.hgetall(key("roll", id, "outcomes"));
      return new Map(
        Object.entries(fields).map(([n, text]) => [Number(n), JSON.parse(text) as Outcome]),
      );
    },

    /** Undefined when it moved on since it was read: nothing is written then. */
    async move(roll: StoredRoll, to: RollMove): Promise<StoredRoll | undefined> {
      const { id } = roll.record;
      const final = isFinalState(to.state);
      const answer = (await runMove(
        [rollKey(id), key("roll", id, "outcomes"), key("rolls", "open"), key("audit"), outbox],
        [
          id,
          roll.revision,
          to.state,
          final ? 1 : 0,
          JSON.stringify(to.progress),
          to.why === undefined ? "" : auditRecord(to.record ?? roll.record, to, roll.state),
          to.record ? JSON.stringify(to.record) : "",
          to.tell ?? "",
          keepFinalMs,
          ...(to.outcomes ?? []).flatMap((one) => [one.n, JSON.stringify(one)]),
        ],
      )) as [string, number?, number?];
      if (answer[0] !== "moved") return undefined;
      const { state, progress, record = roll.record } = to;
      return { ...roll, record, state, progress, final, revision: Number(answer[1]) };
    },

    /** Not under a revision: that somebody looks after it changes nothing. */
    async seen(id: string): Promise<void> {
      await redis.hset(rollKey(id), "seenAt", String(await redisNow(redis)));
    },

    openIds: (): Promise<string[]> => redis.zrange(key("rolls", "open"), 0, "-1"),

    /** Keeps two processes from doing the same at once; that would be harmless, but costs reads. False: another has it. */
    async lease(what: string, id: string, holder: string, ms: number): Promise<boolean> {
      return (await redis.set(key("roll", id, what), holder, "PX", ms, "NX")) !== null;
    },
    async release(what: string, id: string, holder: string): Promise<void> {
      await runRelease([key("roll", id, what)], [holder]);
    },

    takeDue: async (most: number, hiddenMs: number): Promise<string[]> =>
      (await runTakeDue([outbox], [most, hiddenMs])) as string[],
    async told({ record, revision, state }: StoredRoll, nextEditMs: number): Promise<void> {
      await runTold([outbox, rollKey(record.id)], [record.id, revision, state, nextEditMs]);
    },
    async tellLater(id: string, inMs: number): Promise<void> {
      await redis.zadd(outbox, (await redisNow(redis)) + Math.ceil(inMs), id);
    },
    async forgetToTell(id: string): Promise<void> {
      await redis.zrem(outbox, id);
    },
    outboxDepth: (): Promise<number> => redis.zcard(outbox),
    async setDelivered(id: string, fields: Record<string, string>): Promise<void> {
      await redis.hset(rollKey(id), fields);
    },
  };
}

function auditRecord(record: RollRecord, to: RollMove, from: RollState): string {
  const { id, command, requester, total, options } = record;
  return JSON.stringify({
    what: "roll",
    roll: id,
    command,
    requester: requester.id,
    team: requester.teamId,
    move: to.state,
    from,
    why: to.why,
    ...(to.actor ? { who: to.actor } : {}),
    ...(to.record ? { targets: total, options } : {}),
  });
}

/** Undefined for one that is gone, or that a newer version wrote. */
function parseRoll(fields: Record<string, string>): StoredRoll | undefined {
  if (!fields["record"] || !fields["state"]) return undefined;
  const record = JSON.parse(fields["record"]) as RollRecord;
  if (record.v !== rollVersion) return undefined;
  const [channelId, ts] = (fields["card"] ?? "").split(" ");
  const said = Object.entries(fields).filter(([field]) => field.startsWith("said:"));
  return {
    record: { ...record, createdAt: Number(fields["createdAt"]) },
    state: fields["state"] as RollState,
    final: fields["final"] === "1",
    revision: Number(fields["revision"]),
    changedAt: Number(fields["changedAt"]),
    seenAt: Number(fields["seenAt"]),
    progress: JSON.parse(fields["progress"] ?? "{}") as RollProgress,
    delivered: {
      said: Object.fromEntries(said.map(([field, value]) => [field.slice(5), value])),
      ...(channelId && ts ? { card: { channelId, ts } } : {}),
      ...(fields["shown"] ? { shown: fields["shown"] } : {}),
      isElsewhere: fields["elsewhere"] === "1",
    },
  };
}
