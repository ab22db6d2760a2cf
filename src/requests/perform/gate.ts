import {
  type CallOptions,
  describeFailure,
  type Endpoint,
  endpoints,
  gapsWords,
  type ListGaps,
  mayHide,
  type Vm,
  isTransitional,
  ComputeError,
  type Compute,
  unreachableWords,
} from "../../compute/compute.ts";
import { refusal, ownerOf } from "../../policy/refusal.ts";
import { scopeOfPerson, teamsOf } from "../../policy/access.ts";
import type { ChangeCommand, Refusal, Seen, Target, Effect } from "../../registry/define.ts";
import type { Person, Args } from "../../registry/invocation.ts";
import {
  type StoredRequest,
  type RequestRecord,
  statusOf,
  isAnotherOne,
  isList,
  approvableOf,
  type Progress,
} from "../journal/record.ts";
import { fingerprintOf } from "../../approvals/fingerprint.ts";
import { countApprovals } from "../../approvals/votes.ts";
import { approvalRule, covers, needsOf, voteRefusal } from "../../policy/approval-rule.ts";
import type { Appraiser } from "../../attestation/appraiser.ts";
import type { Log } from "../../log/log.ts";
import type { Policy } from "../../config/policy-file.ts";
import { parseInput } from "../../registry/parse.ts";
import type { Ledger } from "../journal/ledger.ts";
import type { Journal } from "../journal/journal.ts";
import type { Polls } from "../journal/limits.ts";
import type { Freeze } from "../journal/switches.ts";

type Closed = Extract<Stop, { is: "closed" | "later" }>;

/** Preflight check before the claim: the requester's rights, the approvals, and the target, read again by its ID. */
export async function gate(
  request: StoredRequest,
  { command, args, effect }: Change,
  by: WorkerContext,
): Promise<Stop | { is: "open"; before: Seen | undefined; vmIds: readonly string[] }> {
  const { record } = request;
  if (record.policyVersion !== by.policyVersion) {
    if (await by.store.isOlderPolicy(record.policyVersion, by.policyVersion))
      return { is: "closed", why: "the policy changed since this request", hint: underNewPolicy };
    return { is: "later", why: "it waits for a worker that has the new policy" };
  }
  let person;
  try {
    person = await by.person(record.requester.id, record.requester.teamId);
  } catch {
    return { is: "later", why: "Slack can't confirm who you are right now" };
  }
  let read: Read;
  let target: Target | undefined;
  try {
    const within = readWithin(by.policy.timing);
    [read, target] = await Promise.all([
      readTarget(record.target, by, within),
      asNamedNow(record.target, by, within),
    ]);
  } catch (error) {
    const decision = whenUnreadable(error);
    // Only the second time in a row: one failed handshake may be a hiccup
    if (decision.why === untrusted && request.progress.why === untrusted) {
      const reason = `${certificate}: another server may be answering`;
      await by.store.freeze({ by: "Gatehouse", cause: "certificate-untrusted", reason });
    }
    return decision;
  }
  const { seen, vms } = read;
  if (target === undefined && seen !== undefined) return { is: "later", why: noProject };
  target ??= record.target;
  const elsewhere = teamChange(record.target, ownerOf(target).name, by.policy);
  if (elsewhere !== undefined) return { is: "closed", why: elsewhere, hint: "Request again." };
  const hidden = hiddenVms(read);
  if (hidden !== undefined) return { is: "later", why: `${hidden}; nothing was sent` };
  const vmIds = vms.map(({ id }) => id);
  const refused = refusal({
    policy: by.policy,
    person,
    ourTeamId: by.ourTeamId,
    command,
    targets: [target],
    input: record.input,
    channelId: record.channelId,
    vmNames: vms.map(({ name }) => name),
    breakGlass: record.breakGlass === true && !record.approval,
    isSafety: record.via === "safety",
    isUndo: await isUndo(record, by.store),
  });
  if (refused) return { is: "closed", why: refused.text, hint: refused.hint };
  const unapproved = await approvalProblem(request, command, { target, vms }, by);
  if (unapproved) return unapproved;
  if (command.on === "new-project") {
    // What the requester doesn't see is answered by the service, as it answers it
    const scope = scopeOfPerson(by.policy, person, by.ourTeamId);
    const known = seen && isList(seen) ? seen.filter((one) => scope?.sees(one) ?? true) : [];
    return refusedNow(effect.notNow?.(known)) ?? { is: "open", before: seen, vmIds };
  }
  if (seen === undefined) {
    if (command.on === "project" && command.deletes) return { is: "already", seen: [] };
    return { is: "closed", why: `${record.target.name} is gone`, hint: "Look it up by its name." };
  }
  // Before `difference`: an earlier call may have changed it, late
  if (request.attempt > 0 && !isAnotherOne(seen, record.target) && effect.already?.(seen, args))
    return { is: "already", seen };
  const changed = difference(record.target, seen);
  if (changed) return { is: "closed", why: changed, hint: "Check it, then request again." };
  if (effect.already?.(seen, args)) return { is: "already", seen };
  const refusedHere = refusedNow(effect.notNow?.(seen));
  if (refusedHere) return refusedHere;
  if (isTransitional(statusOf(seen)))
    return { is: "later", why: `${record.target.name} is ${statusOf(seen)} and must settle first` };
  return { is: "open", before: seen, vmIds };
}

