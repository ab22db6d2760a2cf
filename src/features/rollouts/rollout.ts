import { hash, randomBytes } from "node:crypto";
import type { Rolling } from "./rolling.ts";
import { calledName, type Target } from "../../registry/define.ts";
import { lettersOf } from "../../core/request/record.ts";

/**
 * The states of a rollout: one command on many targets. The rollout decides when the next target
 * may begin, as a request; only the journal decides whether and how anything is sent.
 *
 *     planned ──► running ◄──► paused
 *                    │            │
 *                    └─► ending ◄─┘   no other target begins, those in progress end
 *                           │
 *     running ──► done      └──► stopped (by a person) | failed (too many failed, or attestation)
 *
 * A `planned` rollout is shown in a form and not confirmed yet; it is deleted after a while.
 */
export const rolloutStates = [
  "planned",
  "running",
  "paused",
  "ending",
  "done",
  "stopped",
  "failed",
] as const;
export type RolloutState = (typeof rolloutStates)[number];

/** The part of a rollout that never changes once confirmed. */
export interface RolloutRecord {
  id: string;
  command: string;
  /** Arguments as words, without targets and rollout options. */
  input: Record<string, unknown>;
  /** The targets as typed: `web-*`. */
  words: string;
  options: Rolling;
  /** How many targets there are. */
  total: number;
  /** Set when the words named every VM; then the number must be typed, however small. */
  isEverything?: boolean;
  requester: { id: string; teamId: string; name: string };
  channelId: string;
  threadTs?: string;
  policyVersion: string;
  /** VMs that were skipped, each with the reason. */
  leftOut: readonly Skipped[];
  /** When it was made (ms by Redis). */
  createdAt: number;
}

export interface Skipped {
  name: string;
  why: string;
}

/** A target in progress. */
export interface OpenTarget {
  /** Index of the target. */
  n: number;
  request: string;
}

export interface RolloutProgress {
  /** Index of the first target that has not begun. */
  next: number;
  open: readonly OpenTarget[];
  /**
   * Indexes of targets whose request was canceled unsent while the rollout was paused. They are
   * tried again on resume.
   */
  again?: readonly number[] | undefined;
  /** How often each target was tried again, by index. Each time needs a request of its own. */
  requeues?: Readonly<Record<string, number>>;
  ok: number;
  /** Part of `ok`: targets that were already in the wanted state. */
  already: number;
  /** Failed targets, including unknown outcomes, because both stop a rollout. */
  failed: number;
  /** Part of `failed`: unknown outcomes. */
  unknown?: number;
  /** Reason for the state, shown to people. */
  why?: string;
  /** Index of the target that stopped the rollout. */
  culprit?: number;
  /** The state after all targets in progress have ended. */
  endsAs?: "stopped" | "failed";
  /** The person who paused or stopped it, while that lasts. */
  by?: { id: string; name: string };
  startedAt?: number;
}

/** Marks the reason of a target that was refused before it was touched. */
export const untried = " before it was touched: ";

export interface Outcome {
  n: number;
  is: "ok" | "already" | "failed" | "unknown" | "cancelled" | "returned";
  /** ID of the request; empty when the target was refused before it was touched. */
  request: string;
  why?: string;
  /** Time from the send until the target settled (ms). */
  tookMs?: number;
  /** Whether attestation failed; that stops the rollout, whatever the options say. */
  isUntrusted?: boolean;
}

/**
 * A rollout as stored. `revision` grows with every write, and each write names the revision that it
 * read.
 */
export interface StoredRollout {
  record: RolloutRecord;
  targets: readonly Target[];
  /** Outcomes of targets that ended, by index. */
  outcomes: ReadonlyMap<number, Outcome>;
  state: RolloutState;
  final: boolean;
  revision: number;
  changedAt: number;
  progress: RolloutProgress;
  /** When a worker last advanced it (ms by Redis). */
  seenAt: number;
  delivered: {
    marks: Record<string, string>;
    card?: { channelId: string; ts: string };
    /** The previous card, which Slack no longer lets Gatehouse edit. */
    formerCard?: { channelId: string; ts: string };
    shown?: string;
    /** True when Gatehouse can't post in the channel. */
    isElsewhere: boolean;
  };
}

