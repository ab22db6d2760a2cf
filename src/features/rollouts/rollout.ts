import { hash, randomBytes } from "node:crypto";
import type { Rolling } from "./rolling.ts";
import { calledName, type Target } from "../../registry/define.ts";
import { lettersOf } from "../../core/request/record.ts";

/**
 * One command on many targets. The rollout decides when the next target may begin, as a request; the journal alone decides
 * whether and how anything is sent.
 *
 *     planned ──► running ◄──► paused
 *                    │            │
 *                    └─► ending ◄─┘   no further one begins, those under way end
 *                           │
 *     running ──► done      └──► stopped (by a person) | failed (too many failed, or one was not attested)
 *
 * - `planned`  shown in a dialog and not confirmed yet; deleted after a while
 */
export type RolloutState =
  | "planned"
  | "running"
  | "paused"
  | "ending"
  | "done"
  | "stopped"
  | "failed";

/** The part that never changes once confirmed. */
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
  /** The words named every VM: then the number must be typed, however small. */
  isEverything?: boolean | "of what they see";
  requester: { id: string; teamId: string; name: string };
  channelId: string;
  threadTs?: string;
  policyVersion: string;
  /** Skipped. */
  leftOut: readonly Skipped[];
  /** Milliseconds, Redis time. */
  createdAt: number;
}

export interface Skipped {
  name: string;
  why: string;
}

/** A target in progress. */
export interface OpenTarget {
  /** Its place among the targets, from 0. */
  n: number;
  request: string;
}

export interface RolloutProgress {
  /** The first target that has not begun. */
  next: number;
  open: readonly OpenTarget[];
  /** Canceled with nothing sent while the rollout was paused: requeued on resume. */
  again?: readonly number[] | undefined;
  /** Times requeued, by place: each time is another request. */
  requeues?: Readonly<Record<string, number>>;
  ok: number;
  /** Of `ok`: already in the wanted state. */
  already: number;
  /** Includes unknown outcomes: both stop a rollout. */
  failed: number;
  /** Of `failed`: unknown outcomes. */
  unknown?: number;
  /** The reason for its state, for people. */
  why?: string;
  /** The place of the target that stopped it. */
  culprit?: number;
  /** Its state once all in progress have ended. */
  endsAs?: "stopped" | "failed";
  /** Who paused or stopped it, while that lasts. */
  by?: { id: string; name: string };
  startedAt?: number;
}

/** In the reason of what was refused before it was touched. */
export const untried = " before it was touched: ";

export interface Outcome {
  n: number;
  is: "ok" | "already" | "failed" | "unknown" | "cancelled" | "returned";
  /** Empty where none was made: the target was refused before it was touched. */
  request: string;
  why?: string;
  /** From the send until settled (ms). */
  tookMs?: number;
  /** Failed attestation: stops the rollout, whatever the options say. */
  isUntrusted?: boolean;
}

/** `revision` grows with every write, and a write names the one that it read. */
export interface StoredRollout {
  record: RolloutRecord;
  targets: readonly Target[];
  /** Of targets that ended, by place. */
  outcomes: ReadonlyMap<number, Outcome>;
  state: RolloutState;
  final: boolean;
  revision: number;
  changedAt: number;
  progress: RolloutProgress;
  /** When a worker last advanced it (Redis, ms). */
  seenAt: number;
  delivered: {
    said: Record<string, string>;
    card?: { channelId: string; ts: string };
    /** The one before, which Slack no longer lets be edited. */
    formerCard?: { channelId: string; ts: string };
    shown?: string;
    /** The bot can't post in the channel. */
    isElsewhere: boolean;
  };
}

export function newRolloutId(): string {
  return `roll-${lettersOf(randomBytes(8))}`;
}

/** Derived from the rollout and the place, so the journal makes it once, however often and late it is submitted. */
export function requestIdOf(rolloutId: string, n: number, earlier = 0): string {
  return `r-${lettersOf(hash("sha256", `${rolloutId} ${n} ${earlier}`, "buffer").subarray(0, 10))}`;
}

