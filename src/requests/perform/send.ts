import type { Accepted } from "../../compute/compute.ts";
import { ComputeError } from "../../compute/errors.ts";
import { stopwatch } from "../../deadline.ts";
import { messageOf } from "../../errors.ts";
import { patiently } from "../../redis/trouble.ts";
import type { Seen } from "../../registry/define.ts";
import {
  returnToAuthorized,
  moveOwn,
  type Change,
  ended,
  type Next,
  type WorkerContext,
  waitFor,
  backoff,
  jitter,
  throttledWhy,
  claimId,
} from "./worker-context.ts";
import { type StoredRequest, pollKeyOf, type Progress } from "../journal/record.ts";
import { newNonce } from "../journal/journal.ts";
import type { Freeze } from "../journal/switches.ts";
import { keyRefused, readTarget } from "./gate.ts";

type Sent = Next | { is: "frozen"; freeze: Freeze } | { is: "locked"; holder: string };

/**
 * The only code that changes anything: claim, durability, ledger, window, send, in this order and once per attempt. A stop
 * before the send returns the request to `authorized`; an unclear outcome is reconciled by reads, never resent here.
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
  await by.at("claim", record.id);

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
    const why = "this attempt is already in the ledger";
    await moveOwn(claimed, { state: "unclear", learned: {}, why }, by);
    await by.polls.soon(pollKeyOf(record));
    return ended;
  }
  await by.at("ledger", record.id);
  if (needsMark)
    call.looking = setTimeout(
      () => void by.polls.soon(pollKeyOf(record)).catch(() => undefined),
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
  await by.at("send", record.id);
  call.mayHaveLeft = true;
  const answer = await send(claimed, change, { ...by, compute: by.compute.onlyWhile(mayGoOn) });
  if (answer instanceof ComputeError) {
    call.mayHaveLeft = answer.kind !== "unreachable";
    by.mine.add(record.id);
  }
  await by.at("answer", record.id);
  if (whyNot !== undefined && !call.mayHaveLeft) return returnUnsent(claimed, whyNot, by);
  // The answer is nowhere else: a Redis that is slow or fails over must not make it unknown
  const next = await patiently(() => takeAnswer(claimed, change, answer, by));
  await by.at("move", record.id);
  return next;
}

const tooLong = "too long between claim and send; nothing was sent";

/** The call provably never left: the request is claimed again later. */
async function returnUnsent(claimed: StoredRequest, why: string, by: WorkerContext): Promise<Next> {
  const returned = (claimed.progress.returned ?? 0) + 1;
  const inMs = backoff(returned - 1, by.policy.timing);
  await returnToAuthorized(claimed, { why, returned, inMs }, by);
  return waitFor(inMs);
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
        const all = { ...learned, notSent, why };
        await moveOwn(claimed, { state: "rejected", learned: all, why }, by);
        return ended;
      }
      const inMs = backoff(notSent + 1, by.policy.timing);
      await returnToAuthorized(claimed, { ...learned, notSent, why, inMs }, by);
      return waitFor(inMs);
    }
    case "busy": {
      const pause = answer.retryAfterMs ?? slowDownMs;
      await by.store.throttle(pause);
      const throttled = (claimed.progress.throttled ?? 0) + 1;
      const inMs = pause + jitter(1000);
      await returnToAuthorized(claimed, { ...learned, throttled, why: throttledWhy, inMs }, by);
      return waitFor(inMs);
    }
    case "unclear":
    case "unexpected":
      await moveOwn(claimed, { state: "unclear", learned, why: "no clear answer" }, by);
      await by.polls.soon(pollKeyOf(claimed.record));
      return ended;
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
    ...(began && told
      ? { mark: { status: "status" in told ? told.status : "", at: endedAt } }
      : {}),
  };
  if (effect.provenBy?.(answer)) {
    await moveOwn(claimed, { state: "done", learned, why: "the answer proves it" }, by);
    return ended;
  }
  const why = "accepted by the compute service";
  await moveOwn(claimed, { state: "accepted", learned, why }, by);
  await by.polls.soon(pollKeyOf(claimed.record));
  return ended;
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
    await by.store.freeze({
      by: "Gatehouse",
      cause: "key-refused",
      reason: keyRefused(answer.status),
    });
  }
  if (answer.kind === "conflict") {
    const read = await readTarget(claimed.record.target, by).catch(() => undefined);
    if (read?.seen && effect.already?.(read.seen, args)) {
      const all = { ...learned, after: read.seen, already: true };
      await moveOwn(claimed, { state: "done", learned: all, why: "already in that state" }, by);
      return ended;
    }
    // The conflict may be with the first call, taking effect late: reads decide
    if ((claimed.progress.resent ?? 0) > 0) {
      const why = "it was resent, and the compute service refused it in this state";
      await moveOwn(claimed, { state: "unclear", learned, why }, by);
      await by.polls.soon(pollKeyOf(claimed.record));
      return ended;
    }
  }
  const why = answer.serviceMessage
    ? `the compute service refused: ${answer.serviceMessage}`
    : `the compute service refused (${answer.status ?? answer.kind})`;
  await moveOwn(claimed, { state: "rejected", learned: { ...learned, why }, why }, by);
  return ended;
}
