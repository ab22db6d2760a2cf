import { type Accepted, ComputeError } from "../../compute/compute.ts";
import { messageOf } from "../../errors.ts";
import { patiently } from "../../redis/redis.ts";
import type { Seen } from "../../registry/define.ts";
import { newNonce } from "../journal/journal.ts";
import {
  type Progress,
  type State,
  type StoredRequest,
  isPolled,
  pollKeyOf,
  statusOf,
} from "../journal/record.ts";
import { backoff, jitter } from "./back-off.ts";
import { keyRefused } from "./gate.ts";
import { readTarget } from "./read-target.ts";
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

type Sent = Next | Extract<Stop, { is: "frozen" | "locked" }>;

/**
 * The only code that changes anything: claim, durability, ledger, window, send, in this order and once per attempt. A stop
 * before the send returns the request to `authorized`; an unclear outcome is reconciled by reads, never sent again here.
 */
export async function claimAndSend(
  request: StoredRequest,
  change: Change,
  open: { before: Seen | undefined; vmIds: readonly string[] },
  by: WorkerContext,
): Promise<Sent> {
  const call: Call = { nonce: newNonce(), mayHaveLeft: false };
  const claim = claimId({ ...request, attempt: request.attempt + 1, nonce: call.nonce });
  by.calling.add(claim);
  try {
    return await claimOnce(request, change, open, call, by);
  } catch (error) {
    // Redis may have the claim all the same: the sweep returns it
    if (!call.mayHaveLeft) by.unsent.add(claim);
    throw error;
  } finally {
    clearTimeout(call.looking);
    by.calling.delete(claim);
  }
}

interface Call {
  nonce: string;
  mayHaveLeft: boolean;
  /** Begins polls of a call that takes long. */
  looking?: NodeJS.Timeout;
}

/**
 * Of the first poll's time: a call that is answered by then says itself what it began, or is followed by a read at once. A short
 * REBOOTING may be a restart's only proof, so one that takes longer is polled while it is under way.
 */
const longCall = 0.15;