export function newRolloutId(): string {
  return `roll-${lettersOf(randomBytes(8))}`;
}

/**
 * ID of a target's request. It is derived from the rollout and the index, so the journal stores it
 * once, however often and late it is submitted.
 */
export function requestIdOf(rolloutId: string, n: number, earlier = 0): string {
  return `r-${lettersOf(hash("sha256", `${rolloutId} ${n} ${earlier}`, "buffer").subarray(0, 10))}`;
}

/**
 * ID of the rollout that continues with what this one left. It is always the same, so only one can
 * be made.
 */
export function restIdOf(rolloutId: string): string {
  return `roll-${lettersOf(hash("sha256", `rest of ${rolloutId}`, "buffer").subarray(0, 8))}`;
}

/**
 * Targets that did not begin or were canceled unsent; with `again`, also the one that stopped the
 * rollout.
 */
export function restOf(rollout: StoredRollout, again: boolean): readonly Target[] {
  const { targets, outcomes, progress } = rollout;
  const isLeft = (n: number) => (outcomes.get(n)?.is ?? "cancelled") === "cancelled";
  return targets.filter((_, n) => isLeft(n) || (again && n === progress.culprit));
}

/**
 * Whether the target that stopped the rollout may be tried again: not if its outcome is unknown,
 * because it may have happened.
 */
export function mayTryAgain({ outcomes, progress }: Pick<StoredRollout, "outcomes" | "progress">) {
  return progress.culprit !== undefined && outcomes.get(progress.culprit)?.is === "failed";
}

/**
 * Returns the index of the target at which a rollout with these options would stop, if each of these
 * targets fails as it is known to. Undefined when it would reach its end. Pure.
 */
export function firstBlockingTarget(
  targets: readonly Pick<Target, "id">[],
  known: ReadonlyMap<string, "fails" | "halts">,
  { canary, stopOnFailure }: Pick<Rolling, "canary" | "stopOnFailure">,
): number | undefined {
  let failed = 0;
  for (const [n, { id }] of targets.entries()) {
    const effect = known.get(id);
    if (effect !== undefined) failed++;
    if (effect === "halts" || (canary && n === 0 && failed > 0) || failed >= stopOnFailure)
      return n;
  }
  return undefined;
}

export const isFinalState = (state: RolloutState): boolean =>
  state === "done" || state === "stopped" || state === "failed";

interface Step {
  state: RolloutState;
  progress: RolloutProgress;
  /** Targets that begin; they are in `progress.open` too. */
  begins: readonly OpenTarget[];
  /** Reason for a change of state, for the audit trail. */
  why?: string;
}

type Steppable = Pick<StoredRollout, "record" | "targets" | "state" | "progress">;

/** Decides the next state after these outcomes, and the targets that begin. Pure. */
export function nextStep(rollout: Steppable, ended: readonly Outcome[]): Step {
  const counted = count(rollout.progress, ended);
  const { id, total } = rollout.record;
  if (rollout.state === "running" || rollout.state === "paused") {
    const stop = reasonToStop(rollout, counted, ended);
    if (stop !== undefined) {
      const progress: RolloutProgress = { ...counted, endsAs: "failed", ...stop };
      const state = counted.open.length > 0 ? "ending" : "failed";
      return { state, progress, begins: [], why: stop.why };
    }
    if (leftOf(counted, total).length === 0 && counted.open.length === 0) {
      const { why: _over, ...progress } = counted;
      return { state: "done", progress, begins: [], why: "all have ended" };
    }
  }
  if (rollout.state === "ending" && counted.open.length === 0) {
    const state = counted.endsAs ?? "stopped";
    return { state, progress: counted, begins: [], why: counted.why ?? "stopped" };
  }
  if (rollout.state !== "running") return { state: rollout.state, progress: counted, begins: [] };
  const room = Math.max(0, roomFor(rollout, counted) - counted.open.length);
  const places = leftOf(counted, total, room);
  const begins = places.map((n) => ({ n, request: requestIdOf(id, n, counted.requeues?.[n]) }));
  const progress: RolloutProgress = {
    ...counted,
    next: Math.max(counted.next, ...places.map((n) => n + 1)),
    open: [...counted.open, ...begins],
    again: counted.again?.filter((n) => !places.includes(n)),
  };
  return { state: "running", progress, begins };
}

