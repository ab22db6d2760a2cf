import { attest } from "../attestation/attest.ts";
import { pinsFor } from "../attestation/pins.ts";
import type { Vm } from "../compute/compute.ts";
import { messageOf } from "../errors.ts";
import type { Target } from "../registry/target.ts";
import { attestedAgain } from "../requests/addendum.ts";
import type { Performing } from "../requests/performing.ts";
import type { StoredRequest } from "../requests/record.ts";
import type { OpenTarget, Outcome } from "./roll.ts";
import { takenBack } from "./take-back.ts";

/** How long a report may take to show what runs since the change (ms); then what runs counts as not attested. */
const attestedWithinMs = 120_000;

/** How a target of a roll ended; undefined while that isn't known. Settled is not enough where attestation is enabled. */
export async function judgeTarget(
  { n }: OpenTarget,
  stored: StoredRequest,
  target: Target,
  by: Performing,
): Promise<Outcome | undefined> {
  const { state, progress, changedAt, record } = stored;
  const base = { n, request: record.id };
  const why = progress.why === undefined ? {} : { why: progress.why };
  if (state === "unknown") return { ...base, is: "unknown", ...why };
  if (!stored.final) return undefined;
  if (state === "cancelled" && progress.why === takenBack) return { ...base, is: "cancelled" };
  if (state !== "done") return { ...base, is: "failed", why: progress.why ?? state };
  const tookMs = progress.sentAt === undefined ? {} : { tookMs: changedAt - progress.sentAt };
  const trust = await trustOf(stored, target, by);
  if (trust.is === "waits") return undefined;
  if (trust.is === "bad")
    return { ...base, is: "failed", ...tookMs, why: trust.why, isUntrusted: true };
  return { ...base, is: progress.already ? "already" : "ok", ...tookMs };
}

type Trust = { is: "good" } | { is: "waits" } | { is: "bad"; why: string };

/** Whether what runs now is attested and within its pins, where attestation is enabled at all. */
async function trustOf(
  { record, progress, changedAt }: StoredRequest,
  target: Target,
  by: Performing,
): Promise<Trust> {
  const [before, after] = [progress.before as Vm | undefined, progress.after as Vm | undefined];
  // A list may tell less of a VM than the VM's own record, which was read before
  const isEnabled = (after?.attestation ?? before?.attestation)?.enabled === true;
  const runs = (after ?? before)?.status === "RUNNING";
  if (!attestedAgain.has(record.command) || !isEnabled || !runs) return { is: "good" };
  const { timing, attestation } = by.policy;
  const place = `${target.projectName ?? target.projectId}/${target.name}`;
  let missing: string;
  try {
    const { appraisal } = await attest(target.id, {
      compute: by.compute,
      pins: pinsFor(attestation.pins, [target.name, target.id, place]),
      now: Date.now,
      notBefore: progress.already ? undefined : progress.sentAt,
      signal: AbortSignal.timeout(timing.httpTimeoutMs),
    });
    if (appraisal.verdict === "verified") return { is: "good" };
    const reasons = appraisal.reasons.join("; ");
    if (appraisal.verdict === "failed") return { is: "bad", why: `attestation failed: ${reasons}` };
    missing = reasons;
  } catch (error) {
    missing = messageOf(error);
  }
  const waitedMs = (await by.store.now()) - changedAt;
  if (waitedMs < Math.min(attestedWithinMs, timing.settleDeadlineMs)) return { is: "waits" };
  return { is: "bad", why: `attestation could not be verified: ${missing}` };
}