function refusedNow(notNow: Refusal | undefined): Closed | undefined {
  return notNow && { ...notNow, is: "closed", why: notNow.text };
}

/** Whether it restores what the named request saved of this target, or is the safety snapshot right before that. */
async function isUndo(
  { undoes, target, input, via }: RequestRecord,
  store: Pick<WorkerContext["store"], "get">,
): Promise<boolean> {
  if (undoes === undefined) return false;
  const undone = await store.get(undoes);
  const saved = undone?.progress.safety?.snapshotId;
  if (saved === undefined || undone?.record.target.id !== target.id) return false;
  return via === "safety" || input["snapshot"] === saved;
}

/** A target that hangs must not hold a worker's slot for a call's whole timeout, several times. */
const gateReadMs = 5_000;

function readWithin({ httpTimeoutMs }: Policy["timing"]): CallOptions {
  return { signal: AbortSignal.timeout(Math.min(gateReadMs, 2 * httpTimeoutMs)) };
}

export interface Read {
  seen: Seen | undefined;
  /** The VMs of a project. */
  vms: readonly Vm[];
  /** How the list of them falls short. */
  gaps?: ListGaps | undefined;
}

/**
 * Why it isn't known which VMs a project has, or what they are called: rules and people decide by that, so nothing is decided
 * then. Undefined where it is known.
 */
export function hiddenVms({ seen, vms, gaps }: Read): string | undefined {
  if (!gaps || seen === undefined || isList(seen)) return undefined;
  const nameless = vms.filter(({ id, name }) => name === id && gaps.marked.includes(id));
  const words = [
    ...[gapsWords(gaps) ?? []].flat(),
    ...(nameless.length > 0 ? [`no name of ${nameless.map(({ id }) => id).join(", ")}`] : []),
  ];
  if (words.length === 0) return undefined;
  return `the compute service's list of the VMs of ${seen.name} can't be read whole: ${words.join("; ")}`;
}

/** Thrown where an answer lacks what a decision needs. */
function unusable(endpoint: Endpoint, lack: string | undefined): ComputeError {
  const message = `${describeFailure(endpoint, "unexpected", "answer", undefined)}: ${lack}`;
  return new ComputeError("unexpected", endpoint, message, { reason: "answer" });
}

/** A list that isn't whole is no proof that something doesn't exist. */
const notWhole = (gaps: ListGaps) => unusable(endpoints.listProjects, gapsWords(gaps));

/** Reads the target. `seen` is undefined only for a proven absence: a 404 while a control read succeeds. */
export async function readTarget(
  target: Target,
  { compute }: Pick<WorkerContext, "compute">,
  options: CallOptions = {},
): Promise<Read> {
  let gaps: ListGaps | undefined;
  const telling = { ...options, onGaps: (found: ListGaps) => void (gaps = found) };
  if (target.id === "") {
    const all = await compute.projects.listAll(undefined, telling);
    const seen = all.filter((project) => project.name === target.name);
    if (seen.length === 0 && gaps && mayHide(gaps, target.name)) throw notWhole(gaps);
    return { seen, vms: [] };
  }
  try {
    if (target.kind === "vm") return { seen: await compute.vms.get(target.id, options), vms: [] };
    const project = await compute.projects.get(target.id, options);
    const vms = project.type === "TEE_VM" ? await compute.projects.vms(target.id, telling) : [];
    return { seen: project, vms, gaps };
  } catch (error) {
    if (!(error instanceof ComputeError) || error.kind !== "not-found") throw error;
    // The control read
    const all = await compute.projects.listAll(undefined, telling);
    if (target.kind === "project" && all.some(({ id }) => id === target.id)) throw error;
    if (target.kind === "project" && gaps && mayHide(gaps, target.name)) throw notWhole(gaps);
    return { seen: undefined, vms: [] };
  }
}

