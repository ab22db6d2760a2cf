import { ComputeError } from "../../compute/errors.ts";
import { nextPollDelay } from "../../compute/compute.ts";
import { during, workOnRequests } from "../../log/ids.ts";
import type { DueWork } from "../../redis/dispatcher.ts";
import type { Seen } from "../../registry/define.ts";
import { readTarget } from "./gate.ts";
import { isUnsettled, judge, lookAt } from "./reconcile.ts";
import { changeOf, maxStepErrors, type WorkerContext } from "./worker-context.ts";
import { isPolled, lasts, type Progress, type StoredRequest } from "../journal/record.ts";

/** When a key is polled next (ms), and that it is polled no sooner, whoever asks (ms). */
interface Polled {
  inMs: number;
  restMs: number;
}

/** Polls under way at a time. */
const pollsAtOnce = 10;

/** Polls what is due. Until when a key rests, each process knows of its own polls. */
export function pollWork(contextNow: () => WorkerContext): DueWork {
  const { polls } = contextNow();
  const restsUntil = new Map<string, number>();
  return {
    name: "poll",
    of: "pollKey",
    due: polls.due,
    atOnce: pollsAtOnce,
    visibilityTimeoutMs: () => 2 * contextNow().policy.timing.heartbeatMs,
    async handle(pollKey) {
      const restsMs = (restsUntil.get(pollKey) ?? 0) - performance.now();
      if (restsMs > 0) {
        await polls.next(pollKey, restsMs);
        return restsMs;
      }
      const next = await poll(pollKey, contextNow());
      if (next) restsUntil.set(pollKey, performance.now() + next.restMs);
      else restsUntil.delete(pollKey);
      await polls.next(pollKey, next?.inMs ?? 0);
      return next?.inMs;
    },
  };
}

/**
 * One poll per key serves all its requests: the VMs of a project share a read of its list. Between polls, a waiting request
 * costs no worker time. Undefined once nothing is left to poll.
 */
export async function poll(pollKey: string, by: WorkerContext): Promise<Polled | undefined> {
  const waiting = await by.polls.waiting(pollKey);
  if (waiting.length === 0) return undefined;
  let read: (request: StoredRequest) => { seen: Seen | undefined } | undefined;
  try {
    const work = workOnRequests(waiting.map(({ record }) => record));
    read = await during(work, () => readFor(pollKey, waiting, by));
  } catch (error) {
    const isKnown = error instanceof ComputeError;
    if (!isKnown) by.log.error("poll.failed", { pollKey, error });
    // Without a read, only deadlines decide
    await giveUpLate(waiting, by);
    return { inMs: (isKnown && error.retryAfterMs) || by.policy.timing.pollMostMs, restMs: 0 };
  }
  const at = await by.store.now();
  let youngest = 0;
  const left: { request: Waiting; seen: Seen | undefined }[] = [];
  for (const request of waiting) {
    const found = read(request);
    const judged = found && (await judgeAlone(request, found.seen, at, by));
    if (judged === "over") continue;
    const progress = judged ?? request.progress;
    left.push({ request: { ...request, progress }, seen: found?.seen });
    youngest = Math.max(youngest, request.progress.sentAt ?? at);
  }
  await by.at("watch", pollKey);
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
 * As many are polled as far apart as the first polls of one. Each send and each answer asks for a poll, because a short REBOOTING is
 * a restart's only proof, and each poll judges all: so the time between polls grows with the square of how many there are, up to
 * twice that.
 */
const crowd = 70;

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
): Promise<Judgment> {
  try {
    return await judgeOne(request, seen, at, by);
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
  const moved = await by.store.move(request, {
    state: judged.state,
    progress: judged.progress,
    ...(judged.why ? { why: judged.why } : {}),
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
