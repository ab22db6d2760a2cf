import {
  ComputeError,
  type ListGaps,
  mayHide,
  nextPollDelay,
  unreadable,
} from "../../fleet/compute/compute.ts";
import type { Policy } from "../../config/policy-file.ts";
import { during, workOnRequests } from "../../log/traces.ts";
import type { PendingWork } from "../../queue/pending-work.ts";
import { isBeforeSetBack } from "../../redis/redis.ts";
import type { Seen, Target } from "../../registry/define.ts";
import { type MayBecome, type PolledStage, type Stage, isPolled, lasts } from "../request/stage.ts";
import type { Polled } from "../request/polls.ts";
import type { RequestIn } from "../request/stored-request.ts";
import {
  type Gap,
  type Judged,
  type JudgedRead,
  type Read,
  enoughLooks,
  gapOf,
  isUnsettled,
  judgeAccepted,
  judgeSending,
  judgeUnclear,
  lookAt,
  toUnclear,
  toUnknown,
} from "./judge.ts";
import { readTarget } from "./read-target.ts";
import { changeOf, lateLookMs, maxStepErrors } from "./step.ts";
import type { WorkerContext } from "./worker-context.ts";

/** When a key is polled next (ms), and for how long it isn't polled whoever asks (ms). */
interface NextPoll {
  inMs: number;
  restMs: number;
}

/**
 * Polls the keys that are due. Each process knows only of its own polls how long a key isn't polled
 * again.
 */
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
      return polls.next(pollKey, next?.inMs ?? 0, mark);
    },
  };
}

/**
 * One poll per key serves all its requests: the VMs of a project share a read of its list. Between polls, a waiting request
 * costs no worker time. Undefined once nothing is left to poll.
 */
export async function poll(pollKey: string, worker: WorkerContext): Promise<NextPoll | undefined> {
  const open = await worker.polls.waiting(pollKey);
  if (open.length === 0) return undefined;
  let readingOf: (request: Polled) => { seen: Seen | undefined } | undefined;
  try {
    const work = workOnRequests(open.map(({ record }) => record));
    readingOf = await during(work, () => readFor(pollKey, open, worker));
  } catch (error) {
    const isKnown = error instanceof ComputeError;
    if (!isKnown) worker.log.error("poll.failed", { pollKey, error });
    // Without a read, only deadlines decide.
    await countFailedReads(await redateFutureTimes(open, await worker.store.now(), worker), worker);
    return { inMs: (isKnown && error.retryAfterMs) || worker.policy.timing.pollMostMs, restMs: 0 };
  }
  const at = await worker.store.now();
  const waiting = await redateFutureTimes(open, at, worker);
  await countFailedReads(
    waiting.filter((request) => !readingOf(request)),
    worker,
  );
  let youngest = 0;
  const left: { stage: PolledStage; seen: Seen | undefined; isWatched: boolean }[] = [];
  for (const request of waiting) {
    const reading = readingOf(request);
    const judged =
      reading &&
      (await judgeOne(request, reading.seen, at, worker).catch((error: unknown) =>
        judgingFailed(request, error, at, worker),
      ));
    if (judged === "over") continue;
    const stage = judged ?? request.stage;
    left.push({ stage, seen: reading?.seen, isWatched: isWatched(request, stage, at, worker) });
    youngest = Math.max(youngest, request.stage.call.sentAt);
  }
  await worker.at?.("watch", pollKey);
  if (left.length === 0) return undefined;
  const { pollFirstMs, pollMostMs, stableGapMs } = worker.policy.timing;
  const sinceStartMs = Math.max(0, at - youngest);
  const delay = nextPollDelay({ firstMs: pollFirstMs, maxMs: pollMostMs, sinceStartMs });
  const watchedMs = Math.min(delay, stableGapMs);
  const soon = left.map(({ stage, seen, isWatched: isOften }) =>
    soonest(stage, seen, at, { ...worker.policy.timing, delay: isOften ? watchedMs : delay }),
  );
  const restMs = left.length === 1 ? 0 : pollFirstMs * Math.min(2, (left.length / crowd) ** 2);
  return { inMs: Math.max(1, restMs, Math.min(delay, ...soon)), restMs };
}

/** Whether a request must be polled often, because its only proof is short: the service accepted a restart and may still queue it. */
function isWatched(
  { record }: Polled,
  { state, call }: PolledStage,
  at: number,
  worker: WorkerContext,
): boolean {
  if (state !== "accepted" || call.mark || at >= call.sentAt + worker.policy.timing.restartMarkMs)
    return false;
  return changeOf(record, worker.commands)?.effect.needsMark === true;
}

/**
 * Dates times that lie in the future to now. Redis's clock was set back since they were written,
 * and a poll would otherwise wait until that time comes again. Now is later than the moment they
 * mean, so nothing is proven too early.
 */
