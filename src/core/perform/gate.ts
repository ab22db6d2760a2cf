import { ComputeError, isTransitional, unreachableWords } from "../../fleet/compute/compute.ts";
import type { Policy } from "../../config/policy-file.ts";
import { scopeOfPerson, teamsOf } from "../permit/access.ts";
import {
  type Basis,
  type Permit,
  askAndPermit,
  breakGlassBasis,
  raiseForRestore,
  usualBasis,
} from "../permit/permit.ts";
import { type PolicyRefusal, deedInWords, ownerOf } from "../permit/refusal.ts";
import type { ChangeCommand, Refusal, Seen, Target } from "../../registry/define.ts";
import type { RequestRecord } from "../request/record.ts";
import type { RequestIn } from "../request/stored-request.ts";
import { isAnotherOne, isList, statusOf } from "../request/seen.ts";
import { approvalProblem } from "./approvals-now.ts";
import {
  type TargetReading,
  asNamedNow,
  hiddenVms,
  readTarget,
  readWithin,
} from "./read-target.ts";
import { type Change, type ClosedOrLater, type Stop, throttledWhy } from "./step.ts";
import type { WorkerContext } from "./worker-context.ts";
import { undoneBy } from "../request/origin.ts";
import { basisToUndo } from "../request/saved-by.ts";

/** Preflight check before the claim: the requester's rights, the approvals, and the target, read again by its ID. */
export async function gate(
  request: RequestIn<"authorized">,
  { command, args, effect }: Change,
  worker: WorkerContext,
): Promise<Stop | { kind: "open"; before: Seen | undefined; vmIds: readonly string[] }> {
  const { record } = request;
  const stopped = await policyStop(record, worker);
  if (stopped) return stopped;
  let person;
  try {
    person = await worker.person(record.requester.id, record.requester.teamId);
  } catch {
    return { kind: "later", why: unconfirmed };
  }
  let read: TargetReading;
  let target: Target | undefined;
  try {
    const within = readWithin(worker.policy.timing);
    [read, target] = await Promise.all([
      readTarget(record.target, worker, within),
      asNamedNow(record.target, worker, within),
    ]);
  } catch (error) {
    const decision = whenUnreadable(error);
    // It freezes only the second time in a row, because one failed handshake may be an accident.
    if (decision.why === untrusted && request.stage.why === untrusted) {
      const reason = `${certificate}: another server may be answering`;
      await worker.store.freeze({ by: "Gatehouse", cause: "certificate-untrusted", reason });
    }
    return decision;
  }
  const { seen, vms } = read;
  if (target === undefined && seen !== undefined) return { kind: "later", why: noProject };
  target ??= record.target;
  const elsewhere = teamChange(record.target, ownerOf(target).name, worker.policy);
  if (elsewhere !== undefined) return { kind: "closed", why: elsewhere, hint: "Request again." };
  const hidden = hiddenVms(read);
  if (hidden !== undefined) return { kind: "later", why: `${hidden}; nothing was sent` };
  const vmIds = vms.map(({ id }) => id);
  const { input, channelId } = record;
  const asked = { command, input, channelId, basis: await basisOf(record, worker.store) };
  const about = { targets: [target], vms };
  let answer = askAndPermit({ ...asked, person }, about, worker);
  if (answer.refused) {
    try {
      // The gateway that took the request may know of a group's new member before this worker does
      person = await worker.person(record.requester.id, record.requester.teamId, { fresh: true });
    } catch {
      return { kind: "later", why: unconfirmed };
    }
    answer = askAndPermit({ ...asked, person }, about, worker);
    const { refused } = answer;
    if (refused) return { kind: "closed", ...refusedInWords(refused, record, command) };
  }
  const permit = await raisedByRead(answer.permit, read, request, worker);
  const unapproved = await approvalProblem(request, permit, vms, worker);
  if (unapproved) return unapproved;
  if (command.on === "new-project") {
    // A project that the requester can't see isn't told of here. When its name is taken, the service
    // says so itself.
    const scope = scopeOfPerson(worker.policy, person, worker.ourTeamId);
    const known =
      seen && isList(seen) ? seen.filter((project) => scope?.sees(project) ?? true) : [];
    return refusedNow(effect.notNow?.(known)) ?? { kind: "open", before: seen, vmIds };
  }
  if (seen === undefined) {
    if (command.on === "project" && command.deletes) return { kind: "already", seen: [] };
    return {
      kind: "closed",
      why: `${record.target.name} is gone`,
      hint: "Look it up by its name.",
    };
  }
  // This comes before `targetChange`, because an earlier call may have changed the target late.
  if (request.attempt > 0 && !isAnotherOne(seen, record.target) && effect.already?.(seen, args))
    return { kind: "already", seen };
  const changed = targetChange(record.target, seen);
  if (changed) return { kind: "closed", why: changed, hint: "Check it, then request again." };
  if (effect.already?.(seen, args)) return { kind: "already", seen };
  const refusedHere = refusedNow(effect.notNow?.(seen));
  if (refusedHere) return refusedHere;
  if (isTransitional(statusOf(seen)))
    return {
      kind: "later",
      why: `${record.target.name} is ${statusOf(seen)} and must settle first`,
    };
  return { kind: "open", before: seen, vmIds };
}

