import { UserError } from "../../errors.ts";
import { createOutbox } from "../../redis/outbox.ts";
import { createPending } from "../../redis/pending.ts";
import { createRecords } from "../../redis/record.ts";
import {
  type Fields,
  type Keys,
  type RedisClient,
  defineScript,
  fieldsNamed,
  redisNow,
} from "../../redis/redis.ts";
import { shownIn } from "../../redis/shown.ts";
import type { Target } from "../../registry/define.ts";
import { keepFinalMs } from "../../core/request/record.ts";
import {
  rolloutOutcome,
  rolloutProgress,
  rolloutRecord,
  rolloutState,
  rolloutTargets,
} from "./rollout-record.ts";
import {
  type Outcome,
  type RolloutControl,
  type RolloutProgress,
  type RolloutRecord,
  type RolloutState,
  type StoredRollout,
  isFinalState,
  afterControl,
} from "./rollout.ts";

/** How long an unconfirmed plan is kept (ms). */
const planKeptMs = 30 * 60_000;

/**
 * Stores a plan unless there is a rollout with its ID, which may run by then.
 *
 * KEYS rollout   ARGV how long it is kept (ms), ...fields and values
 */
const planScript = `
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('HSET', KEYS[1], unpack(ARGV, 2))
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 1
`;

interface RolloutMove {
  state: RolloutState;
  progress: RolloutProgress;
  outcomes?: readonly Outcome[];
  /** Reason for the audit trail; `actor` is a person's ID. */
  why?: string;
  actor?: string;
  /** The plan as the person confirmed it. */
  record?: RolloutRecord;
  targets?: readonly Target[];
}

export type Rollouts = ReturnType<typeof createRollouts>;

export function createRollouts(redis: RedisClient, key: Keys) {
  const rolloutKey = (id: string) => key("roll", id);
  const storePlan = defineScript(redis, "gatehousePlanRollout", planScript);
  const outbox = createOutbox(redis, key, "rollout", rolloutKey);
  const steps = createPending(redis, key, "rollout-step");
  const records = createRecords(redis, key, { open: key("rolls", "open"), outbox, steps });

  return {
    outbox,
    /** IDs of rollouts that have steps for a worker. */
    steps,
    now: () => redisNow(redis),

    /** Stores what a form shows, so that exactly this runs once confirmed. A second plan is none. */
    async plan(record: RolloutRecord, targets: readonly Target[]): Promise<void> {
      const progress: RolloutProgress = { next: 0, open: [], ok: 0, already: 0, failed: 0 };
      const now = await redisNow(redis);
      const planned = { state: "planned", final: 0, revision: 1 };
      const times = { createdAt: now, changedAt: now, seenAt: now };
      const parts = {
        record: rolloutRecord.write(record),
        targets: rolloutTargets.write(targets),
        progress: rolloutProgress.write(progress),
      };
      const fields = Object.entries({ ...parts, ...planned, ...times }).flat();
      await storePlan([rolloutKey(record.id)], [planKeptMs, ...fields].map(String));
    },

    async get(id: string): Promise<StoredRollout | undefined> {
      return parseRollout(id, await redis.hgetall(rolloutKey(id)));
    },

    stateOf: (id: string): Promise<string | null> => redis.hget(rolloutKey(id), "state"),

    /**
     * Writes a new state. Undefined, with nothing written, when the rollout changed since it was
     * read.
     */
    async move(rollout: StoredRollout, to: RolloutMove): Promise<StoredRollout | undefined> {
      const { id } = rollout.record;
      const final = isFinalState(to.state);
      const { state, progress, record = rollout.record, outcomes = [] } = to;
      const { targets = rollout.targets } = to;
      const audit = to.why === undefined ? undefined : auditRecord(record, to, rollout.state);
      const fields = {
        progress: rolloutProgress.write(progress),
        ...(to.record ? { record: rolloutRecord.write(record) } : {}),
        ...(to.targets ? { targets: rolloutTargets.write(targets) } : {}),
        ...Object.fromEntries(
          outcomes.map((outcome) => [`ended:${outcome.n}`, rolloutOutcome.write(outcome)]),
        ),
      };
      const how = { id, revision: rollout.revision, state, final, keptMs: keepFinalMs };
      const moved = await records.move({ ...how, audit, fields });
      if (moved === undefined) return undefined;
      const all = new Map([
        ...rollout.outcomes,
        ...outcomes.map((outcome) => [outcome.n, outcome] as const),
      ]);
      const { revision } = moved;
      return { ...rollout, record, targets, state, progress, outcomes: all, final, revision };
    },

    /** Notes that a worker looked at the rollout. The revision stays, because nothing changes. */
    async seen(id: string): Promise<void> {
      await redis.hset(rolloutKey(id), "seenAt", String(await redisNow(redis)));
    },

    openIds: records.openIds,
  };
}

function auditRecord(record: RolloutRecord, to: RolloutMove, from: RolloutState) {
  const { id, command, requester, total, options } = record;
  return {
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
  };
}

/**
 * Parses a stored rollout. Undefined when it is gone, or when any part of it can't be read: then no
 * further target begins.
 */
export function parseRollout(id: string, fields: Fields): StoredRollout | undefined {
  if (!fields["record"] || !fields["state"]) return undefined;
  const record = rolloutRecord.parse(fields["record"], id);
  const state = rolloutState.check(fields["state"], id);
  const targets = rolloutTargets.parse(fields["targets"] ?? "", id);
  const progress = rolloutProgress.parse(fields["progress"] ?? "", id);
  const texts = fieldsNamed("ended:", fields);
  const outcomes = rolloutOutcome.parseAll(Object.fromEntries(texts), id);
  if (!record || !state || !targets || !progress || outcomes.length < texts.length)
    return undefined;
  return {
    record: { ...record, createdAt: Number(fields["createdAt"]) },
    targets,
    outcomes: new Map(outcomes.map((outcome) => [outcome.n, outcome])),
    state,
    final: fields["final"] === "1",
    revision: Number(fields["revision"]),
    changedAt: Number(fields["changedAt"]),
    seenAt: Number(fields["seenAt"]),
    progress,
    delivered: {
      ...shownIn(fields),
      isElsewhere: fields["elsewhere"] === "1",
    },
  };
}

/** A move may need several tries, because a worker writes to the rollout too. */
const maxTries = 20;

/**
 * Pauses, resumes or stops a rollout. VMs in progress finish. `policyVersion` is the version of the
 * policy that allows this. Throws UserError.
 */
export async function controlRollout(
  id: string,
  steering: RolloutControl,
  person: { id: string; name: string },
  policyVersion: string,
  rollouts: Rollouts,
): Promise<StoredRollout> {
  for (let tries = 0; tries < maxTries; tries++) {
    const rollout = await rollouts.get(id);
    if (!rollout || rollout.state === "planned")
      throw new UserError("This rollout no longer exists.");
    const to = afterControl(rollout, steering, { id: person.id, name: person.name });
    if (to === undefined) throw new UserError(tooLate(rollout));
    const renewed = steering === "resume" && rollout.record.policyVersion !== policyVersion;
    const moved = await rollouts.move(rollout, {
      ...to,
      why: to.progress.why ?? "resumed",
      actor: person.id,
      ...(renewed ? { record: { ...rollout.record, policyVersion } } : {}),
    });
    if (moved) return moved;
  }
  throw new UserError("Its state just changed.", "Press the button again.");
}

function tooLate({ state }: StoredRollout): string {
  if (state === "ending") return "It is already stopping: VMs in progress will finish.";
  return `It is already ${state === "paused" || state === "running" ? state : "finished"}.`;
}