async function redateFutureTimes(
  waiting: readonly Polled[],
  now: number,
  worker: WorkerContext,
): Promise<Polled[]> {
  const counted = waiting.map(async (request) => {
    const to = withTimesUpToNow(request.stage, now);
    if (!to) return request;
    const moved = await worker.store.saveFacts(request, to, { isSilent: true });
    return moved.kind === "moved" ? moved.request : request;
  });
  return Promise.all(counted);
}

/**
 * Returns the stage with its times moved to now. Undefined where none of them lies in the future.
 */
function withTimesUpToNow(stage: PolledStage, now: number): PolledStage | undefined {
  const { call, reads } = stage;
  const { sentAt, endedAt } = call;
  const { last, sameSince, quietSince, quietLooks, blindSince, blindLooks } = reads;
  const times = [sentAt, endedAt, last?.at, sameSince, quietSince, blindSince];
  if (!times.some((time) => isBeforeSetBack(time, now))) return undefined;
  return {
    ...stage,
    call: {
      ...call,
      sentAt: Math.min(sentAt, now),
      ...(endedAt === undefined ? {} : { endedAt: Math.min(endedAt, now) }),
    },
    reads: {
      ...(quietLooks === undefined ? {} : { quietLooks }),
      ...(blindSince === undefined ? {} : { blindSince: Math.min(blindSince, now) }),
      ...(blindLooks === undefined ? {} : { blindLooks }),
    },
  };
}

/**
 * Up to so many requests are polled as often as the first polls of one. Each send and each answer
 * asks for a poll, because a short REBOOTING is a restart's only proof, and each poll judges all
 * requests. So the time between polls grows with the square of their number, up to twice that.
 */
const crowd = 70;

/**
 * In how many milliseconds a poll may decide about a request, where that is foreseeable: when its settled target has stood for
 * long enough, and, right after the send, soon, because some services need less than the first poll's time; otherwise `delay`.
 */
export function soonest(
  { state, call, reads }: Pick<PolledStage, "state" | "call" | "reads">,
  seen: Seen | undefined,
  at: number,
  timing: Pick<Policy["timing"], "pollFirstMs" | "pollMostMs" | Gap> & { delay: number },
): number {
  const { pollFirstMs, pollMostMs, delay } = timing;
  const isSettled = state === "accepted" && !isUnsettled(seen);
  const isSame = reads.last?.print === lookAt(seen, at).print;
  const stableInMs = (isSame ? (reads.sameSince ?? at) : at) + gapOf(call, timing) - at;
  if (isSettled && call.mark && stableInMs > 0) return Math.min(stableInMs, pollMostMs);
  const ageMs = Math.max(0, at - call.sentAt);
  const youngMs = Math.round(pollFirstMs / 3);
  return ageMs < pollFirstMs ? Math.min(delay, youngMs - (ageMs % youngMs)) : delay;
}

/**
 * Counts an error that judging one request threw. It must not keep other requests of its project
 * from being judged; in the end a person sees it.
 */
async function judgingFailed(
  request: Polled,
  error: unknown,
  at: number,
  worker: WorkerContext,
): Promise<undefined> {
  const { record, state, stage } = request;
  worker.log.error("request.judging-failed", { request: record.id, state, error });
  const errors = stage.setbacks.errors + 1;
  const setbacks = { ...stage.setbacks, errors };
  const why = "Gatehouse repeatedly fails to judge this request";
  if (errors < maxStepErrors) await worker.store.saveFacts(request, { ...stage, setbacks });
  else if (request.state === "unclear")
    await worker.store.move(request, {
      to: toUnknown({ ...request.stage, setbacks }, why, at),
      why,
    });
  else await worker.store.move(request, { to: toUnclear({ ...stage, setbacks }, why), why });
}

/**
 * `over` when the request no longer waits for polls; otherwise its stage now. Undefined where it is
 * left to the next poll.
 */
type Judgment = "over" | PolledStage | undefined;

async function judgeOne(
  request: Polled,
  seen: Seen | undefined,
  at: number,
  worker: WorkerContext,
): Promise<Judgment> {
  const change = changeOf(request.record, worker.commands);
  if (!change) return undefined;
  const { effect, args } = change;
  const read: Read = { effect, args, seen, at, timing: worker.policy.timing };
  switch (request.state) {
    case "sending":
      return keepJudged(request, request.stage, { to: judgeSending(request.stage, read) }, worker);
    case "accepted":
      return keepJudged(request, request.stage, judgeAccepted(request.stage, read), worker);
    default:
      return keepJudged(request, request.stage, judgeUnclear(request.stage, read), worker);
  }
}

