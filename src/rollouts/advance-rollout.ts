import { duration } from "../messages/text.ts";
import { calledName, type ChangeCommand } from "../registry/define.ts";
import type { StoredRequest } from "../requests/journal/record.ts";
import { ended as over, type Next, waitFor } from "../requests/perform/worker-context.ts";
import {
  judgeTarget,
  refusedBefore,
  type RolloutContext,
  submitTarget,
  cancelUnsent,
} from "./targets.ts";
import {
  nextStep,
  type OpenTarget,
  type Outcome,
  requestIdOf,
  type RolloutTargets,
  type StoredRollout,
} from "./rollout.ts";

/** Steps in one job, so that others get a turn. */
const maxSteps = 5;
/** How long the first target waits for the rollout's card. */
const messageWithinMs = 5000;

/** Advances a rollout by some steps. Any number of processes may do so: each step is a compare-and-set. */
export async function advanceRollout(id: string, by: RolloutContext): Promise<Next> {
  const { policy, standstill, log } = by.workerContext;
  const later = waitFor(policy.timing.pollFirstMs * (0.75 + Math.random() / 2));
  if (standstill() !== undefined) return later;
  try {
    for (let steps = 0; steps < maxSteps; steps++) {
      const rollout = await by.rollouts.get(id);
      if (!rollout || rollout.final || rollout.state === "planned") return over;
      if (!(await step(rollout, by))) break;
    }
  } catch (error) {
    log.warn("roll.later", { rollout: id, error });
  }
  return later;
}

/** True when another step may follow at once. */
async function step(rollout: StoredRollout, by: RolloutContext): Promise<boolean> {
  const { rollouts, workerContext } = by;
  const { id } = rollout.record;
  const { policyVersion } = rollout.record;
  const isOther = policyVersion !== workerContext.policyVersion;
  const { store } = workerContext;
  const isOld = isOther && (await store.isOlderPolicy(policyVersion, workerContext.policyVersion));
  // In a rolling change of policy it is left to workers that have the new one
  if (isOther && !isOld) return false;
  const halt = await reasonToPause(rollout, by);
  if (halt !== undefined) {
    const progress = { ...rollout.progress, why: halt };
    await rollouts.move(rollout, { state: "paused", progress, why: halt });
    return true;
  }
  await rollouts.seen(id);
  if (await waitsForMessage(rollout, by)) return false;
  const command = workerContext.commands.find(({ name }) => name === rollout.record.command);
  if (!command) return giveUp(rollout, by);
  const targets = await rollouts.targets(id);
  const judged = await judgeOpen(rollout, targets, command, by);
  const nextAfter = (outcomes: readonly Outcome[]) =>
    nextStep(
      rollout,
      outcomes,
      (n, earlier) => requestIdOf(id, n, earlier),
      (n) => (targets[n] ? calledName(targets[n]) : `number ${n + 1}`),
    );
  const wanted = nextAfter(judged);
  const refused = await refusedBefore(wanted.begins, targets, command, workerContext);
  const ended = [...judged, ...refused];
  const next = refused.length === 0 ? wanted : nextAfter(ended);
  const isNews = next.state !== rollout.state;
  if (!isNews && ended.length === 0 && next.begins.length === 0) return false;
  const moved = await rollouts.move(rollout, {
    state: next.state,
    progress: next.progress,
    outcomes: ended.filter(({ is }) => is !== "returned"),
    ...(next.why === undefined ? {} : { why: next.why }),
  });
  if (!moved) return true;
  await by.at("roll-claimed", id);
  await begin(moved, next.begins, targets, command, by);
  return isNews;
}

