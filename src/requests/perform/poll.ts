import {
  ComputeError,
  type ListGaps,
  isTransitional,
  mayHide,
  nextPollDelay,
  statusFacts,
  unreadable,
} from "../../compute/compute.ts";
import type { Policy } from "../../config/policy-file.ts";
import { during, workOnRequests } from "../../log/traces.ts";
import type { PendingWork } from "../../queue/pending-work.ts";
import { isBeforeSetBack } from "../../redis/redis.ts";
import type { Effect, Seen, Target } from "../../registry/define.ts";
import {
  type Look,
  type Progress,
  type State,
  type StoredRequest,
  isAnotherOne,
  isList,
  isPolled,
  lasts,
  statusOf,
} from "../journal/record.ts";
import { readTarget } from "./read-target.ts";
import { changeOf, lateLookMs, maxStepErrors } from "./step.ts";
import type { WorkerContext } from "./worker-context.ts";

/** When a key is polled next (ms), and that it is polled no sooner, whoever asks (ms). */
interface Polled {
  inMs: number;
  restMs: number;
}

/** Polls what is due. Until when a key rests, each process knows of its own polls. */
export function pollWork(contextNow: () => WorkerContext): PendingWork {
  const { polls } = contextNow();
  const restsUntil = new Map<string, number>();
  return {
    pending: polls.pending,
    async handle(pollKey, mark) {
      const restsMs = (restsUntil.get(pollKey) ?? 0) - performance.now();
      if (restsMs > 0) return polls.next(pollKey, restsMs, mark);
      const next = await poll(pollKey, contextNow());
      if (next) restsUntil.set(pollKey, performance.now() + next.restMs);
      else restsUntil.delete(pollKey);
      await polls.next(pollKey, next?.inMs ?? 0, mark);
    },
  };
}

/**
 * One poll per key serves all its requests: the VMs of a project share a read of its list. Between polls, a waiting request
 * costs no worker time. Undefined once nothing is left to poll.
 */
export async function poll(pollKey: string, by: WorkerContext): Promise<Polled | undefined> {
  const open = await by.polls.waiting(pollKey);
  if (open.length === 0) return undefined;
  let readingOf: (request: StoredRequest) => { seen: Seen | undefined } | undefined;
  try {
    const work = workOnRequests(open.map(({ record }) => record));
    readingOf = await during(work, () => readFor(pollKey, open, by));
  } catch (error) {
    const isKnown = error instanceof ComputeError;
    if (!isKnown) by.log.error("poll.failed", { pollKey, error });
    // Without a read, only deadlines decide
    await giveUpLate(await countFromNow(open, await by.store.now(), by), by);
    return { inMs: (isKnown && error.retryAfterMs) || by.policy.timing.pollMostMs, restMs: 0 };
  }
  const at = await by.store.now();
  const waiting = await countFromNow(open, at, by);
  await giveUpLate(
    waiting.filter((request) => !readingOf(request)),
    by,
  );
  let youngest = 0;
  const left: { request: Waiting; seen: Seen | undefined }[] = [];
  for (const request of waiting) {
    const found = readingOf(request);
    const judged =
      found &&
      (await judgeOne(request, found.seen, at, by).catch((error: unknown) =>
        judgingFailed(request, error, at, by),
      ));
    if (judged === "over") continue;
    const progress = judged ?? request.progress;
    left.push({ request: { ...request, progress }, seen: found?.seen });
    youngest = Math.max(youngest, request.progress.sentAt ?? at);
  }
  await by.at?.("watch", pollKey);
  if (left.length === 0) return undefined;
  const { pollFirstMs, pollMostMs } = by.policy.timing;
  const sinceStartMs = Math.max(0, at - youngest);
  const delay = nextPollDelay({ firstMs: pollFirstMs, maxMs: pollMostMs, sinceStartMs });
  const timing = { ...by.policy.timing, delay };
  const soon = left.map(({ request, seen }) => soonest(request, seen, at, timing));
  const restMs = left.length === 1 ? 0 : pollFirstMs * Math.min(2, (left.length / crowd) ** 2);
  return { inMs: Math.max(1, restMs, Math.min(delay, ...soon)), restMs };
}

/**
 * Lets what was sent or read before Redis's clock was set back count from now on: a poll would otherwise wait until that time comes again. Now
 * is later than it was, so nothing is proven too early.
 */
async function countFromNow(
  waiting: readonly StoredRequest[],
  now: number,
  by: WorkerContext,
): Promise<StoredRequest[]> {
  const counted = waiting.map(async (request) => {
    const progress = fromNow(request.progress, now);
    if (!progress) return request;
    const { state } = request;
    const moved = await by.store.move(request, { state, progress, isSilent: true });
    return moved.is === "moved" ? moved.request : request;
  });
  return Promise.all(counted);
}

