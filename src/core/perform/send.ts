import { type Accepted, ComputeError } from "../../fleet/compute/compute.ts";
import { messageOf } from "../../errors.ts";
import { patiently } from "../../redis/redis.ts";
import type { Seen } from "../../registry/define.ts";
import { type Journal, newNonce } from "../request/journal.ts";
import {
  type Call,
  type SafetySnapshot,
  type Setbacks,
  type StageIn,
  type State,
  isPolled,
  noReads,
} from "../request/stage.ts";
import type { RequestIn, StoredRequest } from "../request/stored-request.ts";
import { pollKeyOf } from "../request/record.ts";
import { statusOf } from "../request/seen.ts";
import { backoff, jitter } from "./back-off.ts";
import { keyRefused } from "./gate.ts";
import { readTarget, readWithin } from "./read-target.ts";
import {
  type Change,
  type Next,
  type Stop,
  claimId,
  ended,
  throttledWhy,
  waitFor,
} from "./step.ts";
import type { WorkerContext } from "./worker-context.ts";

/** The findings of the gate, and the snapshot that was taken since. */
interface Open {
  /** The target as read just now. */
  before: Seen | undefined;
  /** The VMs of a project, which must be free as well. */
  vmIds: readonly string[];
  safety: SafetySnapshot | undefined;
}

type Sent = Next | Extract<Stop, { kind: "frozen" | "locked" }>;

/**
 * The only code that changes a VM or a project: claim, durability, ledger, window, send, in this order and once per attempt. A stop
 * before the send returns the request to `authorized`; an unclear outcome is reconciled by reads, never sent again here.
 */
export async function claimAndSend(
  request: RequestIn<"authorized">,
  change: Change,
  open: Open,
  worker: WorkerContext,
): Promise<Sent> {
  const call: Sending = { nonce: newNonce(), mayHaveLeft: false };
  const claim = claimId({ ...request, attempt: request.attempt + 1, nonce: call.nonce });
  worker.calling.add(claim);
  try {
    return await claimOnce(request, change, open, call, worker);
  } catch (error) {
    // Redis may have the claim nevertheless. The sweep then returns it.
    if (!call.mayHaveLeft) worker.unsent.add(claim);
    throw error;
  } finally {
    clearTimeout(call.looking);
    worker.calling.delete(claim);
  }
}

interface Sending {
  nonce: string;
  mayHaveLeft: boolean;
  /** Begins polls while a call takes long. */
  looking?: NodeJS.Timeout;
}

/**
 * The part of the first poll's time after which a call counts as long. A call that is answered
 * before says itself what it began, or is followed by a read at once. A short REBOOTING may be a
 * restart's only proof, so a longer call is polled while it is under way.
 */
const longCall = 0.15;

async function claimOnce(
  request: RequestIn<"authorized">,
  change: Change,
  open: Open,
  call: Sending,
  worker: WorkerContext,
): Promise<Sent> {
  const { store } = worker;
  const { record } = request;
  const { claimWindowMs, pollFirstMs } = worker.policy.timing;
  const { setbacks } = request.stage;
  const elapsedMs = stopwatch();
  const claim = await store.move(request, {
    to: {
      state: "sending",
      call: {
        sentAt: await store.now(),
        ...(open.before === undefined ? {} : { before: open.before }),
        ...(open.safety ? { safety: open.safety } : {}),
      },
      reads: noReads,
      setbacks,
    },
    attempt: request.attempt + 1,
    owner: worker.workerId,
    why: request.attempt === 0 ? "claimed" : `claimed again, attempt ${request.attempt + 1}`,
    claim: { vmIds: open.vmIds, nonce: call.nonce },
  });
  if (claim.kind === "frozen" || claim.kind === "locked") return claim;
  if (claim.kind !== "moved") return claim.kind === "changed" ? waitFor(50) : ended;
  const claimed = claim.request;
  await worker.at?.("claim", record.id);

  const waitedMs = stopwatch();
  const forgettable = await worker.durabilityProblem(claimed, claim.replicas);
  if (forgettable !== undefined) return returnUnsent(claimed, forgettable, worker);
  const windowMs = claimWindowMs + Math.min(waitedMs(), claimWindowMs);

  const entry = await recordSend(claimed, worker);
  if (entry === "unwritten")
    return returnUnsent(claimed, "the send ledger can't be written", worker);
  if (entry === "recorded-before") {
    call.mayHaveLeft = true;
    const why = "this attempt is already in the ledger";
    return moveAndPoll(claimed, (now) => unclear(now, {}), why, worker);
  }
  await worker.at?.("ledger", record.id);
  if (change.effect.needsMark)
    call.looking = setTimeout(
      () => void worker.polls.pollSoon(pollKeyOf(record)).catch(() => undefined),
      longCall * pollFirstMs,
    );
  // A worker paused since the claim must not act on outdated facts
  if (elapsedMs() > windowMs) return returnUnsent(claimed, tooLong, worker);

  const watch = watchClaim(claimed, { at: claim.at, elapsedMs }, worker);
  await worker.at?.("send", record.id);
  call.mayHaveLeft = true;
  const answer = await send(claimed, change, {
    ...worker,
    compute: worker.compute.onlyWhile(watch.mayGoOn),
  });
  if (answer instanceof ComputeError) call.mayHaveLeft = answer.kind !== "unreachable";
  await worker.at?.("answer", record.id);
  const problem = watch.problem();
  if (problem !== undefined && !call.mayHaveLeft) return returnUnsent(claimed, problem, worker);
  // The answer is nowhere else, so a Redis that is slow or fails over must not make it unknown.
  const next = await patiently(() => takeAnswer(claimed, change, answer, worker));
  await worker.at?.("move", record.id);
  return next;
}