/**
 * Adds the approval that a restore needs by what the VM is now: its measurement may have changed
 * since the request. The age of the snapshot is that of the request, so that waiting for approvers
 * doesn't make it too old.
 */
async function raisedByRead(
  given: Permit,
  { seen }: TargetReading,
  { record }: RequestIn<"authorized">,
  { snapshots }: WorkerContext,
): Promise<Permit> {
  const { snapshot } = given.input;
  if (typeof snapshot !== "string" || !seen || isList(seen) || !("projectId" in seen)) return given;
  return raiseForRestore(given, {
    snapshot: await snapshots.find(seen.id, snapshot),
    measurementNow: seen.attestation?.measurement,
    now: record.createdAt,
  });
}

/**
 * Stops a request that was made under another policy than this worker's. Only a worker whose policy
 * is in force closes it, because any other worker may have the policy that was replaced.
 */
export async function policyStop(
  { policyVersion }: RequestRecord,
  worker: Pick<WorkerContext, "policyVersion" | "store">,
): Promise<ClosedOrLater | undefined> {
  if (policyVersion === worker.policyVersion) return undefined;
  if (await worker.store.isPolicyInForce(worker.policyVersion))
    return { kind: "closed", why: "the policy changed since this request", hint: underNewPolicy };
  return { kind: "later", why: "it waits for a worker that has the new policy" };
}

/** Says a refusal by policy on a card that others read, too: who may no longer do it, and the rule. */
function refusedInWords(
  { text, hint, smallPrint, allowed }: PolicyRefusal,
  { requester, target }: RequestRecord,
  command: ChangeCommand,
) {
  const deed = deedInWords({ command, targets: [target] });
  const why = allowed ? `${requester.name} may no longer ${deed}` : text;
  return { why, hint: [hint, smallPrint].filter(Boolean).join(" ") || undefined };
}

function refusedNow(notNow: Refusal | undefined): ClosedOrLater | undefined {
  return notNow && { ...notNow, kind: "closed", why: notNow.text };
}

/**
 * Returns the right by which the request was made, as far as the journal proves it. A record alone
 * is no proof.
 */
