import { isTransitional, statusFacts } from "../../compute/compute.ts";
import type { Effect, Seen } from "../../registry/define.ts";
import {
  type Look,
  type Progress,
  statusOf,
  isList,
  isAnotherOne,
  type State,
} from "../journal/record.ts";

/** Milliseconds; see `timing` in the policy file. */
interface JudgeTiming {
  quiesceMs: number;
  stableGapMs: number;
  settleDeadlineMs: number;
  restartMarkMs: number;
}

export interface Judged {
  state: State;
  progress: Progress;
  /** Set when the request moves; without it, the read is only saved. */
  why?: string;
}

/** After this many reads past the quiet period and the deadline, no stable pair is expected. */
const enoughLooks = 6;

/**
 * What one more read of the target means for a sent request. Accepted is not done, and a missing sign proves nothing unless
 * the effect says so: without proof, the outcome is unknown. `seen` undefined means proven absent; `at` is Redis time.
 */
export function judge(input: {
  state: "sending" | "accepted" | "unclear";
  progress: Progress;
  // Opaque here
  effect: Effect<Seen, never>;
  args: unknown;
  seen: Seen | undefined;
  at: number;
  timing: JudgeTiming;
}): Judged {
  const { state, effect, at, timing } = input;
  const args = input.args as never;
  const before = input.progress.before;
  const seen = withoutFormer(input.seen, before);
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
  // A call that ended long after its claim may have left late: then the quiet period begins at its end
  const endedAt = progress.endedAt ?? sentAt;
  const leftBy = endedAt - sentAt > timing.quiesceMs / 2 ? endedAt : sentAt;
  const quietAt = leftBy + timing.quiesceMs;
  // Both reads that prove no effect must come after the quiet period
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
  const ended = (next: State, why: string): Judged => ({
    state: next,
    progress: {
      ...progress,
      ...(seen === undefined ? {} : { after: seen }),
      ...(next === "unknown" ? { unknownSince: at } : {}),
      why,
    },
    why,
  });

  if (isStable && isAnotherOne(seen, before)) {
    const next = state === "accepted" ? "unclear" : "unknown";
    return ended(next, "the target was replaced while this ran");
  }
  if (isStable && effect.wanted(seen, before, args) && (began || !effect.needsMark)) {
    return ended("done", `read ${look.status}`);
  }
  if (
    isStable &&
    statusFacts(look.status).isAlarming &&
    (began || (wasAccepted && !statusFacts(statusOf(before)).isAlarming))
  ) {
    return ended("failed", "the compute service reports ERROR");
  }

  if (state === "accepted") {
    const showsNoSign =
      effect.needsMark && !began && isStable && at >= sentAt + timing.restartMarkMs;
    if (showsNoSign)
      return ended("unclear", "the compute service accepted it, but reads show no effect");
    if (isLate)
      return ended(
        "unclear",
        `the compute service accepted it, but it has not settled: ${look.status}`,
      );
    return { state, progress };
  }

  if (isStable && isQuiet) {
    if (!wasAccepted && effect.untouched?.(seen, before, args)) {
      progress.mayResend = effect.again === "once" && !progress.resent;
      return ended("not-applied", `read ${look.status} twice: no effect`);
    }
    if (!began || isLate)
      return ended("unknown", `reads show ${look.status}, which proves neither outcome`);
  }
  // After an outage everything is late: a few reads come first
  if (isLate && (progress.quietLooks ?? 0) >= enoughLooks)
    return ended("unknown", `no stable read: last ${look.status}`);
  return { state, progress };
}

/** Of a list: what was there before may be another team's, and proves nothing. */
function withoutFormer(seen: Seen | undefined, before: Seen | undefined): Seen | undefined {
  if (seen === undefined || before === undefined || !isList(seen) || !isList(before)) return seen;
  const former = new Set(before.map(({ id }) => id));
  return seen.filter(({ id }) => !former.has(id));
}

export function lookAt(seen: Seen | undefined, at: number): Look {
  return { at, status: statusOf(seen), print: printOf(seen) };
}

/** Two reads with equal prints are equal. */
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

export function isUnsettled(seen: Seen | undefined): boolean {
  if (seen === undefined) return false;
  return (isList(seen) ? seen : [seen]).some((one) => isTransitional(one.status));
}
