import { ComputeError } from "../../compute/errors.ts";
import { stopwatch } from "../../deadline.ts";
import { nextPollDelay } from "../../compute/compute.ts";
import { during, workOnRequests } from "../../log/ids.ts";
import type { Seen } from "../../registry/define.ts";
import { readTarget } from "./gate.ts";
import { isUnsettled, judge, lookAt } from "./reconcile.ts";
import {
  changeOf,
  ended,
  type Known,
  knownBy,
  maxStepErrors,
  pollLease,
  type WorkerContext,
  waitFor,
} from "./worker-context.ts";
import { lasts, type Progress, type State, type StoredRequest } from "../journal/record.ts";

/** `theirs`: another worker polls it by now. `restMs`: no sooner, whoever asks. `known`: what the next poll begins with. */
export type Polled =
  | { is: "ended" }
  | { is: "wait"; ms: number; restMs?: number; known?: Known | undefined }
  | { is: "theirs" };

/**
 * One poll per key serves all its requests: the VMs of a project share a read of its list. Between polls, a waiting request
 * costs no worker time. `always` also takes a key that another worker polls; what is `known` isn't asked of Redis.
 */
export async function poll(
  pollKey: string,
  { polls, always, known }: { polls: number; always: boolean; known?: Known | undefined },
  by: WorkerContext,
): Promise<Polled> {
  const taken = known
    ? { now: known.now, waiting: [known.request], alone: known }
    : await take(pollKey, always, by);
  if (!taken) return { is: "theirs" };
  const { now, waiting, alone } = taken;
  if (waiting.length === 0) {
    await by.polls.end(pollKey, by.workerId);
    return ended;
  }
  let read: (request: StoredRequest) => { seen: Seen | undefined } | undefined;
  try {
    const work = workOnRequests(waiting.map(({ record }) => record));
    read = await during(work, () => readFor(pollKey, waiting, by));
  } catch (error) {
    const isKnown = error instanceof ComputeError;
    if (!isKnown) by.log.error("poll.failed", { pollKey, error });
    // Without a read, only deadlines decide
    await giveUpLate(waiting, by);
    return waitFor((isKnown && error.retryAfterMs) || by.policy.timing.pollMostMs);
  }
  // One alone is judged by what the time should be; the move that keeps what was found says whether it is
  const at = alone ? Math.round(now + alone.elapsedMs()) : await by.store.now();
  let youngest = 0;
  const left: { request: Waiting; seen: Seen | undefined }[] = [];
  let next: Known | undefined;
  for (const request of waiting) {
    const found = read(request);
    const judged = found && (await judgeAlone(request, found.seen, at, by, alone));
    if (judged === "over") continue;
    next = judged?.known;
    const { progress } = judged ?? request;
    left.push({ request: { ...request, progress }, seen: found?.seen });
    youngest = Math.max(youngest, request.progress.sentAt ?? at);
  }
  await by.at("watch", pollKey);
  if (left.length === 0) return ended;
  const { pollFirstMs, pollMostMs } = by.policy.timing;
  const sinceStartMs = Math.max(0, at - youngest);
  const delay = nextPollDelay({ firstMs: pollFirstMs, maxMs: pollMostMs, sinceStartMs, polls });
  const timing = { ...by.policy.timing, delay };
  const soon = left.map(({ request, seen }) => soonest(request, seen, at, timing));
  const restMs = left.length === 1 ? 0 : pollFirstMs * Math.min(2, (left.length / crowd) ** 2);
  return { ...waitFor(Math.max(restMs, Math.min(delay, ...soon))), restMs, known: next };
}

/**
 * As many are polled as far apart as the first polls of one. Each send and each answer asks for a poll, because a short REBOOTING is
 * a restart's only proof, and each poll judges all: so the time between polls grows with the square of how many there are, up to
 * twice that.
 */
const crowd = 70;

interface Taken {
  now: number;
  waiting: readonly StoredRequest[];
  alone: Known | undefined;
}

async function take(
  pollKey: string,
  always: boolean,
  by: WorkerContext,
): Promise<Taken | undefined> {
  const taken = await by.polls.take(pollKey, pollLease(by, always));
  if (!taken) return undefined;
  const elapsedMs = stopwatch();
  const { now } = taken;
  const waiting = taken.requests.filter(({ state, final }) => !final && isPolled(state));
  const [request] = waiting;
  const isAlone = request && waiting.length === 1;
  const alone = isAlone ? { request, progress: request.progress, now, elapsedMs } : undefined;
  return { now, waiting, alone };
}

type Waiting = Pick<StoredRequest, "state" | "progress" | "changedAt">;

/**
 * In how many milliseconds a poll may decide about a request, where that is foreseeable: when its settled target has stood for
 * long enough, and, right after the send, soon, because some services need less than the first poll's time; otherwise `delay`.
 */
