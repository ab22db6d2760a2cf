import { isTransitional, statusFacts } from "../../fleet/compute/compute.ts";
import type { Policy } from "../../config/policy-file.ts";
import type { Effect, Seen } from "../../registry/define.ts";
import { isAnotherOne, isList, statusOf } from "../request/seen.ts";
import type { Call, Look, PolledStage, Reads, Stage, StageIn } from "../request/stage.ts";

export type Gap = "stableGapMs" | "transitionGapMs";

/** How far apart two equal reads must be for an end (ms). */
export const gapOf = ({ mark }: Pick<Call, "mark">, timing: Pick<Policy["timing"], Gap>): number =>
  mark && isTransitional(mark.status) ? timing.transitionGapMs : timing.stableGapMs;

/** A read of the target of a sent request, with the effect by which it is judged. */
export interface Read {
  effect: Effect<Seen, never>;
  /**
   * The parsed arguments of the command that has the effect. Their type is known only there, so
   * they are passed to the effect `as never`.
   */
  args: unknown;
  /** Undefined when the target is proven absent. */
  seen: Seen | undefined;
  /** Redis time (ms). */
  at: number;
  timing: Pick<Policy["timing"], "quiesceMs" | Gap | "settleDeadlineMs" | "restartMarkMs">;
}

export type Judged = PolledStage | StageIn<"done" | "failed" | "not-applied" | "unknown">;

export interface JudgedRead<To extends Stage = Judged> {
  to: To;
  /** Set when the request moves; without it, the read is only saved. */
  why?: string;
}

/**
 * After this many reads past the quiet period and the deadline, no stable pair is expected; after
 * this many failed ones, no read that succeeds.
 */
export const enoughLooks = 6;

/** Compares a read with those before it. */
function observe(stage: PolledStage, read: Read) {
  const { effect, at, timing } = read;
  const { before } = stage.call;
  const seen = withoutFormer(read.seen, before);
  const look = lookAt(seen, at);
  const {
    last,
    sameSince: since = at,
    blindSince: _blind,
    blindLooks: _failed,
    ...kept
  } = stage.reads;
  const isSame = last?.print === look.print;
  const sameSince = isSame ? since : at;
  const reads: Reads = { ...kept, last: look, sameSince };
  const mark =
    stage.call.mark ??
    (effect.mark?.(seen, before) === true ? { status: look.status, at } : undefined);
  const call: Call = { ...stage.call, ...(mark ? { mark } : {}) };
  return { seen, look, isSame, wasAt: last?.at ?? 0, call, reads, timing, at };
}

type Observed = ReturnType<typeof observe>;

/** While the call is under way, a read can only show that it began. */
export function judgeSending(stage: StageIn<"sending">, read: Read): StageIn<"sending"> {
  const { call, reads } = observe(stage, read);
  return { ...stage, call, reads };
}

/** Tells how long the target has been as it is, and whether that is long enough. */
function standing({ seen, isSame, call, reads, timing, at }: Observed) {
  const sameForMs = isSame ? at - (reads.sameSince ?? at) : 0;
  const isSettled = !isUnsettled(seen);
  return {
    isStable: sameForMs >= timing.stableGapMs && isSettled,
    hasSettled: sameForMs >= gapOf(call, timing) && isSettled,
    isLate: at >= call.sentAt + timing.settleDeadlineMs,
  };
}

/** The end that a settled target proves, whether the call was accepted or not. */
function provenEnd(
  { setbacks }: PolledStage,
  observed: Observed,
  { effect, args }: Read,
): JudgedRead<StageIn<"done" | "failed">> | undefined {
  const { seen, look, call, reads } = observed;
  if (!standing(observed).hasSettled) return undefined;
  const began = call.mark !== undefined;
  const after = seen === undefined ? {} : { after: seen };
  const wasAccepted = call.answer?.class === "accepted";
  const isProof = wasAccepted || !effect.hides?.(seen, args as never);
  if (isProof && effect.wanted(seen, call.before, args as never) && (began || !effect.needsMark)) {
    const why = `read ${look.status}`;
    return { to: { state: "done", why, setbacks, call, reads, ...after }, why };
  }
  const isItsFault = began || (wasAccepted && !statusFacts(statusOf(call.before)).isAlarming);
  if (statusFacts(look.status).isAlarming && isItsFault) {
    const why = "the compute service reports ERROR";
    return { to: { state: "failed", why, call, reads, ...after }, why };
  }
  return undefined;
}

const replaced = "the target was replaced while this ran";

/**
 * An accepted request isn't done yet. The target must settle as it was asked for, and where a
 * restart leaves no other trace, a read must show that it began.
 */