/** Moves the request, or saves the read where that shows something new. */
async function keepJudged<To extends Judged>(
  request: RequestIn<MayBecome<To["state"]>>,
  before: PolledStage,
  { to, why }: JudgedRead<To>,
  worker: WorkerContext,
): Promise<Judgment> {
  const now: Judged = to;
  const isNews = why !== undefined || (lasts(now) && !lasts(before));
  if (!isNews && isPolledStage(now) && sawNothingNew(before, now)) return now;
  // This comes before the move, because a crash in between then costs one look too many, and not
  // one too few.
  if (now.state === "not-applied")
    await worker.store.lates.later(request.record.id, lateLookMs(worker.policy.timing));
  const reason = why === undefined ? {} : { why };
  const moved = await worker.store.move(request, { to, ...reason, isSilent: !isNews });
  // The worker that sent it moved it during this read. The next poll decides.
  if (moved.kind !== "moved") return undefined;
  return isPolledStage(now) ? now : "over";
}

const isPolledStage = (stage: Stage): stage is PolledStage => isPolled(stage.state);

/** Whether a read showed the same as the one before, so that it needn't be kept. */
function sawNothingNew({ call, reads }: PolledStage, now: PolledStage): boolean {
  if (reads.last?.print !== now.reads.last?.print) return false;
  if (reads.blindSince !== undefined) return false;
  if (now.reads.quietSince !== reads.quietSince || now.reads.quietLooks !== reads.quietLooks)
    return false;
  return now.call.mark === undefined || call.mark !== undefined;
}

/** A project may have hundreds of VMs, so up to this many of them are read one by one. */
const mostAlone = 3;

/**
 * Reads a few VMs one by one, or for more of them the list of their project. A list with gaps
 * doesn't prove that a VM is gone, and a record that can't be read proves nothing, so such a VM is
 * read by itself. Undefined where nothing can be read.
 */
async function readFor(
  pollKey: string,
  waiting: readonly Polled[],
  worker: WorkerContext,
): Promise<(request: Polled) => { seen: Seen | undefined } | undefined> {
  // Retries are only for short troubles, because the next poll comes anyway.
  const signal = AbortSignal.timeout(2 * worker.policy.timing.httpTimeoutMs);
  const targets = new Map(waiting.map(({ record }) => [record.target.id, record.target]));
  const [first] = waiting;
  if (!pollKey.startsWith("vms/") || targets.size === 1) {
    const { seen } = await readTarget((first as Polled).record.target, worker, { signal });
    return () => ({ seen });
  }
  const isFew = targets.size <= mostAlone;
  let gaps: ListGaps | undefined;
  const onGaps = (short: ListGaps) => void (gaps = short);
  const projectId = pollKey.slice("vms/".length);
  const list = isFew ? [] : await worker.compute.projects.vms(projectId, { signal, onGaps });
  const readings = new Map<string, { seen: Seen | undefined }>();
  for (const vm of list) if (vm.status !== unreadable) readings.set(vm.id, { seen: vm });
  const isUnclear = ({ id, name }: Target) =>
    isFew || (!readings.has(id) && (mayHide(gaps, name) || list.some((vm) => vm.id === id)));
  const unclear = [...targets.values()].filter(isUnclear);
  let failure: ComputeError | undefined;
  const readAlone = async (target: Target): Promise<void> => {
    try {
      readings.set(target.id, await readTarget(target, worker, { signal }));
    } catch (error) {
      if (!(error instanceof ComputeError)) throw error;
      failure = error;
      worker.log.debug("poll.unread", { vm: target.id, why: error.message });
    }
  };
  await Promise.all(unclear.map(readAlone));
  if (failure && readings.size === 0) throw failure;
  const unread = new Set(unclear.filter(({ id }) => !readings.has(id)).map(({ id }) => id));
  return ({ record: { target } }) =>
    unread.has(target.id) ? undefined : { seen: readings.get(target.id)?.seen };
}

/**
 * Counts a failed read of each request, and gives up those that were blind for a whole quiet period
 * and many reads. A few failed reads prove nothing, however late they are: after an outage, or where
 * polls come late, the deadline is long over.
 */
async function countFailedReads(waiting: readonly Polled[], worker: WorkerContext): Promise<void> {
  if (waiting.length === 0) return;
  const now = await worker.store.now();
  const { settleDeadlineMs, quiesceMs } = worker.policy.timing;
  const why = "the compute service can't be read";
  for (const request of waiting) {
    const { stage } = request;
    const { blindSince = now, blindLooks = 0 } = stage.reads;
    if (blindLooks < enoughLooks) {
      const reads = { ...stage.reads, blindSince, blindLooks: blindLooks + 1 };
      await worker.store.saveFacts(request, { ...stage, reads });
      continue;
    }
    const deadline = stage.call.sentAt + settleDeadlineMs;
    if (now < deadline || now < blindSince + quiesceMs) continue;
    if (request.state === "accepted")
      await worker.store.move(request, { to: toUnclear(request.stage, why), why });
    if (request.state === "unclear")
      await worker.store.move(request, { to: toUnknown(request.stage, why, now), why });
  }
}