/** Why a running rollout must wait for a person. */
async function reasonToPause(
  { state, record, seenAt }: StoredRollout,
  { workerContext }: RolloutContext,
): Promise<string | undefined> {
  if (state !== "running") return undefined;
  const { store, policy, policyVersion } = workerContext;
  if (record.policyVersion !== policyVersion) return "the policy changed since this request";
  const frozen = await store.freezeState();
  if (frozen) return `all changes are frozen by ${frozen.by}`;
  // After a long gap it may no longer be wanted
  const awayMs = (await store.now()) - seenAt;
  if (awayMs > policy.timing.staleAfterMs) return `no worker advanced it for ${duration(awayMs)}`;
  return undefined;
}

/** People should see the card first, and its thread holds messages about targets; but Slack may be unavailable. */
async function waitsForMessage(
  { progress, delivered, state }: StoredRollout,
  { rollouts }: RolloutContext,
): Promise<boolean> {
  if (state !== "running" || progress.next > 0 || delivered.card || delivered.isElsewhere)
    return false;
  return (await rollouts.now()) - (progress.startedAt ?? 0) < messageWithinMs;
}

async function giveUp(rollout: StoredRollout, { rollouts }: RolloutContext): Promise<boolean> {
  const why = `this version of Gatehouse does not know ${rollout.record.command}`;
  const progress = { ...rollout.progress, why, endsAs: "failed" as const, open: [] };
  await rollouts.move(rollout, { state: "failed", progress, why });
  return false;
}

/** Outcomes of open targets. Claimed ones that never reached the journal are submitted now. */
async function judgeOpen(
  rollout: StoredRollout,
  targets: RolloutTargets,
  command: ChangeCommand,
  by: RolloutContext,
): Promise<Outcome[]> {
  const { open } = rollout.progress;
  const { store } = by.workerContext;
  const stored = await store.getMany(open.map(({ request }) => request));
  const byId = new Map(stored.map((request) => [request.record.id, request]));
  const missing = open.filter(({ request }) => !byId.has(request));
  // A process may have died between claim and submit; a paused rollout submits nothing
  if (rollout.state !== "paused") await begin(rollout, missing, targets, command, by);
  const judged = await Promise.all(
    open.map(async (one) => {
      const request = byId.get(one.request);
      const target = targets[one.n];
      if (!request || !target) return undefined;
      if (rollout.state === "ending") await cancelUnsent(request, store);
      const outcome = await judgeTarget(one, request, command, target, by.workerContext);
      if (outcome && isReturned(rollout, request)) return { ...outcome, is: "returned" as const };
      return outcome && isOverdue(rollout, request)
        ? { n: one.n, request: one.request, is: "cancelled" as const }
        : outcome;
    }),
  );
  return judged.filter((outcome) => outcome !== undefined);
}

/** A freeze or a new policy cancels unsent requests and pauses the rollout: no failures. */
function isReturned({ state }: StoredRollout, { state: ended, progress }: StoredRequest): boolean {
  const isTurnedAway = ended === "cancelled" && progress.sentAt === undefined;
  return state === "paused" && isTurnedAway && progress.decidedBy === undefined;
}

/** Expired after a stop: canceled, not failed. */
function isOverdue({ state }: StoredRollout, { state: ended, progress }: StoredRequest): boolean {
  return state === "ending" && ended === "expired" && progress.sentAt === undefined;
}

/** Submits claimed targets, until a pause or a stop. */
async function begin(
  rollout: StoredRollout,
  begins: readonly OpenTarget[],
  targets: RolloutTargets,
  command: ChangeCommand,
  by: RolloutContext,
): Promise<void> {
  let standing = rollout;
  for (const { n, request: wanted } of begins) {
    const target = targets[n];
    if (!target) continue;
    if ((await by.rollouts.stateOf(rollout.record.id)) !== standing.state) return;
    const request = await submitTarget(standing, wanted, target, command, by);
    await by.at("roll-submitted", rollout.record.id);
    if (request === wanted) continue;
    // An equal request of the same person serves both
    const open = standing.progress.open.map((one) => (one.n === n ? { ...one, request } : one));
    const { state, progress } = standing;
    const moved = await by.rollouts.move(standing, { state, progress: { ...progress, open } });
    if (!moved) return;
    standing = moved;
  }
}