/**
 * The target as rules know it now: a VM under the name that its project has at the service, which may have changed since anybody
 * looked. Undefined where the project can't be found.
 */
export async function asNamedNow(
  target: Target,
  { compute }: Pick<WorkerContext, "compute">,
  options: CallOptions = {},
): Promise<Target | undefined> {
  if (target.kind !== "vm") return target;
  try {
    let isMarked = false;
    const onGaps = () => void (isMarked = true);
    const { id, name } = await compute.projects.get(target.projectId, { ...options, onGaps });
    // Rules go by the name: its ID must not stand in for the one that can't be read
    if (isMarked && name === id && target.projectName !== id)
      throw unusable(endpoints.getProject, "name is missing");
    return { ...target, projectName: name };
  } catch (error) {
    if (error instanceof ComputeError && error.kind === "not-found") return undefined;
    throw error;
  }
}

const noProject = "the compute service doesn't find the project of this VM; nothing was sent";
const certificate = "the compute service's certificate can't be trusted";
const untrusted = `${certificate}; nothing was sent`;
/** Freezes and messages say the same of a 401 or 403. */
export const keyRefused = (status: number) =>
  `the compute service rejected Gatehouse's API key (${status})`;
export const underNewPolicy = "Request again under the new policy.";

function whenUnreadable(error: unknown): Closed {
  if (!(error instanceof ComputeError)) throw error;
  if (error.reason === "tls") return { is: "later", why: untrusted };
  if (error.status === 401 || error.status === 403) {
    const hint = "Nothing was sent. The team that runs Gatehouse must check COMPUTE_API_KEY.";
    return { is: "closed", why: keyRefused(error.status), hint };
  }
  if (error.kind === "refused" || error.kind === "conflict") {
    const said = error.serviceMessage ? `: ${error.serviceMessage}` : "";
    return { is: "closed", why: `the compute service refused to show it${said}` };
  }
  if (error.kind === "busy") return { is: "later", why: throttledWhy };
  if (error.kind === "unexpected")
    return {
      is: "later",
      why: `Gatehouse can't read the compute service's answer (${error.message}); nothing was sent`,
    };
  const what = unreachableWords(error);
  return { is: "later", why: `the compute service ${what} right now; nothing was sent` };
}

/** How the target changed since the request, in words. */
export function difference(asked: Target, now: Seen): string | undefined {
  if (isList(now)) return undefined;
  if (now.name !== asked.name) return `${asked.name} is now called ${now.name}`;
  if (asked.kind === "vm" && "projectId" in now && now.projectId !== asked.projectId)
    return `${asked.name} now belongs to another project`;
  if (isAnotherOne(now, asked)) {
    return `${asked.name} was replaced since the request: it was created at ${now.createdAt}`;
  }
  for (const spec of ["cpu", "memory", "disk"] as const) {
    const was = asked.specs?.[spec];
    const is = now.specs?.[spec];
    if (was !== undefined && is !== undefined && was !== is)
      return `${asked.name} changed since the request: ${spec} ${was} → ${is}`;
  }
  return undefined;
}

/**
 * Whether exactly the approved request would run now: the fingerprint is made again, votes are counted again with today's
 * groups, and the VMs of a project must be those that were shown.
 */