const tooLong = "too long between claim and send; nothing was sent";
const unconfirmed = "Redis did not confirm the claim; nothing was sent";

/** Records a send before its call leaves. All changes are frozen when that fails. */
async function recordSend(
  { record, attempt, nonce }: Claimed,
  { ledger, store }: WorkerContext,
): Promise<"written" | "recorded-before" | "unwritten"> {
  try {
    return await ledger.write({
      request: record.id,
      attempt,
      nonce,
      at: Date.now(),
      command: record.command,
      target: record.target.id || record.target.name,
    });
  } catch (error) {
    await store.freeze({
      by: "Gatehouse",
      cause: "ledger-unwritten",
      reason: `the send ledger can't be written (${messageOf(error)})`,
    });
    return "unwritten";
  }
}

/**
 * Watches a claim until its call leaves. The connection may open so late that `recoverFromSender`
 * has moved the request on. `problem` says why the last check failed, also when Redis didn't answer.
 */
function watchClaim(
  claimed: Claimed,
  since: { at: number; elapsedMs(): number },
  { store, policy }: WorkerContext,
) {
  const { claimWindowMs, httpTimeoutMs } = policy.timing;
  const longestMs = claimWindowMs + httpTimeoutMs;
  let problem: string | undefined;
  return {
    problem: () => problem,
    async mayGoOn(): Promise<boolean> {
      problem = unconfirmed;
      const { at, isHeld } = await store.holds(claimed);
      const isLate = since.elapsedMs() > longestMs || at - since.at > longestMs;
      if (isHeld) problem = isLate ? tooLong : undefined;
      return problem === undefined;
    },
  };
}

/** Returns a claim whose call provably never left, so that the request is claimed again later. */
async function returnUnsent(claimed: Claimed, why: string, worker: WorkerContext): Promise<Next> {
  const returned = claimed.stage.setbacks.returned + 1;
  const inMs = backoff(returned - 1, worker.policy.timing);
  return returnToAuthorized(claimed, { returned }, why, inMs, worker);
}

/**
 * Returns a claim of this process that couldn't be returned at once. False when it is no such
 * claim.
 */
export async function returnLeftBehind(request: Claimed, worker: WorkerContext): Promise<boolean> {
  const claim = claimId(request);
  if (!worker.unsent.has(claim)) return false;
  await returnUnsent(request, unconfirmed, worker);
  worker.unsent.delete(claim);
  return true;
}

/**
 * Sends the call. An error that isn't the service's is a bug after the claim, and the call may have
 * left.
 */
async function send(
  claimed: Claimed,
  { command, args }: Change,
  worker: WorkerContext,
): Promise<Accepted | ComputeError> {
  try {
    return await command.perform(claimed.record.target, args, { compute: worker.compute });
  } catch (error) {
    if (error instanceof ComputeError) return error;
    worker.log.error("send.bug", { request: claimed.record.id, error });
    return new ComputeError("unclear", claimed.record.command, messageOf(error), { cause: error });
  }
}

