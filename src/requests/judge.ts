import { isTransitional } from "../compute/settle.ts";
import type { Effect, Seen } from "../registry/define.ts";
import type { Look, Progress } from "./record.ts";
import type { State } from "./states.ts";

/** Durations in milliseconds; see `timing` in the policy file. */
export interface JudgeTiming {
  /** Quiet after a send before reads may prove that nothing happened. */
  quiesceMs: number;
  /** Two equal reads this far apart make a stable one. */
  stableGapMs: number;
  settleDeadlineMs: number;
  /** How long a restart may show no sign of having begun. */
  restartMarkMs: number;
}

export interface Judged {
  state: State;
  progress: Progress;
  /** Set when the request moves; without it the read is only noted. */
  why?: string;
  hint?: string;
}

/** Reads after the time of quiet without two stable ones among them: then there will be none. */
const enoughLooks = 6;

/**
 * What one more read of the target means for a request that has been sent. Accepted is not done, and absence of a sign
 * is a sign of absence only where the effect says so: what has no proof ends as unknown.
 *
 * `seen` undefined means proven absent. `at` is Redis time in milliseconds.
 */
export function judge(input: {
  state: "sending" | "accepted" | "unclear";
  progress: Progress;
  // Each command parses its own arguments; to the judge they are opaque
  effect: Effect<Seen, never>;
  args: unknown;
  seen: Seen | undefined;
  at: number;
  timing: JudgeTiming;
}): Judged {
  const { state, effect, seen, at, timing } = input;
  const args = input.args as never;
  const before = input.progress.before;
  const look = lookAt(seen, at);
  const isSame = input.progress.lastLook?.print === look.print;
  const progress: Progress = {
    ...input.progress,
    lastLook: look,
    sameSince: isSame ? (input.progress.sameSince ?? at) : at,
    looks: (input.progress.looks ?? 0) + 1,
  };
  if (!progress.mark && effect.mark?.(seen, before)) progress.mark = { status: look.status, at };
  if (state === "sending") return { state, progress };

  const sentAt = progress.sentAt ?? at;
  // A call that ended long after its claim may have left late: then quiet begins with its end
  const endedAt = progress.endedAt ?? sentAt;
  const leftBy = endedAt - sentAt > timing.quiesceMs / 2 ? endedAt : sentAt;
  const quietAt = leftBy + timing.quiesceMs;
  // Only reads made after the time of quiet can prove that nothing happened: both of them
  const wasQuiet = (input.progress.lastLook?.at ?? 0) >= quietAt;
  if (at >= quietAt && !(isSame && wasQuiet && progress.quietSince !== undefined))
    progress.quietSince = at;
  if (at >= quietAt) progress.quietLooks = (progress.quietLooks ?? 0) + 1;
  const sameFor = isSame ? at - (progress.sameSince ?? at) : 0;
  const isStable = sameFor >= timing.stableGapMs && !isUnsettled(seen);
  const isQuiet =
    progress.quietSince !== undefined && at - progress.quietSince >= timing.stableGapMs;
  const isLate = at >= sentAt + timing.settleDeadlineMs;
  const began = progress.mark !== undefined;
  const wasAccepted = progress.answer?.class === "accepted";
  const ended = (next: State, why: string, hint?: string): Judged => ({
    state: next,
    progress: {
      ...progress,
      ...(seen === undefined ? {} : { after: seen }),
      ...(next === "unknown" ? { unknownSince: at } : {}),
      why,
    },
    why,
    ...(hint ? { hint } : {}),
  });

  if (isStable && isAnotherOne(seen, before)) {
    return state === "accepted"
      ? ended("unclear", "the target was replaced while this ran")
      : ended("unknown", "the target was replaced while this ran");
  }
  if (isStable && effect.wanted(seen, before, args) && (began || !effect.needsMark)) {
    return ended("done", `read ${look.status}`);
  }
  if (
    isStable &&
    look.status === "ERROR" &&
    (began || (wasAccepted && statusOf(before) !== "ERROR"))
  ) {
    return ended("failed", "the service reports ERROR");
  }

  if (state === "accepted") {
    const showsNoSign =
      effect.needsMark && !began && isStable && at >= sentAt + timing.restartMarkMs;
    if (showsNoSign)
      return ended("unclear", "the service accepted it, but nothing was seen to happen");
    if (isLate)
      return ended("unclear", `the service accepted it, but it has not settled: ${look.status}`);
    return { state, progress };
  }

  if (isStable && isQuiet) {
    if (!wasAccepted && effect.untouched?.(seen, before, args)) {
      progress.mayResend = effect.again === "once" && !progress.resent;
      return ended("not-applied", `read ${look.status} twice: nothing happened`);
    }
    if (!began || isLate)
      return ended("unknown", `reads show ${look.status}, which proves neither`);
  }
  // Late may only mean that nobody was there to look: a few looks come before giving up
  if (isLate && (progress.quietLooks ?? 0) >= enoughLooks)
    return ended("unknown", `no stable read: last ${look.status}`);
  return { state, progress };
}

export function lookAt(seen: Seen | undefined, at: number): Look {
  return { at, status: statusOf(seen), print: printOf(seen) };
}

export function statusOf(seen: Seen | undefined): string {
  if (seen === undefined) return "gone";
  if (isList(seen))
    return seen.length === 1
      ? (seen[0]?.status ?? "gone")
      : seen.length === 0
        ? "gone"
        : `${seen.length} of that name`;
  return seen.status;
}

/** Everything about the target that must hold still for two reads to be equal. */
function printOf(seen: Seen | undefined): string {
  if (seen === undefined) return "gone";
  const list = isList(seen) ? seen : [seen];
  return JSON.stringify(
    list.map((one) => [
      one.id,
      one.name,
      one.status,
      one.createdAt,
      one.updatedAt,
      one.specs?.cpu,
      one.specs?.memory,
      one.specs?.disk,
    ]),
  );
}

/** On its way from one state to another. */
export function isUnsettled(seen: Seen | undefined): boolean {
  if (seen === undefined) return false;
  return (isList(seen) ? seen : [seen]).some((one) => isTransitional(one.status));
}

/** The id is the same but the thing is not. */
function isAnotherOne(seen: Seen | undefined, before: Seen | undefined): boolean {
  if (seen === undefined || before === undefined || isList(seen) || isList(before)) return false;
  return (
    seen.createdAt !== undefined &&
    before.createdAt !== undefined &&
    seen.createdAt !== before.createdAt
  );
}

function isList(seen: Seen): seen is Extract<Seen, readonly unknown[]> {
  return Array.isArray(seen);
}