async function claimOnce(
  request: StoredRequest,
  change: Change,
  open: { before: Seen | undefined; vmIds: readonly string[] },
  call: Call,
  by: WorkerContext,
): Promise<Sent> {
  const { store } = by;
  const { record } = request;
  const { claimWindowMs, httpTimeoutMs, pollFirstMs } = by.policy.timing;
  const { needsMark } = change.effect;
  const { waitsFor: _gone, why: _was, notBefore: _over, looks: _seen, ...kept } = request.progress;
  const elapsedMs = stopwatch();
  const claim = await store.move(request, {
    state: "sending",
    attempt: request.attempt + 1,
    owner: by.workerId,
    progress: {
      ...kept,
      ...(open.before === undefined ? {} : { before: open.before }),
      sentAt: await store.now(),
    },
    why: request.attempt === 0 ? "claimed" : `claimed again, attempt ${request.attempt + 1}`,
    claim: { vmIds: open.vmIds, nonce: call.nonce },
  });
  if (claim.is === "frozen" || claim.is === "locked") return claim;
  if (claim.is !== "moved") return claim.is === "changed" ? waitFor(50) : ended;
  const claimed = claim.request;
  await by.at?.("claim", record.id);

  const waitedMs = stopwatch();
  const forgettable = await by.durable(claimed, claim.replicas);
  if (forgettable !== undefined) return returnUnsent(claimed, forgettable, by);
  const windowMs = claimWindowMs + Math.min(waitedMs(), claimWindowMs);

  let isFirst: boolean;
  try {
    isFirst = await by.ledger.write({
      request: record.id,
      attempt: claimed.attempt,
      nonce: claimed.nonce,
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
    return returnUnsent(claimed, "the send ledger can't be written", by);
  }
  if (!isFirst) {
    call.mayHaveLeft = true;
    return moveIfStillOurs(claimed, "unclear", {}, "this attempt is already in the ledger", by);
  }
  await by.at?.("ledger", record.id);
  if (needsMark)
    call.looking = setTimeout(
      () => void by.polls.pollSoon(pollKeyOf(record)).catch(() => undefined),
      longCall * pollFirstMs,
    );
  // A worker paused since the claim must not act on outdated facts
  if (elapsedMs() > windowMs) return returnUnsent(claimed, tooLong, by);

  // Nor on a connection opened so late that `checkSender` has moved the request on
  const longestMs = claimWindowMs + httpTimeoutMs;
  let whyNot: string | undefined;
  const mayGoOn = async () => {
    whyNot = "Redis did not confirm the claim; nothing was sent";
    const [at, isHeld] = await store.holds(claimed);
    const isLate = elapsedMs() > longestMs || at - claim.at > longestMs;
    if (isHeld) whyNot = isLate ? tooLong : undefined;
    return whyNot === undefined;
  };
  await by.at?.("send", record.id);
  call.mayHaveLeft = true;
  const answer = await send(claimed, change, { ...by, compute: by.compute.onlyWhile(mayGoOn) });
  if (answer instanceof ComputeError) call.mayHaveLeft = answer.kind !== "unreachable";
  await by.at?.("answer", record.id);
  if (whyNot !== undefined && !call.mayHaveLeft) return returnUnsent(claimed, whyNot, by);
  // The answer is nowhere else: a Redis that is slow or fails over must not make it unknown
  const next = await patiently(() => takeAnswer(claimed, change, answer, by));
  await by.at?.("move", record.id);
  return next;
}

const tooLong = "too long between claim and send; nothing was sent";

/** The call provably never left: the request is claimed again later. */
async function returnUnsent(claimed: StoredRequest, why: string, by: WorkerContext): Promise<Next> {
  const returned = (claimed.progress.returned ?? 0) + 1;
  const inMs = backoff(returned - 1, by.policy.timing);
  return returnToAuthorized(claimed, { returned }, why, inMs, by);
}

/** Returns a claim of this process that it could not return at once. False when it isn't one. */
export async function returnLeftBehind(
  request: StoredRequest,
  by: WorkerContext,
): Promise<boolean> {
  const claim = claimId(request);
  if (!by.unsent.has(claim)) return false;
  await returnUnsent(request, "Redis did not confirm the claim; nothing was sent", by);
  by.unsent.delete(claim);
  return true;
}

/** Any other error is a bug after the claim: the call may have left. */
async function send(
  claimed: StoredRequest,
  { command, args }: Change,
  by: WorkerContext,
): Promise<Accepted | ComputeError> {
  try {
    return await command.perform(claimed.record.target, args, { compute: by.compute });
  } catch (error) {
    if (error instanceof ComputeError) return error;
    by.log.error("send.bug", { request: claimed.record.id, error });
    return new ComputeError("unclear", claimed.record.command, messageOf(error), { cause: error });
  }
}

/** Retries of a call that provably never left. */
const maxNotSent = 3;
/** For a 429 without a Retry-After. */
const slowDownMs = 5000;

/** Moves the request by the service's answer, or by its absence. */
async function takeAnswer(
  claimed: StoredRequest,
  change: Change,
  answer: Accepted | ComputeError,
  by: WorkerContext,
): Promise<Next> {
  const endedAt = await by.store.now();
  if (!(answer instanceof ComputeError)) return accepted(claimed, change, answer, endedAt, by);
  const learned: Partial<Progress> = {
    endedAt,
    answer: {
      class: answer.kind,
      ...(answer.status === undefined ? {} : { status: answer.status }),
      ...(answer.serviceMessage ? { message: answer.serviceMessage } : {}),
    },
  };
  switch (answer.kind) {
    case "unreachable": {
      const notSent = (claimed.progress.notSent ?? 0) + 1;
      const why = "the compute service could not be reached; nothing was sent";
      if (notSent > maxNotSent) {
        return moveIfStillOurs(claimed, "rejected", { ...learned, notSent, why }, why, by);
      }
      const inMs = backoff(notSent + 1, by.policy.timing);
      return returnToAuthorized(claimed, { ...learned, notSent }, why, inMs, by);
    }
    case "busy": {
      const pause = answer.retryAfterMs ?? slowDownMs;
      await by.store.throttle(pause);
      const throttled = (claimed.progress.throttled ?? 0) + 1;
      const inMs = pause + jitter(1000);
      return returnToAuthorized(claimed, { ...learned, throttled }, throttledWhy, inMs, by);
    }
    case "unclear":
    case "unexpected":
      return moveIfStillOurs(claimed, "unclear", learned, "no clear answer", by);
    default:
      return refused(claimed, change, learned, answer, by);
  }
}

async function accepted(
  claimed: StoredRequest,
  { effect }: Change,
  answer: Accepted,
  endedAt: number,
  by: WorkerContext,
): Promise<Next> {
  const told: Seen | undefined = answer.vm ?? answer.project;
  const began = told !== undefined && effect.mark?.(told, claimed.progress.before) === true;
  const learned: Partial<Progress> = {
    endedAt,
    answer: {
      class: "accepted",
      status: answer.status,
      ...(answer.snapshotId ? { snapshotId: answer.snapshotId } : {}),
    },
    mark: began ? { status: statusOf(told), at: endedAt } : undefined,
  };
  return effect.provenBy?.(answer)
    ? moveIfStillOurs(claimed, "done", learned, "the answer proves it", by)
    : moveIfStillOurs(claimed, "accepted", learned, "accepted by the compute service", by);
}

/** After a 409, one read: a target already in the wanted state is done. */
async function refused(
  claimed: StoredRequest,
  { effect, args }: Change,
  learned: Partial<Progress>,
  answer: ComputeError,
  by: WorkerContext,
): Promise<Next> {
  if ((answer.status === 401 && !answer.hasNewKey) || answer.status === 403) {
    const reason = keyRefused(answer.status);
    await by.store.freeze({ by: "Gatehouse", cause: "key-refused", reason });
  }
  if (answer.kind === "conflict") {
    const read = await readTarget(claimed.record.target, by).catch(() => undefined);
    if (read?.seen && effect.already?.(read.seen, args)) {
      const all = { ...learned, after: read.seen, already: true };
      return moveIfStillOurs(claimed, "done", all, "already in that state", by);
    }
  }
  const why = answer.serviceMessage
    ? `the compute service refused: ${answer.serviceMessage}`
    : `the compute service refused (${answer.status ?? answer.kind})`;
  return moveIfStillOurs(claimed, "rejected", { ...learned, why }, why, by);
}

/** After a call that provably never left or had no effect: it may be claimed again after `inMs`. */
async function returnToAuthorized(
  claimed: StoredRequest,
  learned: Partial<Progress>,
  why: string,
  inMs: number,
  by: WorkerContext,
): Promise<Next> {
  const notBefore = (await by.store.now()) + inMs;
  const { sentAt: _notSent, ...before } = claimed.progress;
  const unsent = { ...claimed, progress: before };
  await moveIfStillOurs(unsent, "authorized", { ...learned, why, notBefore }, why, by);
  return waitFor(inMs);
}

/**
 * A move by the owner, the worker with the claim. It wins over what another worker decided before the call ended
 * (`unclear`): same attempt, same nonce, same owner. Progress saved since the claim is kept, but for reads made too early.
 */
async function moveIfStillOurs(
  claimed: StoredRequest,
  state: State,
  learned: Partial<Progress>,
  why: string,
  by: WorkerContext,
): Promise<Next> {
  let now: StoredRequest | undefined = claimed;
  for (let tries = 0; tries < 20 && now; tries++) {
    const isOurs =
      now.attempt === claimed.attempt && now.nonce === claimed.nonce && now.owner === by.workerId;
    const mayMove = ["sending", "unclear"].includes(now.state);
    if (!isOurs || !mayMove) break;
    const mark = learned.mark ?? now.progress.mark;
    const { quietSince: _early, quietLooks: _few, ...noted } = now.progress;
    const progress = { ...noted, ...learned, ...(mark ? { mark } : {}) };
    if ((await by.store.move(now, { state, progress, why })).is !== "changed") break;
    now = await by.store.get(claimed.record.id);
  }
  if (isPolled(state)) await by.polls.pollSoon(pollKeyOf(claimed.record));
  return ended;
}

/**
 * Milliseconds since now by whichever clock moved more. The monotonic one stands still while a machine is suspended, and
 * the wall clock may be set back.
 */
export function stopwatch(): () => number {
  const [began, beganAt] = [performance.now(), Date.now()];
  return () => Math.max(performance.now() - began, Date.now() - beganAt);
}