export async function approvalProblem(
  request: StoredRequest,
  command: ChangeCommand,
  /** As read now. */
  { target: named, vms }: { target: Target; vms: readonly Vm[] },
  by: Pick<WorkerContext, "policy" | "store" | "person" | "ourTeamId" | "log">,
): Promise<Closed | undefined> {
  const { record, votes } = request;
  const vmNames = vms.map(({ name }) => name);
  const { input, target } = record;
  const needed = approvalRule(by.policy, { command, targets: [named], input, vmNames });
  if (needed.required === 0 && !record.approval) return undefined;
  // A request with approvals never becomes break-glass afterwards
  if (record.breakGlass && !record.approval) return undefined;
  // Made by Gatehouse for an approved request; a snapshot changes nothing
  if (record.via === "safety" && command.on === "vm" && command.snapshot === "takes")
    return undefined;
  const { approval } = record;
  const asked = approvalRule(by.policy, { command, targets: [target], input });
  if (asked.required <= (approval?.required ?? 0) && needed.required > (approval?.required ?? 0)) {
    const why = `${target.name} now needs more approvals: ${needed.why}`;
    return { is: "closed", why, hint: "Request again." };
  }
  const asksForOthers = approval && !covers(needsOf(by.policy, approval), needed.votes);
  if (!approval || approval.required < needed.required || asksForOthers) {
    await alarm(record.id, "authorized without the approvals it needs", by);
    return { is: "closed", why: "it lacks the approvals that policy requires" };
  }
  const digest = fingerprintOf(approvableOf(record, approval));
  if (digest !== approval.digest) {
    await alarm(record.id, "differs from what was approved", by);
    return { is: "closed", why: "it is no longer what was approved" };
  }
  // The last vote and the authorization are one step: fewer or unrecorded votes are forged
  const everyone = new Set(votes.map(({ voterId }) => voterId));
  const invented = await by.store.votesNotInTrail(request);
  if (countApprovals(votes, digest, everyone) < approval.required || invented.length > 0) {
    await alarm(record.id, "authorized without votes that the audit trail knows of", by);
    return { is: "closed", why: "its approvals are not on record" };
  }
  const changed = childrenChanged(record, vms);
  const exactly = "Request again: approvals cover exactly what was shown.";
  if (changed) return { is: "closed", why: changed, hint: exactly };
  const needs = needsOf(by.policy, approval);
  const approvers: Person[] = [];
  try {
    const { ourTeamId } = by;
    const requester = await by.person(record.requester.id, record.requester.teamId);
    for (const { voterId, vote } of votes) {
      if (vote !== "approve") continue;
      const voter = await by.person(voterId, record.requester.teamId);
      if (!voteRefusal({ votes: needs, voter, ourTeamId, requester, approvers }))
        approvers.push(voter);
    }
  } catch {
    return { is: "later", why: "Slack can't confirm that the approvers may still approve" };
  }
  const counted = countApprovals(votes, digest, new Set(approvers.map(({ id }) => id)));
  if (counted >= approval.required) return undefined;
  const why = `${counted} of ${approval.required} approvals are still valid`;
  const lost = "An approver lost the right to approve, or approved with two accounts.";
  return { is: "closed", why, hint: `${lost} Request again.` };
}

/** The journal was changed by hand: into the trail and the log. */
async function alarm(
  request: string,
  why: string,
  by: Pick<WorkerContext, "store" | "log">,
): Promise<void> {
  await by.store.note({ what: "alarm", request, why });
  by.log.error("approval.forged", { request, why });
}

/** How the VMs of a project differ from those shown to approvers, in words. */
function childrenChanged(record: RequestRecord, vms: readonly Vm[]): string | undefined {
  if (!record.children) return undefined;
  const before = new Map(record.children.map((child) => [child.id, child]));
  const came = vms.filter(({ id }) => !before.has(id)).map(({ name }) => name);
  const now = new Set(vms.map(({ id }) => id));
  const went = record.children.filter(({ id }) => !now.has(id)).map(({ name }) => name);
  if (came.length === 0 && went.length === 0) return undefined;
  const added = came.length > 0 && `${came.join(", ")} added`;
  const removed = went.length > 0 && `${went.join(", ")} removed`;
  return `${record.target.name} changed since the request: ${[added, removed].filter(Boolean).join("; ")}`;
}

/**
 * Why a request no longer stands: its project is called otherwise by now, and so has another team. Those who asked and those
 * who approved may have no rights there; someone who has them requests again, and is judged by the new name.
 */
export function teamChange(target: Target, name: string | undefined, policy: Policy) {
  const before = ownerOf(target);
  if (name === undefined || name === before.name) return undefined;
  const [then, now] = [before, { id: before.id, name }].map((one) =>
    teamsOf(policy, one).toSorted().join(" "),
  );
  return then === now
    ? undefined
    : `the project ${before.name ?? before.id} is called ${name} by now and belongs to another team`;
}