/** How often a call that provably never left is tried again. */
const mostUnreachable = 3;
/** The pause after a 429 without a Retry-After (ms). */
const slowDownMs = 5000;

/** Moves the request by the service's answer, or by its absence. */
async function takeAnswer(
  claimed: Claimed,
  change: Change,
  answer: Accepted | ComputeError,
  worker: WorkerContext,
): Promise<Next> {
  const endedAt = await worker.store.now();
  if (!(answer instanceof ComputeError))
    return recordAcceptance(claimed, change, answer, endedAt, worker);
  const learned: Learned = {
    endedAt,
    answer: {
      class: answer.kind,
      ...(answer.status === undefined ? {} : { status: answer.status }),
      ...(answer.serviceMessage ? { message: answer.serviceMessage } : {}),
    },
  };
  const { setbacks } = claimed.stage;
  switch (answer.kind) {
    case "unreachable": {
      const unreachable = setbacks.unreachable + 1;
      const why = "the compute service could not be reached; nothing was sent";
      if (unreachable > mostUnreachable)
        return moveAndPoll(claimed, (now) => rejected(now, learned, why), why, worker);
      const inMs = backoff(unreachable + 1, worker.policy.timing);
      return returnToAuthorized(claimed, { unreachable }, why, inMs, worker);
    }
    case "busy": {
      const pause = answer.retryAfterMs ?? slowDownMs;
      await worker.store.throttle(pause);
      const throttled = setbacks.throttled + 1;
      const inMs = pause + jitter(1000);
      return returnToAuthorized(claimed, { throttled }, throttledWhy, inMs, worker);
    }
    case "unclear":
    case "unexpected":
      return moveAndPoll(claimed, (now) => unclear(now, learned), "no clear answer", worker);
    default:
      return recordRefusal(claimed, change, learned, answer, worker);
  }
}

/** Records a 2xx: the request is done where the answer proves that, and otherwise polled. */
async function recordAcceptance(
  claimed: Claimed,
  { effect }: Change,
  answer: Accepted,
  endedAt: number,
  worker: WorkerContext,
): Promise<Next> {
  const answeredTarget: Seen | undefined = answer.vm ?? answer.project;
  const began =
    answeredTarget !== undefined &&
    effect.mark?.(answeredTarget, claimed.stage.call.before) === true;
  const learned: Learned = {
    endedAt,
    answer: {
      class: "accepted",
      status: answer.status,
      ...(answer.snapshotId ? { snapshotId: answer.snapshotId } : {}),
    },
    ...(began ? { mark: { status: statusOf(answeredTarget), at: endedAt } } : {}),
  };
  return effect.provenBy?.(answer)
    ? moveAndPoll(claimed, (now) => done(now, learned), "the answer proves it", worker)
    : moveAndPoll(
        claimed,
        (now) => ({ state: "accepted", ...withLearned(now, learned) }),
        "accepted by the compute service",
        worker,
      );
}

/**
 * Whether the service refuses Gatehouse's key, and not only this change. A 403 may be about one
 * protected VM, so the key counts as refused when a read that every key may make is refused, too. A
 * 401 is about the key, unless that read succeeds.
 */
async function isKeyRefused(
  { status, hasNewKey }: ComputeError,
  { compute, policy }: WorkerContext,
): Promise<boolean> {
  if ((status !== 401 && status !== 403) || hasNewKey) return false;
  try {
    await compute.projects.listAll(1, readWithin(policy.timing));
    return false;
  } catch (error) {
    if (!(error instanceof ComputeError)) throw error;
    return error.status === 401 || error.status === 403 || status === 401;
  }
}

/**
 * Records a refusal. After a 409 the target is read once: if it already is in the wanted state, the
 * request is done. All changes are frozen when the service refuses Gatehouse's key.
 */