/** The rollout that goes on with what another one left: one, however often it is asked for. */
export function restIdOf(rolloutId: string): string {
  return `roll-${lettersOf(hash("sha256", `rest of ${rolloutId}`, "buffer").subarray(0, 8))}`;
}

/** What did not begin, or was canceled before anything was sent; also what stopped it, to try that again. */
export function restOf(rollout: StoredRollout, again: boolean): readonly Target[] {
  const { targets, outcomes, progress } = rollout;
  const isLeft = (n: number) => (outcomes.get(n)?.is ?? "cancelled") === "cancelled";
  return targets.filter((_, n) => isLeft(n) || (again && n === progress.culprit));
}

/** Not where its outcome is unknown: it may have happened. */
export function mayTryAgain({ outcomes, progress }: Pick<StoredRollout, "outcomes" | "progress">) {
  return progress.culprit !== undefined && outcomes.get(progress.culprit)?.is === "failed";
}

export const isFinalState = (state: RolloutState): boolean =>
  state === "done" || state === "stopped" || state === "failed";

interface Step {
  state: RolloutState;
  progress: RolloutProgress;
  /** Also in `progress.open`. */
  begins: readonly OpenTarget[];
  /** Set when the state changes: why, for the audit trail. */
  why?: string;
}

type Steppable = Pick<StoredRollout, "record" | "targets" | "state" | "progress">;

/** The rollout's next state after these outcomes, and the targets that begin. */
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

/** Places still to begin, at most `most`: requeued ones first. */
function leftOf({ again = [], next }: RolloutProgress, total: number, most = 1): number[] {
  const left = again.slice(0, most);
  for (let n = next; n < total && left.length < most; n++) left.push(n);
  return left;
}

/** Until the canary has succeeded, it runs alone. */
function roomFor({ record }: Steppable, progress: RolloutProgress): number {
  const { canary, maxUnavailable } = record.options;
  const isBegun = progress.next > 0 && !progress.again?.includes(0);
  const isProven = isBegun && progress.open.every(({ n }) => n > 0);
  return canary && !isProven ? 1 : maxUnavailable;
}

/** A failed attestation or a failed canary stops it, whatever the options say. */
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
  const returned = ended.filter(({ is }) => is === "returned").map(({ n }) => n);
  const times = returned.map((n) => [n, (progress.requeues?.[n] ?? 0) + 1] as const);
  return {
    ...progress,
    open: progress.open.filter(({ n }) => !places.has(n)),
    again: [...(progress.again ?? []), ...returned],
    requeues: { ...progress.requeues, ...Object.fromEntries(times) },
    ok: progress.ok + ended.filter(endedWell).length,
    already: progress.already + ended.filter(({ is }) => is === "already").length,
    failed: progress.failed + ended.filter(hasFailed).length,
    unknown: (progress.unknown ?? 0) + ended.filter(({ is }) => is === "unknown").length,
  };
}

function endedWell({ is }: Pick<Outcome, "is">): boolean {
  return is === "ok" || is === "already";
}

function hasFailed({ is }: Pick<Outcome, "is">): boolean {
  return is === "failed" || is === "unknown";
}

export type RolloutControl = "pause" | "resume" | "stop";

/** The state after the control, or undefined where it does not apply. */
export function steered(
  { state, progress }: Pick<StoredRollout, "state" | "progress">,
  steering: RolloutControl,
  by: { id: string; name: string },
): { state: RolloutState; progress: RolloutProgress } | undefined {
  const { why: _was, by: _former, ...kept } = progress;
  if (steering === "resume")
    return state === "paused" ? { state: "running", progress: kept } : undefined;
  if (steering === "pause") {
    if (state !== "running") return undefined;
    return { state: "paused", progress: { ...kept, why: `paused by ${by.name}`, by } };
  }
  if (state !== "running" && state !== "paused") return undefined;
  const ending = { ...kept, why: `stopped by ${by.name}`, by, endsAs: "stopped" as const };
  return { state: progress.open.length > 0 ? "ending" : "stopped", progress: ending };
}
