import { gateRefusal } from "../../attestation/appraise.ts";
import { statusFacts } from "../../fleet/compute/compute.ts";
import { messageOf } from "../../errors.ts";
import { duration } from "../../messages/markdown.ts";
import { permitInRollout } from "../../core/permit/permit.ts";
import type { ChangeCommand, Target } from "../../registry/define.ts";
import { withTarget } from "../../registry/invocation.ts";
import { appraisalAfter, isAttestedAfter } from "../../core/deliver/after-result.ts";
import type { Journal } from "../../core/request/journal.ts";
import type { StoredRequest } from "../../core/request/stored-request.ts";
import { endUnsent } from "../../core/perform/perform.ts";
import { type Next, ended as nothingLeft, waitFor } from "../../core/perform/step.ts";
import type { WorkerContext } from "../../core/perform/worker-context.ts";
import { submit } from "../../core/submit/submit.ts";
import type { WorkerSteps } from "../define-feature.ts";
import { type OpenTarget, type Outcome, type StoredRollout, nextStep, untried } from "./rollout.ts";
import type { Rollouts } from "./rollouts.ts";
import { whyOf } from "../../core/request/stage.ts";
import { deadlineMs } from "../../deadline.ts";

export interface RolloutContext {
  rollouts: Rollouts;
  workerContext: WorkerContext;
  /** Failpoint for crash tests. */
  at: ((point: "roll-claimed" | "roll-submitted", rollout: string) => Promise<void>) | undefined;
}

/** The most steps in one job, so that other rollouts get a turn. */
const maxSteps = 5;
/** How long the first target waits for the rollout's card (ms). */
const messageWithinMs = 5000;

/** The steps of rollouts, which any worker takes. */
export function rolloutSteps({ rollouts, at }: Omit<RolloutContext, "workerContext">): WorkerSteps {
  const { steps, openIds } = rollouts;
  return {
    pending: steps,
    async handle(id, mark, workerContext) {
      const next = await advanceRollout(id, { rollouts, at, workerContext });
      return steps.release(id, mark, next.kind === "wait" ? next.ms : undefined);
    },
    openIds,
  };
}

/**
 * Advances a rollout by some steps. Any number of processes may do so at a time, because each step
 * is a compare-and-set.
 */
async function advanceRollout(id: string, context: RolloutContext): Promise<Next> {
  const { policy, standstill, log } = context.workerContext;
  const later = waitFor(policy.timing.pollFirstMs * (0.75 + Math.random() / 2));
  if (standstill() !== undefined) return later;
  try {
    for (let steps = 0; steps < maxSteps; steps++) {
      const rollout = await context.rollouts.get(id);
      if (!rollout || rollout.final || rollout.state === "planned") return nothingLeft;
      if (!(await step(rollout, context))) break;
    }
  } catch (error) {
    log.warn("roll.later", { rollout: id, error });
  }
  return later;
}

/** True when another step may follow at once. */
async function step(rollout: StoredRollout, context: RolloutContext): Promise<boolean> {
  const { rollouts, workerContext } = context;
  const { id, policyVersion } = rollout.record;
  const isOther = policyVersion !== workerContext.policyVersion;
  const { store } = workerContext;
  const isOld = isOther && (await store.isPolicyInForce(workerContext.policyVersion));
  // While policy is being replaced, rollouts of the new one are left to workers that have it.
  if (isOther && !isOld) return false;
  const halt = await reasonToPause(rollout, context);
  if (halt !== undefined) {
    const progress = { ...rollout.progress, why: halt };
    await rollouts.move(rollout, { state: "paused", progress, why: halt });
    return true;
  }
  await rollouts.seen(id);
  if (await waitsForMessage(rollout, context)) return false;
  const command = workerContext.commands.find(({ name }) => name === rollout.record.command);
  if (!command) return giveUp(rollout, context);
  const judged = await judgeOpen(rollout, command, context);
  const wanted = nextStep(rollout, judged);
  const refused = await refusedBefore(wanted.begins, rollout, command, workerContext);
  const ended = [...judged, ...refused];
  const next = refused.length === 0 ? wanted : nextStep(rollout, ended);
  const isNews = next.state !== rollout.state;
  if (!isNews && ended.length === 0 && next.begins.length === 0) return false;
  const moved = await rollouts.move(rollout, {
    state: next.state,
    progress: next.progress,
    outcomes: ended.filter(({ is: kind }) => kind !== "returned"),
    ...(next.why === undefined ? {} : { why: next.why }),
  });
  if (!moved) return true;
  await context.at?.("roll-claimed", id);
  await begin(moved, next.begins, command, context);
  return isNews;
}