export function judgeAccepted(
  stage: StageIn<"accepted">,
  read: Read,
): JudgedRead<StageIn<"accepted" | "done" | "failed" | "unclear">> {
  const observed = observe(stage, read);
  const { seen, look, at, timing } = observed;
  const { call, reads } = withQuiet(stage, observed);
  const { isStable, isLate } = standing(observed);
  const now = { ...stage, call, reads };
  const unclear = (why: string) => ({ to: toUnclear(now, why), why });
  if (isStable && isAnotherOne(seen, call.before)) return unclear(replaced);
  const end = provenEnd(now, { ...observed, reads }, read);
  if (end) return end;
  const showsNoSign =
    read.effect.needsMark && !call.mark && isStable && at >= call.sentAt + timing.restartMarkMs;
  if (showsNoSign)
    return unclear("the compute service accepted it, but Gatehouse couldn't see it happen");
  if (isLate)
    return unclear(`the compute service accepted it, but it has not settled: ${look.status}`);
  return { to: now };
}

/**
 * A missing sign proves nothing unless the effect says so. Without proof, the outcome is unknown.
 */
export function judgeUnclear(
  stage: StageIn<"unclear">,
  read: Read,
): JudgedRead<StageIn<"unclear" | "done" | "failed" | "not-applied" | "unknown">> {
  const observed = observe(stage, read);
  const { seen, look, at, timing } = observed;
  const { call, reads } = withQuiet(stage, observed);
  const { isStable, isLate } = standing(observed);
  const now = { ...stage, call, reads };
  const unknown = (why: string) => ({ to: toUnknown(now, why, at), why });
  if (isStable && isAnotherOne(seen, call.before)) return unknown(replaced);
  const end = provenEnd(now, { ...observed, reads }, read);
  if (end) return end;
  const { quietSince, quietLooks = 0 } = reads;
  if (isStable && quietSince !== undefined && at - quietSince >= timing.stableGapMs) {
    const wasAccepted = call.answer?.class === "accepted";
    if (!wasAccepted && read.effect.untouched?.(seen, call.before, read.args as never)) {
      const why = `read ${look.status} twice: no effect`;
      return { to: { state: "not-applied", why, call, reads }, why };
    }
    if (!call.mark || isLate)
      return unknown(`reads show ${look.status}, which proves neither outcome`);
  }
  // After an outage every deadline is over, so a few reads come first.
  if (isLate && quietLooks >= enoughLooks) return unknown(`no stable read: last ${look.status}`);
  return { to: now };
}

/** Counts the quiet period. Both reads that prove no effect must come after it. */
function withQuiet({ state }: PolledStage, observed: Observed): Pick<Observed, "call" | "reads"> {
  const { call, isSame, wasAt, timing, at } = observed;
  const reads = { ...observed.reads };
  const { sentAt, endedAt = sentAt } = call;
  // A call that ended long after its claim may have left late, so the quiet period then begins at
  // its end.
  const leftBy = endedAt - sentAt > timing.quiesceMs / 2 ? endedAt : sentAt;
  const quietAt = leftBy + timing.quiesceMs;
  if (at < quietAt) return { call, reads };
  if (!(isSame && wasAt >= quietAt && reads.quietSince !== undefined)) reads.quietSince = at;
  if (state === "unclear") reads.quietLooks = Math.min(enoughLooks, (reads.quietLooks ?? 0) + 1);
  return { call, reads };
}

/**
 * Leaves out of a list the entries that were there before. They may be another team's, and prove
 * nothing.
 */
function withoutFormer(seen: Seen | undefined, before: Seen | undefined): Seen | undefined {
  if (seen === undefined || before === undefined || !isList(seen) || !isList(before)) return seen;
  const former = new Set(before.map(({ id }) => id));
  return seen.filter(({ id }) => !former.has(id));
}

export function lookAt(seen: Seen | undefined, at: number): Look {
  return { at, status: statusOf(seen), print: printOf(seen) };
}

/**
 * Two reads with equal prints are equal. Times aren't in it: a list and a record may write them differently, and what others do
 * moves `updatedAt`.
 */
function printOf(seen: Seen | undefined): string {
  if (seen === undefined) return "gone";
  const list = isList(seen) ? seen : [seen];
  return JSON.stringify(
    list.map((target) => [
      target.id,
      target.name,
      target.status,
      target.specs?.cpu,
      target.specs?.memory,
      target.specs?.disk,
    ]),
  );
}

export function isUnsettled(seen: Seen | undefined): boolean {
  if (seen === undefined) return false;
  return (isList(seen) ? seen : [seen]).some((target) => isTransitional(target.status));
}

export function toUnclear({ call, reads, setbacks }: PolledStage, why: string): StageIn<"unclear"> {
  return { state: "unclear", call, reads, setbacks, why };
}

export function toUnknown(
  { call, reads, setbacks }: StageIn<"unclear">,
  why: string,
  since: number,
): StageIn<"unknown"> {
  return { state: "unknown", call, reads, setbacks, why, since, reminders: 0, remindersOver: 0 };
}
