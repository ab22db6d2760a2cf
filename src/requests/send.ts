import { performance } from "node:perf_hooks";
import type { Accepted } from "../compute/compute.ts";
import { ComputeError } from "../compute/errors.ts";
import { messageOf } from "../errors.ts";
import type { ChangeCommand, Seen } from "../registry/define.ts";
import { takeAnswer } from "./answer.ts";
import { giveBack, moveOwn } from "./own.ts";
import { ended, type Next, type Performing, waitFor } from "./performing.ts";
import type { StoredRequest } from "./record.ts";
import { watchKeyOf } from "./record.ts";
import type { Freeze } from "./switches.ts";

/**
 * The only code that changes anything: claim, ledger, window, send, in this order and never again for one attempt.
 * What stops it before the send is given back; what is not known after it is looked at, never repeated here.
 */
export async function claimAndSend(
  request: StoredRequest,
  command: ChangeCommand,
  args: unknown,
  open: { before: Seen | undefined; vmIds: readonly string[] },
  by: Performing,
): Promise<Next | { is: "frozen"; freeze: Freeze } | { is: "locked"; holder: string }> {
  const { store } = by;
  const { record } = request;
  const { waitsFor: _gone, why: _was, notBefore: _over, looks: _seen, ...kept } = request.progress;
  const claimedAt = performance.now();
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
    claim: { vmIds: open.vmIds },
  });
  if (claim.is === "frozen" || claim.is === "locked") return claim;
  if (claim.is !== "moved") return claim.is === "changed" ? waitFor(50) : ended;
  const claimed = claim.request;
  await by.at("claim", record.id);

  let isFirst: boolean;
  try {
    isFirst = await by.ledger.write({
      request: record.id,
      attempt: claimed.attempt,
      at: Date.now(),
      command: record.command,
      target: record.target.id || record.target.name,
    });
  } catch (error) {
    await store.freeze({
      by: "Gatehouse",
      reason: `the send ledger can't be written (${messageOf(error)})`,
    });
    await giveBack(claimed, { why: "the send ledger can't be written", inMs: 0 }, by);
    return waitFor(1);
  }
  if (!isFirst) {
    await moveOwn(
      claimed,
      { state: "unclear", learned: {}, why: "this attempt stands in the ledger already" },
      by,
    );
    await by.watch(watchKeyOf(record), true);
    return ended;
  }
  await by.at("ledger", record.id);
  if (command.effect.needsMark) await by.watch(watchKeyOf(record), true);
  // Monotonic: a worker that was frozen since the claim must not send on what it knew then
  if (performance.now() - claimedAt > by.policy.timing.claimWindowMs) {
    await giveBack(
      claimed,
      { why: "too long between claim and send; nothing was sent", inMs: 0 },
      by,
    );
    return waitFor(1);
  }
  // And not on a connection that was opened so late that others look already (`checkSender`)
  const { claimWindowMs, httpTimeoutMs } = by.policy.timing;
  const longestMs = claimWindowMs + httpTimeoutMs;
  by.calling.add(record.id);
  let next: Next;
  try {
    await by.at("send", record.id);
    const compute = by.compute.onlyWhile(() => performance.now() - claimedAt <= longestMs);
    const answer = await send(claimed, command, args, { ...by, compute });
    if (answer instanceof ComputeError) by.mine.add(record.id);
    await by.at("answer", record.id);
    next = await takeAnswer(claimed, command, args, answer, by);
  } finally {
    by.calling.delete(record.id);
  }
  await by.at("move", record.id);
  return next;
}

/** Anything thrown but a ComputeError is a bug of ours behind the claim: what left us is not known. */
async function send(
  claimed: StoredRequest,
  command: ChangeCommand,
  args: unknown,
  by: Performing,
): Promise<Accepted | ComputeError> {
  try {
    return await command.perform(claimed.record.target, args as never, { compute: by.compute });
  } catch (error) {
    if (error instanceof ComputeError) return error;
    by.log.error("send.bug", { request: claimed.record.id, error });
    return new ComputeError("unclear", claimed.record.command, messageOf(error), { cause: error });
  }
}