/** Why a running rollout must pause until a person resumes it; undefined when it needn't. */
async function reasonToPause(
  { state, record, seenAt }: StoredRollout,
  { workerContext }: RolloutContext,
): Promise<string | undefined> {
  if (state !== "running") return undefined;
  const { store, policy, policyVersion } = workerContext;
  if (record.policyVersion !== policyVersion) return "the policy changed since this request";
  const frozen = await store.freezeState();
  if (frozen) return `all changes are frozen by ${frozen.by}`;
  // After a long gap the rollout may no longer be wanted.
  const awayMs = (await store.now()) - seenAt;
  if (awayMs > policy.timing.staleAfterMs) return `no worker advanced it for ${duration(awayMs)}`;
  return undefined;
}

/**
 * True while the first target must wait for the card: people should see it first, and its thread
 * holds the messages about targets. The wait is limited, because Slack may be unavailable.
 */
async function waitsForMessage(
  { progress, delivered, state }: StoredRollout,
  { rollouts }: RolloutContext,
): Promise<boolean> {
  if (state !== "running" || progress.next > 0 || delivered.card || delivered.isElsewhere)
    return false;
  return (await rollouts.now()) - (progress.startedAt ?? 0) < deadlineMs(messageWithinMs);
}

async function giveUp(rollout: StoredRollout, { rollouts }: RolloutContext): Promise<boolean> {
  const why = `this version of Gatehouse does not know ${rollout.record.command}`;
  const progress = { ...rollout.progress, why, endsAs: "failed" as const, open: [] };
  await rollouts.move(rollout, { state: "failed", progress, why });
  return false;
}

/**
 * Judges the targets in progress and returns outcomes of those that ended. Claimed targets that
 * never reached the journal are submitted now.
 */
async function judgeOpen(
  rollout: StoredRollout,
  command: ChangeCommand,
  context: RolloutContext,
): Promise<Outcome[]> {
  const { open } = rollout.progress;
  const { store } = context.workerContext;
  const stored = await store.getMany(open.map(({ request }) => request));
  const byId = new Map(stored.map((request) => [request.record.id, request]));
  const missing = open.filter(({ request }) => !byId.has(request));
  // A process may have died between claim and submit. A paused rollout submits nothing.
  if (rollout.state !== "paused") await begin(rollout, missing, command, context);
  const judged = await Promise.all(
    open.map(async (openTarget) => {
      const request = byId.get(openTarget.request);
      if (!request) return undefined;
      if (rollout.state === "ending") await cancelUnsent(request, store);
      const outcome = await judgeTarget(openTarget, request, command, context.workerContext);
      if (outcome && isReturned(rollout, request)) return { ...outcome, is: "returned" as const };
      if (outcome && isOverdue(rollout, request))
        return { ...openTarget, is: "cancelled" as const };
      return outcome;
    }),
  );
  return judged.filter((outcome) => outcome !== undefined);
}

/**
 * True for a request that a freeze or a new policy canceled unsent, pausing the rollout: that is no
 * failure, and the target is tried again.
 */
function isReturned({ state }: StoredRollout, { stage }: StoredRequest): boolean {
  return state === "paused" && stage.state === "cancelled" && stage.decidedBy === undefined;
}

/** A request that expires after a stop counts as canceled, not failed. */
function isOverdue({ state }: StoredRollout, { state: ended }: StoredRequest): boolean {
  return state === "ending" && ended === "expired";
}

/** Submits claimed targets until the rollout is paused or stopped. */
async function begin(
  rollout: StoredRollout,
  begins: readonly OpenTarget[],
  command: ChangeCommand,
  context: RolloutContext,
): Promise<void> {
  let standing = rollout;
  for (const { n, request: wanted } of begins) {
    const target = rollout.targets[n];
    if (!target) continue;
    if ((await context.rollouts.stateOf(rollout.record.id)) !== standing.state) return;
    const request = await submitTarget(standing, wanted, target, command, context);
    await context.at?.("roll-submitted", rollout.record.id);
    if (request === wanted) continue;
    // An equal request of the same person is used instead of a second one.
    const open = standing.progress.open.map((openTarget) =>
      openTarget.n === n ? { ...openTarget, request } : openTarget,
    );
    const { state, progress } = standing;
    const moved = await context.rollouts.move(standing, { state, progress: { ...progress, open } });
    if (!moved) return;
    standing = moved;
  }
}

/**
 * Submits the request of one target. Idempotent, because the ID is given. Returns the ID of the
 * request, or of an equal recent one.
 */
