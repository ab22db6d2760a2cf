import { UserError } from "../errors.ts";
import { createOutbox, shownIn } from "../redis/due-list.ts";
import {
  type Fields,
  type Keys,
  defineScript,
  fieldsNamed,
  type RedisClient,
  redisNow,
  redisTimeLua,
} from "../redis/redis.ts";
import type { Target } from "../registry/define.ts";
import { keepFinalMs } from "../requests/journal/record.ts";
import {
  isFinalState,
  type Outcome,
  type RolloutProgress,
  type RolloutRecord,
  type RolloutState,
  type RolloutControl,
  steered,
  type StoredRollout,
} from "./rollout.ts";

/** An unconfirmed plan is outdated after this time. */
const planKeptMs = 30 * 60_000;

/**
 * Moves a rollout, or saves progress. Refuses when it changed since it was read.
 *
 * KEYS rollout, open, audit, outbox
 * ARGV id, revision it was read at, state, final (0|1), progress, audit record ('' for none), how long a final rollout is kept
 *      (ms), ...fields and their values: its record, and outcomes of targets that ended
 * → {revision, now}, empty when it changed
 */
const moveScript = `${redisTimeLua}
if redis.call('HGET', KEYS[1], 'revision') ~= ARGV[2] then return {} end
local revision = redis.call('HINCRBY', KEYS[1], 'revision', 1)
local was = redis.call('HGET', KEYS[1], 'state')
redis.call('HSET', KEYS[1], 'state', ARGV[3], 'final', ARGV[4], 'progress', ARGV[5], 'seenAt', now)
if was ~= ARGV[3] then redis.call('HSET', KEYS[1], 'changedAt', now) end
if ARGV[6] ~= '' then redis.call('XADD', KEYS[3], '*', 'at', now, 'record', ARGV[6]) end
for i = 8, #ARGV, 2 do redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1]) end
if was == 'planned' then
  redis.call('PERSIST', KEYS[1])
  redis.call('ZADD', KEYS[2], now, ARGV[1])
end
redis.call('ZADD', KEYS[4], now, ARGV[1])
if ARGV[4] == '1' then
  redis.call('ZREM', KEYS[2], ARGV[1])
  redis.call('PEXPIRE', KEYS[1], ARGV[7])
end
return {revision, now}
`;

interface RolloutMove {
  state: RolloutState;
  progress: RolloutProgress;
  outcomes?: readonly Outcome[];
  /** For the audit trail; `actor` is a person. */
  why?: string;
  actor?: string;
  /** What exactly a person confirmed. */
  record?: RolloutRecord;
}

export type Rollouts = ReturnType<typeof createRollouts>;

/** `wake` enqueues a step; the sweep repeats one that is lost. */
export function createRollouts(
  redis: RedisClient,
  key: Keys,
  wake: (id: string) => Promise<void> = async () => undefined,
) {
  const runMove = defineScript(redis, "gatehouseRollMove", moveScript);
  const rolloutKey = (id: string) => key("roll", id);
  const outbox = createOutbox(redis, key("rolls", "outbox"), rolloutKey);

  return {
    outbox,
    now: () => redisNow(redis),

    /** Saves what a dialog shows, so that exactly that runs once confirmed. */
    async plan(record: RolloutRecord, targets: readonly Target[]): Promise<void> {
      const progress: RolloutProgress = { next: 0, open: [], ok: 0, already: 0, failed: 0 };
      const now = await redisNow(redis);
      const planned = { state: "planned", final: 0, revision: 1 };
      const times = { createdAt: now, changedAt: now, seenAt: now };
      const [text, ...texts] = [record, targets, progress].map((part) => JSON.stringify(part));
      const parts = { record: text, targets: texts[0], progress: texts[1] };
      const saved = redis.multi().hset(rolloutKey(record.id), { ...parts, ...planned, ...times });
      await saved.pexpire(rolloutKey(record.id), planKeptMs).exec();
    },

    async get(id: string): Promise<StoredRollout | undefined> {
      return parseRollout(await redis.hgetall(rolloutKey(id)));
    },

    stateOf: (id: string): Promise<string | null> => redis.hget(rolloutKey(id), "state"),

    /** Undefined, with nothing written, when it changed since it was read. */
    async move(rollout: StoredRollout, to: RolloutMove): Promise<StoredRollout | undefined> {
      const { id } = rollout.record;
      const final = isFinalState(to.state);
      const { state, progress, record = rollout.record, outcomes = [] } = to;
      const audit = to.why === undefined ? "" : auditRecord(record, to, rollout.state);
      const keys = [rolloutKey(id), key("rolls", "open"), key("audit"), outbox.list];
      const text = JSON.stringify(progress);
      const args = [id, rollout.revision, state, final ? 1 : 0, text, audit, keepFinalMs];
      const changed = to.record ? ["record", JSON.stringify(record)] : [];
      const ended = outcomes.flatMap((one) => [`ended:${one.n}`, JSON.stringify(one)]);
      const answer = await runMove(keys, [...args, ...changed, ...ended]);
      const [revision] = answer as [number?, number?];
      if (revision === undefined) return undefined;
      outbox.ring();
      if (!final) await wake(id).catch(() => undefined);
      const all = new Map([...rollout.outcomes, ...outcomes.map((one) => [one.n, one] as const)]);
      return { ...rollout, record, state, progress, outcomes: all, final, revision };
    },

    /** Not under the revision: nothing changes. */
    async seen(id: string): Promise<void> {
      await redis.hset(rolloutKey(id), "seenAt", String(await redisNow(redis)));
    },

    openIds: (): Promise<string[]> => redis.zrange(key("rolls", "open"), 0, "-1"),
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
  return {
    record: { ...record, createdAt: Number(fields["createdAt"]) },
    targets: JSON.parse(fields["targets"] ?? "[]") as Target[],
    outcomes: new Map(
      fieldsNamed("ended:", fields).map(([n, text]) => [Number(n), JSON.parse(text) as Outcome]),
    ),
    state: fields["state"] as RolloutState,
    final: fields["final"] === "1",
    revision: Number(fields["revision"]),
    changedAt: Number(fields["changedAt"]),
    seenAt: Number(fields["seenAt"]),
    progress: JSON.parse(fields["progress"] ?? "{}") as RolloutProgress,
    delivered: {
      ...shownIn(fields),
      ...(fields["shown"] ? { shown: fields["shown"] } : {}),
      isElsewhere: fields["elsewhere"] === "1",
    },
  };
}

/** The worker writes too, so a move may need several tries. */
const maxTries = 20;

/**
 * Pauses, resumes, or stops a rollout; VMs in progress finish. `policyVersion` is the one that allows the person to do
 * this. Throws UserError.
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
    const to = steered(rollout, steering, { id: person.id, name: person.name });
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