/** Undefined where none of its times lies in the future. */
function fromNow(progress: Progress, now: number): Progress | undefined {
  const { sentAt, endedAt, lastLook, sameSince, quietSince, blindSince } = progress;
  const times = [sentAt, endedAt, lastLook?.at, sameSince, quietSince, blindSince];
  if (!times.some((time) => isBeforeSetBack(time, now))) return undefined;
  const { lastLook: _read, sameSince: _same, quietSince: _quiet, ...counted } = progress;
  return {
    ...counted,
    ...(sentAt === undefined ? {} : { sentAt: Math.min(sentAt, now) }),
    ...(endedAt === undefined ? {} : { endedAt: Math.min(endedAt, now) }),
    ...(blindSince === undefined ? {} : { blindSince: Math.min(blindSince, now) }),
  };
}

/**
 * As many are polled as far apart as the first polls of one. Each send and each answer asks for a poll, because a short REBOOTING is
 * a restart's only proof, and each poll judges all: so the time between polls grows with the square of how many there are, up to
 * twice that.
 */
const crowd = 70;

type Waiting = Pick<StoredRequest, "state" | "progress" | "changedAt">;

type Gap = "stableGapMs" | "transitionGapMs";

/** How far apart two equal reads must be for an end (ms). */
const gapOf = ({ mark }: Pick<Progress, "mark">, timing: Pick<Policy["timing"], Gap>): number =>
  mark && isTransitional(mark.status) ? timing.transitionGapMs : timing.stableGapMs;

/**
 * In how many milliseconds a poll may decide about a request, where that is foreseeable: when its settled target has stood for
 * long enough, and, right after the send, soon, because some services need less than the first poll's time; otherwise `delay`.
 */
export function soonest(
  { state, progress, changedAt }: Waiting,
  seen: Seen | undefined,
  at: number,
  timing: Pick<Policy["timing"], "pollFirstMs" | "pollMostMs" | Gap> & { delay: number },
): number {
  const { pollFirstMs, pollMostMs, delay } = timing;
  const isSettled = state === "accepted" && !isUnsettled(seen);
  const isSame = progress.lastLook?.print === lookAt(seen, at).print;
  const stableInMs = (isSame ? (progress.sameSince ?? at) : at) + gapOf(progress, timing) - at;
  if (isSettled && progress.mark && stableInMs > 0) return Math.min(stableInMs, pollMostMs);
  const ageMs = Math.max(0, at - (progress.sentAt ?? changedAt));
  const youngMs = Math.round(pollFirstMs / 3);
  return ageMs < pollFirstMs ? Math.min(delay, youngMs - (ageMs % youngMs)) : delay;
}

/** What throws for one request must not keep the others of its project from being judged; in the end a person sees it. */
async function judgingFailed(
  request: StoredRequest,
  error: unknown,
  at: number,
  by: WorkerContext,
): Promise<undefined> {
  const { record, state } = request;
  by.log.error("request.judging-failed", { request: record.id, state, error });
  const stepErrors = (request.progress.stepErrors ?? 0) + 1;
  const progress = { ...request.progress, stepErrors };
  if (stepErrors < maxStepErrors) await by.store.move(request, { state, progress });
  else {
    const why = "Gatehouse repeatedly fails to judge this request";
    const next = state === "unclear" ? "unknown" : "unclear";
    const late = next === "unknown" ? { unknownSince: at } : {};
    await by.store.move(request, { state: next, progress: { ...progress, why, ...late }, why });
  }
}

/** That the request no longer waits for polls, or how far it is now; undefined where it is left to the next poll. */
type Judgment = "over" | Progress | undefined;

async function judgeOne(
  request: StoredRequest,
  seen: Seen | undefined,
  at: number,
  by: WorkerContext,
): Promise<Judgment> {
  const change = changeOf(request.record, by.commands);
  if (!change) return undefined;
  const { blindSince: _over, ...before } = request.progress;
  const judged = judge({
    state: request.state as "sending" | "accepted" | "unclear",
    progress: before,
    effect: change.effect,
    args: change.args,
    seen,
    at,
    timing: by.policy.timing,
  });
  const isShown = lasts(judged.progress) && !lasts(before);
  const isSame = before.lastLook?.print === judged.progress.lastLook?.print;
  if (isSame && !isShown && decidesNothing(request, judged)) return judged.progress;
  // Before the move: a crash in between costs one look too many, not one too few
  if (judged.state === "not-applied")
    await by.store.lates.later(request.record.id, lateLookMs(by.policy.timing));
  const moved = await by.store.move(request, {
    state: judged.state,
    progress: judged.progress,
    ...(judged.why ? { why: judged.why } : {}),
    isSilent: judged.state === request.state && judged.why === undefined && !isShown,
  });
  // Its sender changed it meanwhile: left to the next poll
  if (moved.is !== "moved") return undefined;
  return isPolled(judged.state) ? moved.request.progress : "over";
}