export function soonest(
  { state, progress, changedAt }: Waiting,
  seen: Seen | undefined,
  at: number,
  timing: { pollFirstMs: number; pollMostMs: number; stableGapMs: number; delay: number },
): number {
  const { pollFirstMs, pollMostMs, stableGapMs, delay } = timing;
  const isSettled = state === "accepted" && !isUnsettled(seen);
  const isSame = progress.lastLook?.print === lookAt(seen, at).print;
  const stableInMs = (isSame ? (progress.sameSince ?? at) : at) + stableGapMs - at;
  if (isSettled && progress.mark && stableInMs > 0) return Math.min(stableInMs, pollMostMs);
  const ageMs = Math.max(0, at - (progress.sentAt ?? changedAt));
  const youngMs = Math.round(pollFirstMs / 3);
  return ageMs < pollFirstMs ? Math.min(delay, youngMs - (ageMs % youngMs)) : delay;
}

/** What throws for one request must not keep the others of its project from being judged; in the end a person sees it. */
async function judgeAlone(
  request: StoredRequest,
  seen: Seen | undefined,
  at: number,
  by: WorkerContext,
  alone: Known | undefined,
): Promise<Judgment> {
  try {
    return await judgeOne(request, seen, at, by, alone);
  } catch (error) {
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
    return undefined;
  }
}

/** That the request no longer waits for polls, or how it stands now, and what the next poll of one alone begins with. */
type Judgment = "over" | { progress: Progress; known?: Known | undefined } | undefined;

async function judgeOne(
  request: StoredRequest,
  seen: Seen | undefined,
  at: number,
  by: WorkerContext,
  alone?: Known,
): Promise<Judgment> {
  const change = changeOf(request.record, by.commands);
  if (!change) return undefined;
  // By a clock that was set back since, what was read would stand for too short
  const isDated = alone && (alone.progress.lastLook?.at ?? at) <= at;
  const before = isDated ? alone.progress : request.progress;
  const { blindSince: _over, ...progress } = before;
  const judged = judge({
    state: request.state as "sending" | "accepted" | "unclear",
    progress,
    effect: change.effect,
    args: change.args,
    seen,
    at,
    timing: by.policy.timing,
  });
  const isTold = lasts(judged.progress) && !lasts(before);
  const isKnown = alone ?? request.progress.lastLook?.print === judged.progress.lastLook?.print;
  if (isKnown && !isTold && decidesNothing(request, judged))
    return { progress: judged.progress, known: alone && { ...alone, progress: judged.progress } };
  const moved = await by.store.move(request, {
    state: judged.state,
    progress: judged.progress,
    ...(judged.why ? { why: judged.why } : {}),
    isTold,
    ...(alone ? { judged: { at, toleranceMs: toleranceMs(by) }, polls: pollLease(by, false) } : {}),
  });
  // What was read since it was kept was dated as wrongly
  if (moved.is === "late") return judgeOne(request, seen, moved.now, by);
  // Its sender changed it meanwhile: left to the next poll
  if (moved.is !== "moved") return undefined;
  if (!isPolled(judged.state)) return "over";
  return { progress: moved.request.progress, known: knownBy(moved) };
}

const isPolled = (state: State) => ["sending", "accepted", "unclear"].includes(state);

/** How far from Redis' time a read may be dated: little beside what is measured by it. */
const toleranceMs = ({ policy }: WorkerContext) => Math.max(2, policy.timing.stableGapMs / 20);

/**
 * What only later reads make something of isn't kept of one alone: who polls it knows it, and who takes over reads it again. Of
 * several, what is as it was isn't kept.
 */
function decidesNothing(
  { state, progress }: StoredRequest,
  { progress: now, ...to }: { state: string; progress: Progress; why?: string },
): boolean {
  if (to.state !== state || to.why !== undefined) return false;
  if (progress.blindSince !== undefined || now.quietSince !== undefined) return false;
  return now.mark === undefined || progress.mark !== undefined;
}

/** Reads one VM alone, or the list of its project for several. */
async function readFor(
  pollKey: string,
  waiting: readonly StoredRequest[],
  by: WorkerContext,
): Promise<(request: StoredRequest) => { seen: Seen | undefined } | undefined> {
  // Retries are for short troubles: the next poll comes anyway
  const signal = AbortSignal.timeout(2 * by.policy.timing.httpTimeoutMs);
  const targets = new Set(waiting.map(({ record }) => record.target.id));
  const [first] = waiting;
  if (!pollKey.startsWith("vms/") || targets.size === 1) {
    const { seen } = await readTarget((first as StoredRequest).record.target, by, { signal });
    return () => ({ seen });
  }
  const list = await by.compute.projects.vms(pollKey.slice("vms/".length), { signal });
  const vms = new Map(list.map((vm) => [vm.id, vm]));
  return ({ record }) => ({ seen: vms.get(record.target.id) });
}

/** One failed read proves nothing, however late: only a whole quiet period without a read ends the wait. */
async function giveUpLate(waiting: readonly StoredRequest[], by: WorkerContext): Promise<void> {
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