async function recordRefusal(
  claimed: Claimed,
  { effect, args }: Change,
  learned: Learned,
  answer: ComputeError,
  worker: WorkerContext,
): Promise<Next> {
  if (await isKeyRefused(answer, worker)) {
    const reason = keyRefused(answer.status);
    await worker.store.freeze({ by: "Gatehouse", cause: "key-refused", reason });
  }
  if (answer.kind === "conflict") {
    const read = await readTarget(claimed.record.target, worker).catch(() => undefined);
    const { seen } = read ?? {};
    if (seen && effect.already?.(seen, args)) {
      const already = { after: seen, already: true } as const;
      const why = "already in that state";
      return moveAndPoll(claimed, (now) => ({ ...done(now, learned), ...already }), why, worker);
    }
  }
  const why = answer.serviceMessage
    ? `the compute service refused, saying “${answer.serviceMessage}”`
    : `the compute service refused (${answer.status ?? answer.kind})`;
  return moveAndPoll(claimed, (now) => rejected(now, learned, why), why, worker);
}

/**
 * Returns a request whose call provably never left or had no effect. It may be claimed again after
 * `inMs`.
 */
async function returnToAuthorized(
  claimed: Claimed,
  more: Partial<Setbacks>,
  why: string,
  inMs: number,
  worker: WorkerContext,
): Promise<Next> {
  const notBefore = (await worker.store.now()) + inMs;
  const authorized = ({ call: { safety }, setbacks }: Claimed["stage"]) =>
    ({
      state: "authorized",
      setbacks: { ...setbacks, ...more },
      why,
      notBefore,
      ...(safety ? { safetyRequest: safety.request } : {}),
    }) as const;
  await moveAndPoll(claimed, authorized, why, worker);
  return waitFor(inMs);
}

/** A request whose call may have left. */
type Claimed = RequestIn<"sending" | "unclear">;

/** Facts that the end of a call tells. */
type Learned = Partial<Pick<Call, "endedAt" | "answer" | "mark">>;

/**
 * Returns the facts of a stage with those that were learned. Reads after a quiet period that began too
 * early no longer count.
 */
export function withLearned({ call, reads, setbacks }: Claimed["stage"], learned: Learned) {
  const { quietSince: _early, quietLooks: _few, ...noted } = reads;
  return { call: { ...call, ...learned }, reads: noted, setbacks };
}

const unclear = (now: Claimed["stage"], learned: Learned) =>
  ({ state: "unclear", ...withLearned(now, learned) }) as const;

const done = (now: Claimed["stage"], learned: Learned) =>
  ({ state: "done", ...withLearned(now, learned) }) as const;

const rejected = (now: Claimed["stage"], learned: Learned, why: string) =>
  ({ state: "rejected", ...withLearned(now, learned), why }) as const;

/** Makes the stage that a request moves to when its call has ended, out of its present one. */
type AfterCall = (
  now: Claimed["stage"],
) => StageIn<"accepted" | "rejected" | "unclear" | "authorized" | "done">;

/** Moves a request as its owner, and polls its target now if the new state depends on reads. */
async function moveAndPoll(
  claimed: Claimed,
  to: AfterCall,
  why: string,
  worker: WorkerContext,
): Promise<Next> {
  const reached = await moveIfStillOurs(claimed, to, { why }, worker.store);
  if (reached && isPolled(reached)) await worker.polls.pollSoon(pollKeyOf(claimed.record));
  return ended;
}

/**
 * Moves a request as its owner, who made the claim. This wins over reads, and over a decision that
 * a worker made before the call ended (`unclear`), if attempt, nonce, and owner are still the same.
 * Reads since the claim are kept, because `to` is given the present stage. Resolves with the state
 * that it moved to; undefined when the request is no longer the owner's.
 */
export async function moveIfStillOurs(
  claimed: Claimed,
  to: AfterCall,
  how: { why: string; actor?: string },
  store: Pick<Journal, "get" | "move">,
): Promise<State | undefined> {
  let now: StoredRequest | undefined = claimed;
  for (let tries = 0; tries < 20 && now; tries++) {
    const isOurs =
      now.attempt === claimed.attempt && now.nonce === claimed.nonce && now.owner === claimed.owner;
    if (!isOurs || (now.state !== "sending" && now.state !== "unclear")) break;
    const next = to(now.stage);
    if ((await store.move(now, { to: next, ...how })).kind !== "changed") return next.state;
    now = await store.get(claimed.record.id);
  }
  return undefined;
}

/**
 * Measures the time since now (ms) by whichever clock moved more. The monotonic one stands still
 * while a machine is suspended, and the wall clock may be set back.
 */
export function stopwatch(): () => number {
  const [began, beganAt] = [performance.now(), Date.now()];
  return () => Math.max(performance.now() - began, Date.now() - beganAt);
}