/** What is as it was isn't kept. */
function decidesNothing(
  { state, progress }: StoredRequest,
  { progress: now, ...to }: { state: string; progress: Progress; why?: string },
): boolean {
  if (to.state !== state || to.why !== undefined) return false;
  if (progress.blindSince !== undefined) return false;
  if (now.quietSince !== progress.quietSince || now.quietLooks !== progress.quietLooks)
    return false;
  return now.mark === undefined || progress.mark !== undefined;
}

/** A project may have hundreds of VMs, so two or three of them are read by themselves. */
const mostAlone = 3;

/**
 * Reads a few VMs alone, or the list of their project for more. A list with gaps doesn't prove that a VM is gone, and a record
 * that can't be read proves nothing: such a VM is read alone. Undefined for what can't be read at all.
 */
async function readFor(
  pollKey: string,
  waiting: readonly StoredRequest[],
  by: WorkerContext,
): Promise<(request: StoredRequest) => { seen: Seen | undefined } | undefined> {
  // Retries are for short troubles: the next poll comes anyway
  const signal = AbortSignal.timeout(2 * by.policy.timing.httpTimeoutMs);
  const targets = new Map(waiting.map(({ record }) => [record.target.id, record.target]));
  const [first] = waiting;
  if (!pollKey.startsWith("vms/") || targets.size === 1) {
    const { seen } = await readTarget((first as StoredRequest).record.target, by, { signal });
    return () => ({ seen });
  }
  const isFew = targets.size <= mostAlone;
  let gaps: ListGaps | undefined;
  const onGaps = (short: ListGaps) => void (gaps = short);
  const projectId = pollKey.slice("vms/".length);
  const list = isFew ? [] : await by.compute.projects.vms(projectId, { signal, onGaps });
  const found = new Map<string, { seen: Seen | undefined }>();
  for (const vm of list) if (vm.status !== unreadable) found.set(vm.id, { seen: vm });
  const isUnclear = ({ id, name }: Target) =>
    isFew || (!found.has(id) && (mayHide(gaps, name) || list.some((vm) => vm.id === id)));
  const unclear = [...targets.values()].filter(isUnclear);
  let failure: ComputeError | undefined;
  const readAlone = async (target: Target): Promise<void> => {
    try {
      found.set(target.id, await readTarget(target, by, { signal }));
    } catch (error) {
      if (!(error instanceof ComputeError)) throw error;
      failure = error;
      by.log.debug("poll.unread", { vm: target.id, why: error.message });
    }
  };
  await Promise.all(unclear.map(readAlone));
  if (failure && found.size === 0) throw failure;
  const unread = new Set(unclear.filter(({ id }) => !found.has(id)).map(({ id }) => id));
  return ({ record: { target } }) =>
    unread.has(target.id) ? undefined : { seen: found.get(target.id)?.seen };
}

/** One failed read proves nothing, however late: only a whole quiet period without a read ends the wait. */
async function giveUpLate(waiting: readonly StoredRequest[], by: WorkerContext): Promise<void> {
  if (waiting.length === 0) return;
  const now = await by.store.now();
  const { settleDeadlineMs, quiesceMs } = by.policy.timing;
  for (const request of waiting) {
    const { state, progress } = request;
    if (progress.blindSince === undefined) {
      await by.store.move(request, { state, progress: { ...progress, blindSince: now } });
      continue;
    }
    const deadline = (progress.sentAt ?? request.changedAt) + settleDeadlineMs;
    if (now < deadline || now < progress.blindSince + quiesceMs || state === "sending") continue;
    const why = "the compute service can't be read";
    const next = state === "accepted" ? "unclear" : "unknown";
    const late = { ...progress, why, unknownSince: now };
    await by.store.move(request, { state: next, progress: late, why });
  }
}

export interface JudgedRead {
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
  timing: Pick<Policy["timing"], "quiesceMs" | Gap | "settleDeadlineMs" | "restartMarkMs">;
}): JudgedRead {
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
  if (at >= quietAt && state === "unclear")
    progress.quietLooks = Math.min(enoughLooks, (progress.quietLooks ?? 0) + 1);
  const sameFor = isSame ? at - (progress.sameSince ?? at) : 0;
  const isStable = sameFor >= timing.stableGapMs && !isUnsettled(seen);
  const hasSettled = sameFor >= gapOf(progress, timing) && !isUnsettled(seen);
  const isQuiet =
    progress.quietSince !== undefined && at - progress.quietSince >= timing.stableGapMs;
  const isLate = at >= sentAt + timing.settleDeadlineMs;
  const began = progress.mark !== undefined;
  const wasAccepted = progress.answer?.class === "accepted";
  const ended = (next: State, why: string): JudgedRead => ({
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
  if (hasSettled && effect.wanted(seen, before, args) && (began || !effect.needsMark)) {
    return ended("done", `read ${look.status}`);
  }
  if (
    hasSettled &&
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