/** What lies to the right in the import order (the queue, Slack) comes in as functions. */
export interface WorkerContext {
  store: Journal;
  ledger: Ledger;
  compute: Compute;
  appraiser: Appraiser;
  commands: readonly ChangeCommand[];
  policy: Policy;
  policyVersion: string;
  /** Why this process claims nothing now, in words (`start/policy-keeper.ts`). */
  standstill(): string | undefined;
  ourTeamId: string;
  /** Who this is in Slack, at most a minute old. Rejects when Slack can't say. */
  person(id: string, teamId: string): Promise<Person>;
  /** The name of a project as last read; undefined for one that isn't known. */
  projectName(id: string): Promise<string | undefined>;
  workerId: string;
  /** False once that worker's heartbeat stays away (`observeAlive`). */
  isAlive(workerId: string): Promise<boolean>;
  /** Enqueues a wake-up for a request. */
  wake(id: string): Promise<void>;
  polls: Polls;
  /** This worker's slots, shared between projects. */
  shares: ReturnType<typeof createShares>;
  /** Requests whose call this process saw end without a clear answer: only it may resend them. */
  mine: Set<string>;
  /** Claims (`claimId`) under way in this process; undecided until they end. */
  calling: Set<string>;
  /** Claims (`claimId`) of any worker seen under way, since when by this process's monotonic clock. */
  sendingSince: Map<string, number>;
  /** Claims (`claimId`) of this process whose call never left, and that could not be returned. */
  unsent: Set<string>;
  /** Undefined once no single failure of Redis can lose this claim; otherwise why that isn't known, in words. */
  durable(claimed: StoredRequest, replicas: number | undefined): Promise<string | undefined>;
  log: Log;
  at: Failpoints<"gate" | "gated" | "claim" | "ledger" | "send" | "answer" | "move" | "watch">;
}

/** Test hook: tests end the process at these points. */
export type Failpoints<Point> = ((point: Point, what: string) => Promise<void>) | undefined;

/** A request, parsed. */
export interface Change {
  command: ChangeCommand;
  args: Args;
  effect: Effect<Seen, Args>;
}

/**
 * A process of another version may have written the record: undefined for a command that this one lacks, throws UserError for unreadable
 * arguments.
 */
export function changeOf(
  { command: name, input }: Pick<RequestRecord, "command" | "input">,
  commands: readonly ChangeCommand[],
): Change | undefined {
  const command = commands.find((one) => one.name === name);
  return command && { command, args: parseInput(command, input), effect: command.effect };
}

/** A request whose step or judging has thrown so often is left to a person. */
export const maxStepErrors = 5;

export const throttledWhy = "the compute service asked Gatehouse to slow down";

/** What the queue does next with this request. */
export type Next = { is: "ended" } | { is: "wait"; ms: number };

export const ended: Next = { is: "ended" };
export const waitFor = (ms: number): Extract<Next, { is: "wait" }> => ({
  is: "wait",
  ms: Math.max(1, Math.ceil(ms)),
});

/** Why a request isn't sent now. */
export type Stop =
  /** The target is already in the wanted state. */
  | { is: "already"; seen: Seen }
  | ({ is: "closed"; why: string; hint?: string | undefined } & Pick<Refusal, "instead">)
  /** Undecided; try later. */
  | { is: "later"; why: string; hint?: string; safety?: Progress["safety"] }
  | { is: "frozen"; freeze: Freeze }
  /** Another request holds the target. */
  | { is: "locked"; holder: string };

/** Full jitter, so that many who wait don't come back at once. */
export function jitter(ms: number): number {
  return Math.random() * ms;
}

/** 2, 4, 8 … times the first poll interval, at most the longest; half of it is jitter. */
export function backoff(times: number, timing: Policy["timing"]): number {
  const whole = Math.min(timing.pollMostMs, timing.pollFirstMs * 2 ** Math.min(times, 10));
  return whole / 2 + jitter(whole / 2);
}

/** Not the attempt's number alone: a claim that Redis never had is made again under the same number. */
export const claimId = ({ record, attempt, nonce }: StoredRequest): string =>
  `${record.id} ${attempt} ${nonce ?? ""}`;

/** From this age on (ms), a step under way shows that its project is slow. */
const slowMs = 2_000;
/** How long a project counts as slow after that. */
const slowForMs = 30_000;

/**
 * Shares a worker's slots between projects: one alone gets three quarters of them, and one whose calls hang gets a quarter,
 * so that requests of others begin within seconds.
 */
export function createShares(slots: number, now: () => number = () => performance.now()) {
  const running = new Map<string, Set<{ since: number }>>();
  const slowUntil = new Map<string, number>();
  return {
    /** Takes a place, to be given back by calling the result; undefined when the project has none left. */
    take(project: string): (() => void) | undefined {
      const places = running.get(project) ?? new Set();
      const at = now();
      if ([...places].some(({ since }) => at - since > slowMs))
        slowUntil.set(project, at + slowForMs);
      const isSlow = (slowUntil.get(project) ?? 0) > at;
      if (places.size >= Math.max(1, Math.floor(slots * (isSlow ? 0.25 : 0.75)))) return undefined;
      const place = { since: at };
      running.set(project, places.add(place));
      return () => {
        if (now() - place.since > slowMs) slowUntil.set(project, now() + slowForMs);
        places.delete(place);
        if (places.size === 0) running.delete(project);
      };
    },
  };
}