async function basisOf(
  { origin, target, input, breakGlass, approval }: RequestRecord,
  store: Pick<WorkerContext["store"], "get">,
): Promise<Basis> {
  const isEmergency = breakGlass === true && !approval;
  if (origin.kind === "safety") {
    if (isEmergency) return { kind: "safety", before: { target, input, basis: breakGlassBasis } };
    const next = await store.get(origin.request);
    if (!next) return usualBasis;
    const { target: nextTarget, input: asked } = next.record;
    const basis = await undoBasis(next.record, store);
    return { kind: "safety", before: { target: nextTarget, input: asked, basis } };
  }
  return isEmergency ? breakGlassBasis : undoBasis({ origin }, store);
}

/**
 * Returns the right of an undo, if the snapshot that it restores is the one that the journal knows
 * of the request it undoes.
 */
async function undoBasis(
  { origin }: Pick<RequestRecord, "origin">,
  store: Pick<WorkerContext["store"], "get">,
): Promise<Basis> {
  const undoes = undoneBy({ origin });
  return basisToUndo(undoes === undefined ? undefined : await store.get(undoes));
}

const noProject = "the compute service doesn't find the project of this VM; nothing was sent";
const certificate = "the compute service's certificate can't be trusted";
const untrusted = `${certificate}; nothing was sent`;
/** The reason for a 401 or 403, for freezes and messages. */
export const keyRefused = (status: number | undefined) =>
  `the compute service rejected Gatehouse's API key (${status})`;
const unconfirmed = "Slack can't confirm who you are right now";
export const underNewPolicy = "Request again under the new policy.";

function whenUnreadable(error: unknown): ClosedOrLater {
  if (!(error instanceof ComputeError)) throw error;
  if (error.reason === "tls") return { kind: "later", why: untrusted };
  if (error.status === 401) {
    const hint = "Nothing was sent. The team that runs Gatehouse must check COMPUTE_API_KEY.";
    return { kind: "closed", why: keyRefused(error.status), hint };
  }
  const serviceWords = error.serviceMessage ? `: ${error.serviceMessage}` : "";
  if (error.kind === "refused" || error.kind === "conflict") {
    return { kind: "closed", why: `the compute service refused to show it${serviceWords}` };
  }
  if (error.kind === "not-found")
    return {
      kind: "later",
      why: "the compute service lists it, but doesn't find it; nothing was sent",
    };
  if (error.kind === "busy") return { kind: "later", why: throttledWhy };
  if (error.kind === "unexpected")
    return {
      kind: "later",
      why: `Gatehouse can't read the compute service's answer (${error.message})${serviceWords}; nothing was sent`,
    };
  const problem = unreachableWords(error);
  return { kind: "later", why: `the compute service ${problem} right now; nothing was sent` };
}

/** Says in words how the target changed since the request. */
export function targetChange(asked: Target, now: Seen): string | undefined {
  if (isList(now)) return undefined;
  if (now.name !== asked.name) return `${asked.name} is now called ${now.name}`;
  if (asked.kind === "vm" && "projectId" in now && now.projectId !== asked.projectId)
    return `${asked.name} now belongs to another project`;
  if (isAnotherOne(now, asked)) {
    return `${asked.name} was replaced since the request: it was created at ${now.createdAt}`;
  }
  for (const spec of ["cpu", "memory", "disk"] as const) {
    const was = asked.specs?.[spec];
    const specNow = now.specs?.[spec];
    if (was !== undefined && specNow !== undefined && was !== specNow)
      return `${asked.name} changed since the request: ${spec} ${was} → ${specNow}`;
  }
  return undefined;
}

/**
 * Says why a request no longer stands: its project has another name now, and so another team. The
 * requester and the approvers may have no rights in that team; someone who has them requests again,
 * and is judged by the new name.
 */
export function teamChange(target: Target, name: string | undefined, policy: Policy) {
  const before = ownerOf(target);
  if (name === undefined || name === before.name) return undefined;
  const [then, now] = [before, { id: before.id, name }].map((owner) =>
    teamsOf(policy, owner).toSorted().join(" "),
  );
  return then === now
    ? undefined
    : `the project ${before.name ?? before.id} is called ${name} by now and belongs to another team`;
}
