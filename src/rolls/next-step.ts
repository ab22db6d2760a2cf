import type { OpenTarget, Outcome, RollProgress, RollState, StoredRoll } from "./roll.ts";

export interface Step {
  state: RollState;
  progress: RollProgress;
  /** Those that begin now: they are in `progress.open` already. */
  begins: readonly OpenTarget[];
  /** Set when the state changes: why, for the audit trail. */
  why?: string;
}

/**
 * What becomes of a roll when these targets have ended: which further ones may begin, or that none does any more.
 * `idOf` names the request of a target that begins for the first or a further time, `nameOf` the target itself.
 */
export function nextStep(
  roll: Pick<StoredRoll, "record" | "state" | "progress">,
  ended: readonly Outcome[],
  idOf: (n: number, anew: number) => string,
  nameOf: (n: number) => string,
): Step {
  const counted = count(roll.progress, ended);
  const { total } = roll.record;
  if (roll.state === "running" || roll.state === "paused") {
    const stop = reasonToStop(roll, counted, ended, nameOf);
    if (stop !== undefined) {
      const progress: RollProgress = { ...counted, endsAs: "failed", why: stop };
      return counted.open.length > 0
        ? { state: "ending", progress, begins: [], why: stop }
        : { state: "failed", progress, begins: [], why: stop };
    }
    if (leftOf(counted, total).length === 0 && counted.open.length === 0) {
      return { state: "done", progress: withoutWhy(counted), begins: [], why: "all have ended" };
    }
  }
  if (roll.state === "ending" && counted.open.length === 0) {
    const state = counted.endsAs ?? "stopped";
    return { state, progress: counted, begins: [], why: counted.why ?? "stopped" };
  }
  if (roll.state !== "running") return { state: roll.state, progress: counted, begins: [] };
  const room = Math.max(0, roomFor(roll, counted) - counted.open.length);
  const places = leftOf(counted, total, room);
  const begins = places.map((n) => ({ n, request: idOf(n, counted.anew?.[n] ?? 0) }));
  const { again = [], ...rest } = counted;
  const waiting = again.filter((n) => !places.includes(n));
  const progress: RollProgress = {
    ...rest,
    next: Math.max(counted.next, ...places.map((n) => n + 1)),
    open: [...counted.open, ...begins],
    ...(waiting.length > 0 ? { again: waiting } : {}),
  };
  return { state: "running", progress, begins };
}

/** Places that are still to begin, at most so many: those that begin anew before those that never did. */
function leftOf({ again = [], next }: RollProgress, total: number, most = 1): number[] {
  const left = again.slice(0, most);
  for (let n = next; n < total && left.length < most; n++) left.push(n);
  return left;
}

/** Until the canary has ended well, it is alone. */
function roomFor({ record }: Pick<StoredRoll, "record">, progress: RollProgress): number {
  const { canary, maxUnavailable } = record.options;
  const isBegun = progress.next > 0 && !progress.again?.includes(0);
  const isProven = isBegun && progress.open.every(({ n }) => n > 0);
  return canary && !isProven ? 1 : maxUnavailable;
}

/** The first one whose attestation is bad stops it, whatever the options allow; so does a canary that failed. */
function reasonToStop(
  { record }: Pick<StoredRoll, "record">,
  { failed }: RollProgress,
  ended: readonly Outcome[],
  nameOf: (n: number) => string,
): string | undefined {
  const { canary, stopOnFailure } = record.options;
  const bad = ended.filter(hasFailed);
  const [untrusted] = bad.filter(({ isUntrusted }) => isUntrusted);
  const worst = untrusted ?? bad.find(({ n }) => canary && n === 0) ?? bad.at(-1);
  if (worst === undefined || (failed < stopOnFailure && !untrusted && !(canary && worst.n === 0)))
    return undefined;
  const role = canary && worst.n === 0 ? "the canary " : "";
  return `${role}${nameOf(worst.n)}: ${worst.why ?? worst.is}`;
}

function count(progress: RollProgress, ended: readonly Outcome[]): RollProgress {
  const places = new Set(ended.map(({ n }) => n));
  const returned = ended.filter(({ is }) => is === "returned").map(({ n }) => n);
  const times = returned.map((n) => [n, (progress.anew?.[n] ?? 0) + 1] as const);
  const again = [...(progress.again ?? []), ...returned];
  const unknown = (progress.unknown ?? 0) + ended.filter(({ is }) => is === "unknown").length;
  return {
    ...progress,
    open: progress.open.filter(({ n }) => !places.has(n)),
    ...(again.length > 0 ? { again } : {}),
    ...(times.length > 0 ? { anew: { ...progress.anew, ...Object.fromEntries(times) } } : {}),
    ok: progress.ok + ended.filter(endedWell).length,
    already: progress.already + ended.filter(({ is }) => is === "already").length,
    failed: progress.failed + ended.filter(hasFailed).length,
    ...(unknown > 0 ? { unknown } : {}),
  };
}

function withoutWhy({ why: _over, ...progress }: RollProgress): RollProgress {
  return progress;
}

export function endedWell({ is }: Pick<Outcome, "is">): boolean {
  return is === "ok" || is === "already";
}

/** What was taken back before it began did neither. */
export function hasFailed({ is }: Pick<Outcome, "is">): boolean {
  return is === "failed" || is === "unknown";
}
