import { createOutbox } from "../redis/due-list.ts";
import {
  type Fields,
  type Keys,
  defineScript,
  type RedisClient,
  redisNow,
} from "../redis/redis.ts";
import { keepFinalMs } from "../requests/journal/record.ts";
import { createLeases } from "../redis/lease.ts";
import {
  isFinalState,
  type Outcome,
  type RolloutProgress,
  type RolloutRecord,
  type RolloutState,
  type RolloutTargets,
  type StoredRollout,
} from "./rollout.ts";
import * as scripts from "./scripts.ts";

/** An unconfirmed plan is outdated after this time. */
const planKeptMs = 30 * 60_000;

interface RolloutMove {
  state: RolloutState;
  progress: RolloutProgress;
  outcomes?: readonly Outcome[];
  /** For the audit trail; `actor` is a person. */
  why?: string;
  actor?: string;
  /** What exactly a person confirmed. */
  record?: RolloutRecord;
  /** When Slack is updated. */
  tell?: "soon" | "now";
}

export type Rollouts = ReturnType<typeof createRollouts>;

export function createRollouts(redis: RedisClient, key: Keys) {
  const runPlan = defineScript(redis, "gatehouseRollPlan", scripts.plan);
  const runMove = defineScript(redis, "gatehouseRollMove", scripts.move);
  const leases = createLeases(redis);
  const rolloutKey = (id: string) => key("roll", id);
  const outbox = createOutbox(redis, key("rolls", "outbox"), rolloutKey);

  return {
    outbox,
    now: () => redisNow(redis),

    /** Saves what a dialog shows, so that exactly that runs once confirmed. */
    async plan(record: RolloutRecord, targets: RolloutTargets): Promise<void> {
      const progress: RolloutProgress = { next: 0, open: [], ok: 0, already: 0, failed: 0 };
      const texts = [record, targets, progress].map((part) => JSON.stringify(part));
      await runPlan([rolloutKey(record.id)], [...texts, planKeptMs]);
    },

    async get(id: string): Promise<StoredRollout | undefined> {
      return parseRollout(await redis.hgetall(rolloutKey(id)));
    },

    stateOf: (id: string): Promise<string | null> => redis.hget(rolloutKey(id), "state"),

    async targets(id: string): Promise<RolloutTargets> {
      return JSON.parse((await redis.hget(rolloutKey(id), "targets")) ?? "[]") as RolloutTargets;
    },

    /** By place. */
    async outcomes(id: string): Promise<Map<number, Outcome>> {
      const fields = await redis.hgetall(key("roll", id, "outcomes"));
      return new Map(
        Object.entries(fields).map(([n, text]) => [Number(n), JSON.parse(text) as Outcome]),
      );
    },

    /** Undefined, with nothing written, when it changed since it was read. */
    async move(rollout: StoredRollout, to: RolloutMove): Promise<StoredRollout | undefined> {
      const { id } = rollout.record;
      const final = isFinalState(to.state);
      const answer = (await runMove(
        [
          rolloutKey(id),
          key("roll", id, "outcomes"),
          key("rolls", "open"),
          key("audit"),
          outbox.list,
        ],
        [
          id,
          rollout.revision,
          to.state,
          final ? 1 : 0,
          JSON.stringify(to.progress),
          to.why === undefined ? "" : auditRecord(to.record ?? rollout.record, to, rollout.state),
          to.record ? JSON.stringify(to.record) : "",
          to.tell ?? "",
          keepFinalMs,
          ...(to.outcomes ?? []).flatMap((one) => [one.n, JSON.stringify(one)]),
        ],
      )) as [string, number?, number?];
      if (answer[0] !== "moved") return undefined;
      outbox.ring();
      const { state, progress, record = rollout.record } = to;
      return { ...rollout, record, state, progress, final, revision: Number(answer[1]) };
    },

    /** Not under the revision: nothing changes. */
    async seen(id: string): Promise<void> {
      await redis.hset(rolloutKey(id), "seenAt", String(await redisNow(redis)));
    },

    openIds: (): Promise<string[]> => redis.zrange(key("rolls", "open"), 0, "-1"),

    /** Advisory lease, not needed for correctness; false when another holds it. */
    lease: (what: string, id: string, holder: string, ms: number): Promise<boolean> =>
      leases.take(key("roll", id, what), holder, ms),
    release: (what: string, id: string, holder: string): Promise<boolean> =>
      leases.release(key("roll", id, what), holder),
  };
}

function auditRecord(record: RolloutRecord, to: RolloutMove, from: RolloutState): string {
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
    who: to.actor,
    ...(to.record ? { targets: total, options } : {}),
  });
}

/** Undefined for one that is gone. */
export function parseRollout(fields: Fields): StoredRollout | undefined {
  if (!fields["record"] || !fields["state"]) return undefined;
  const record = JSON.parse(fields["record"]) as RolloutRecord;
  const [channelId, ts] = (fields["card"] ?? "").split(" ");
  const said = Object.entries(fields).filter(([field]) => field.startsWith("said:"));
  return {
    record: { ...record, createdAt: Number(fields["createdAt"]) },
    state: fields["state"] as RolloutState,
    final: fields["final"] === "1",
    revision: Number(fields["revision"]),
    changedAt: Number(fields["changedAt"]),
    seenAt: Number(fields["seenAt"]),
    progress: JSON.parse(fields["progress"] ?? "{}") as RolloutProgress,
    delivered: {
      said: Object.fromEntries(said.map(([field, value]) => [field.slice(5), value])),
      ...(channelId && ts ? { card: { channelId, ts } } : {}),
      ...(fields["shown"] ? { shown: fields["shown"] } : {}),
      isElsewhere: fields["elsewhere"] === "1",
    },
  };
}