export async function submitTarget(
  rollout: StoredRollout,
  requestId: string,
  target: Target,
  command: ChangeCommand,
  { workerContext }: Pick<RolloutContext, "workerContext">,
): Promise<string> {
  const { record, delivered, state } = rollout;
  const { id, policyVersion } = record;
  const threadTs = record.threadTs ?? delivered.card?.ts;
  const { staleAfterMs } = workerContext.policy.timing;
  // A rollout that is ending submits a request only to cancel it, so the request must not run
  // meanwhile.
  const held = state === "ending" ? { staleAfterMs: -1, isHeld: true } : {};
  const input = withTarget(command, record.input, target);
  const permit = permitInRollout(rollout, { command, target, input }, workerContext);
  const origin = { kind: "rollout", rollout: id, request: requestId } as const;
  const details = { id: requestId, ...(threadTs ? { threadTs } : {}) };
  const submitContext = { ...workerContext, policyVersion, staleAfterMs, ...held };
  return (await submit(permit, origin, details, submitContext)).id;
}

/**
 * Finds targets that must not be touched, as failed outcomes: what runs on them isn't what should,
 * so a person must look first. A VM that doesn't run, or has no report now, is judged after it has
 * booted.
 */
async function refusedBefore(
  beginning: readonly OpenTarget[],
  { targets }: StoredRollout,
  command: ChangeCommand,
  { appraiser, policy, log }: WorkerContext,
): Promise<readonly Outcome[]> {
  if (!isAttestedAfter(command)) return [];
  const signal = AbortSignal.timeout(policy.timing.httpTimeoutMs);
  const refusals = beginning.map(async ({ n }): Promise<Outcome | undefined> => {
    const target = targets[n];
    if (!target) return undefined;
    try {
      const { vm, appraisal } = await appraiser.attest(target, { signal });
      if (appraisal.isOff || !statusFacts(vm.status).isRunning) return undefined;
      const refusal = appraisal.isJudged ? gateRefusal(appraisal) : undefined;
      const how = appraisal.verdict === "failed" ? "failed" : "could not be verified";
      if (refusal === undefined) return undefined;
      const why = `attestation ${how}${untried}${refusal}`;
      return { n, is: "failed", request: "", why, isUntrusted: true };
    } catch (error) {
      log.warn("attestation.unread", { vm: target.id, why: messageOf(error) });
      return undefined;
    }
  });
  return (await Promise.all(refusals)).filter((refusal) => refusal !== undefined);
}

/** After this time without a current report, a VM counts as not attested (ms). */
const attestedWithinMs = 120_000;

/**
 * The outcome of a target; undefined until it has ended. If evidence is required, being settled
 * isn't enough.
 */
async function judgeTarget(
  { n }: OpenTarget,
  stored: StoredRequest,
  command: ChangeCommand,
  context: WorkerContext,
): Promise<Outcome | undefined> {
  const { stage, changedAt, record } = stored;
  const base = { n, request: record.id };
  const why = whyOf(stage);
  if (stage.state === "unknown") return { ...base, is: "unknown", ...(why ? { why } : {}) };
  if (!stored.final) return undefined;
  if (stage.state === "cancelled" && why === canceledUnsent) return { ...base, is: "cancelled" };
  if (stage.state !== "done") return { ...base, is: "failed", why: why ?? stage.state };
  const tookMs = stage.call ? { tookMs: changedAt - stage.call.sentAt } : {};
  const trust = await trustOf(stored, command, context);
  if (trust.state === "waits") return undefined;
  if (trust.state === "bad")
    return { ...base, is: "failed", ...tookMs, why: trust.why, isUntrusted: true };
  return { ...base, is: stage.already ? "already" : "ok", ...tookMs };
}

type Trust = { state: "good" } | { state: "waits" } | { state: "bad"; why: string };

/** Whether the VM is attested and matches its pins, if that is required. */
async function trustOf(
  request: StoredRequest,
  command: ChangeCommand,
  context: WorkerContext,
): Promise<Trust> {
  const { timing } = context.policy;
  let missing: string;
  try {
    const appraisal = await appraisalAfter(request, command, context);
    const refusal = appraisal && gateRefusal(appraisal);
    if (refusal === undefined) return { state: "good" };
    if (appraisal?.verdict === "failed")
      return { state: "bad", why: `attestation failed: ${refusal}` };
    missing = refusal;
  } catch (error) {
    missing = messageOf(error);
  }
  const waitedMs = (await context.store.now()) - request.changedAt;
  if (waitedMs < Math.min(attestedWithinMs, timing.settleDeadlineMs)) return { state: "waits" };
  return { state: "bad", why: `attestation could not be verified: ${missing}` };
}

const canceledUnsent = "the rollout was stopped before it started";

async function cancelUnsent(request: StoredRequest, store: Pick<Journal, "move">): Promise<void> {
  if (request.state === "authorized")
    await endUnsent(request, { state: "cancelled", why: canceledUnsent }, { store });
}

/**
 * Cancels unsent requests of a stopped rollout at once: a worker that was down might otherwise
 * start one before it reads the rollout.
 */
export async function cancelUnsentOpen({ progress }: StoredRollout, store: Journal) {
  const open = await store.getMany(progress.open.map(({ request }) => request));
  await Promise.all(open.map((request) => cancelUnsent(request, store)));
}
