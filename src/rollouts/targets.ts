import type { WorkerContext } from "../requests/perform/worker-context.ts";
import type { RolloutTargets, StoredRollout, OpenTarget, Outcome } from "./rollout.ts";
import type { Rollouts } from "./rollouts.ts";
import type { ChangeCommand, Target } from "../registry/define.ts";
import { withTarget } from "../registry/invocation.ts";
import { submit } from "../requests/submit/submit.ts";
import { gateRefusal } from "../attestation/appraise.ts";
import { statusFacts, type Vm } from "../compute/compute.ts";
import { messageOf } from "../errors.ts";
import { isAttestedAfter } from "../requests/after-result.ts";
import type { StoredRequest } from "../requests/journal/record.ts";
import type { Journal } from "../requests/journal/journal.ts";

export interface RolloutContext {
  rollouts: Rollouts;
  workerContext: WorkerContext;
  /** Test hook: tests end the process at these points. */
  at(point: "roll-claimed" | "roll-submitted", rollout: string): Promise<void>;
}

/** Submits one target; idempotent, because the ID is given. Returns the ID of its request, or of an equal recent one. */
export async function submitTarget(
  { record, delivered, state }: StoredRollout,
  requestId: string,
  target: Target,
  command: ChangeCommand,
  { workerContext }: Pick<RolloutContext, "workerContext">,
): Promise<string> {
  const { id, teamId, name } = record.requester;
  const threadTs = record.threadTs ?? delivered.card?.ts;
  const submitted = await submit(
    {
      command,
      input: withTarget(command, record.input, target),
      target,
      person: { id, teamId, name, kind: "member", groups: [] },
      channelId: record.channelId,
      via: "roll",
      rollout: record.id,
      id: requestId,
      interactionId: `roll-${requestId}`,
      ...(threadTs ? { threadTs } : {}),
    },
    {
      store: workerContext.store,
      policy: workerContext.policy,
      policyVersion: record.policyVersion,
      // A rollout that ends submits it only to cancel it: it must not run meanwhile
      staleAfterMs: state === "ending" ? -1 : workerContext.policy.timing.staleAfterMs,
      wake: state === "ending" ? async () => undefined : workerContext.wake,
    },
  );
  return submitted.id;
}

/**
 * Those of these that must not be touched, as outcomes: what runs there isn't what should, so that somebody has to look before
 * it is changed. A VM that doesn't run, or whose report can't be had right now, is judged once it has booted.
 */
export async function refusedBefore(
  beginning: readonly OpenTarget[],
  targets: RolloutTargets,
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
      const isJudged = appraisal.result !== undefined || appraisal.isWithheld;
      const refusal = isJudged ? gateRefusal(appraisal) : undefined;
      const how = appraisal.verdict === "failed" ? "failed" : "could not be verified";
      if (refusal === undefined) return undefined;
      const why = `attestation ${how} before it was touched: ${refusal}`;
      return { n, is: "failed", request: "", why, isUntrusted: true };
    } catch (error) {
      log.warn("attestation.unread", { vm: target.id, why: messageOf(error) });
      return undefined;
    }
  });
  return (await Promise.all(refusals)).filter((refusal) => refusal !== undefined);
}

/** After this time without a current report, the VM counts as not attested. */
const attestedWithinMs = 120_000;

/** Undefined until the target has ended. Where evidence is asked of it, settled is not enough. */
export async function judgeTarget(
  { n }: OpenTarget,
  stored: StoredRequest,
  command: ChangeCommand,
  target: Target,
  by: WorkerContext,
): Promise<Outcome | undefined> {
  const { state, progress, changedAt, record } = stored;
  const base = { n, request: record.id };
  const why = progress.why === undefined ? {} : { why: progress.why };
  if (state === "unknown") return { ...base, is: "unknown", ...why };
  if (!stored.final) return undefined;
  if (state === "cancelled" && progress.why === canceledUnsent) return { ...base, is: "cancelled" };
  if (state !== "done") return { ...base, is: "failed", why: progress.why ?? state };
  const tookMs = progress.sentAt === undefined ? {} : { tookMs: changedAt - progress.sentAt };
  const trust = await trustOf(stored, command, target, by);
  if (trust.is === "waits") return undefined;
  if (trust.is === "bad")
    return { ...base, is: "failed", ...tookMs, why: trust.why, isUntrusted: true };
  return { ...base, is: progress.already ? "already" : "ok", ...tookMs };
}

type Trust = { is: "good" } | { is: "waits" } | { is: "bad"; why: string };

/** Whether the VM is attested and matches its pins, if evidence is asked of it. */
async function trustOf(
  { progress, changedAt }: StoredRequest,
  command: ChangeCommand,
  target: Target,
  by: WorkerContext,
): Promise<Trust> {
  const [before, after] = [progress.before as Vm | undefined, progress.after as Vm | undefined];
  const runs = statusFacts((after ?? before)?.status ?? "").isRunning;
  if (!isAttestedAfter(command) || !runs) return { is: "good" };
  if (!(await by.appraiser.isAskedOf(target, [before, after]))) return { is: "good" };
  const { timing } = by.policy;
  let missing: string;
  try {
    const { appraisal } = await by.appraiser.attest(target, {
      notBefore: progress.already ? undefined : progress.sentAt,
      signal: AbortSignal.timeout(timing.httpTimeoutMs),
    });
    const refusal = gateRefusal(appraisal);
    if (refusal === undefined) return { is: "good" };
    if (appraisal.verdict === "failed") return { is: "bad", why: `attestation failed: ${refusal}` };
    missing = refusal;
  } catch (error) {
    missing = messageOf(error);
  }
  const waitedMs = (await by.store.now()) - changedAt;
  if (waitedMs < Math.min(attestedWithinMs, timing.settleDeadlineMs)) return { is: "waits" };
  return { is: "bad", why: `attestation could not be verified: ${missing}` };
}

const canceledUnsent = "the rollout was stopped before it started";

export async function cancelUnsent(
  request: StoredRequest,
  store: Pick<Journal, "move">,
): Promise<void> {
  if (request.state !== "authorized") return;
  await store.move(request, {
    state: "cancelled",
    progress: { ...request.progress, why: canceledUnsent },
    why: canceledUnsent,
  });
}

/** At a stop, at once: a worker that was down might start a queued request before it reads the rollout. */
export async function cancelUnsentOpen(
  { progress }: Pick<StoredRollout, "progress">,
  store: Pick<Journal, "getMany" | "move">,
): Promise<void> {
  const open = await store.getMany(progress.open.map(({ request }) => request));
  await Promise.all(open.map((request) => cancelUnsent(request, store)));
}