/** Indexes of targets still to begin, at most `most`; those that are tried again come first. */
function leftOf({ again = [], next }: RolloutProgress, total: number, most = 1): number[] {
  const left = again.slice(0, most);
  for (let n = next; n < total && left.length < most; n++) left.push(n);
  return left;
}

/** How many targets may be in progress: only the canary until it has succeeded. */
function roomFor({ record }: Steppable, progress: RolloutProgress): number {
  const { canary, maxUnavailable } = record.options;
  const isBegun = progress.next > 0 && !progress.again?.includes(0);
  const isProven = isBegun && progress.open.every(({ n }) => n > 0);
  return canary && !isProven ? 1 : maxUnavailable;
}

/**
 * Why the rollout must stop; undefined when it goes on. A failed attestation or a failed canary
 * stops it, whatever the options say.
 */
function reasonToStop(
  rollout: Steppable,
  { failed }: RolloutProgress,
  ended: readonly Outcome[],
): { why: string; culprit: number } | undefined {
  const { canary, stopOnFailure } = rollout.record.options;
  const bad = ended.filter(hasFailed);
  const [untrusted] = bad.filter(({ isUntrusted }) => isUntrusted);
  const worst = untrusted ?? bad.find(({ n }) => canary && n === 0) ?? bad.at(-1);
  if (worst === undefined || (failed < stopOnFailure && !untrusted && !(canary && worst.n === 0)))
    return undefined;
  const role = canary && worst.n === 0 ? "the canary " : "";
  const why = `${role}${nameAt(rollout, worst.n)}: ${worst.why ?? worst.is}`;
  return { why, culprit: worst.n };
}

export function nameAt({ targets }: Pick<StoredRollout, "targets">, n: number): string {
  return targets[n] ? calledName(targets[n]) : `number ${n + 1}`;
}

function count(progress: RolloutProgress, ended: readonly Outcome[]): RolloutProgress {
  const places = new Set(ended.map(({ n }) => n));
  const returned = ended.filter(({ is: kind }) => kind === "returned").map(({ n }) => n);
  const times = returned.map((n) => [n, (progress.requeues?.[n] ?? 0) + 1] as const);
  return {
    ...progress,
    open: progress.open.filter(({ n }) => !places.has(n)),
    again: [...(progress.again ?? []), ...returned],
    requeues: { ...progress.requeues, ...Object.fromEntries(times) },
    ok: progress.ok + ended.filter(endedWell).length,
    already: progress.already + ended.filter(({ is: kind }) => kind === "already").length,
    failed: progress.failed + ended.filter(hasFailed).length,
    unknown: (progress.unknown ?? 0) + ended.filter(({ is: kind }) => kind === "unknown").length,
  };
}

function endedWell({ is: kind }: Pick<Outcome, "is">): boolean {
  return kind === "ok" || kind === "already";
}

function hasFailed({ is: kind }: Pick<Outcome, "is">): boolean {
  return kind === "failed" || kind === "unknown";
}

export type RolloutControl = "pause" | "resume" | "stop";

/** The state after a person's control; undefined when the control doesn't apply. */
export function afterControl(
  { state, progress }: Pick<StoredRollout, "state" | "progress">,
  steering: RolloutControl,
  person: { id: string; name: string },
): { state: RolloutState; progress: RolloutProgress } | undefined {
  const { why: _was, by: _former, ...kept } = progress;
  if (steering === "resume")
    return state === "paused" ? { state: "running", progress: kept } : undefined;
  if (steering === "pause") {
    if (state !== "running") return undefined;
    return { state: "paused", progress: { ...kept, why: `paused by ${person.name}`, by: person } };
  }
  if (state !== "running" && state !== "paused") return undefined;
  const ending = {
    ...kept,
    why: `stopped by ${person.name}`,
    by: person,
    endsAs: "stopped" as const,
  };
  return { state: progress.open.length > 0 ? "ending" : "stopped", progress: ending };
}
