import { ComputeError } from "../../compute/compute.ts";
import { type Message, lines, md, message, name, news, section } from "../../messages/message.ts";
import { ownerOf } from "../../policy/refusal.ts";
import type { Seen } from "../../registry/define.ts";
import { type StoredRequest, pollKeyOf, statusOf } from "../journal/record.ts";
import { teamChange, underNewPolicy } from "./gate.ts";
import { advance, endUnsent } from "./perform.ts";
import { isUnsettled } from "./poll.ts";
import { readTarget } from "./read-target.ts";
import { returnLeftBehind } from "./send.ts";
import { claimId } from "./step.ts";
import type { WorkerContext } from "./worker-context.ts";

const page = 200;

/** Recovers open requests after a lost job, a dead worker, or a deadline. Idempotent: it wakes and moves, never sends. */
export async function sweep(by: WorkerContext): Promise<{ open: number }> {
  const ids = await by.store.openIds();
  const pollKeys = new Set<string>();
  const sending = new Set<string>();
  for (let start = 0; start < ids.length; start += page) {
    for (const request of await by.store.getMany(ids.slice(start, start + page))) {
      if (request.state === "sending") sending.add(claimId(request));
      // One that throws must not keep the others from being found
      await sweepOne(request, pollKeys, by).catch((error: unknown) =>
        by.log.error("request.sweep-failed", { request: request.record.id, error }),
      );
    }
  }
  for (const claim of by.sendingSince.keys())
    if (!sending.has(claim)) by.sendingSince.delete(claim);
  for (const pollKey of pollKeys) await by.polls.expect(pollKey);
  await by.store.trim();
  return { open: ids.length };
}

async function sweepOne(
  request: StoredRequest,
  pollKeys: Set<string>,
  by: WorkerContext,
): Promise<void> {
  const { record, state } = request;
  switch (state) {
    case "authorized":
      return by.wakeIfIdle(record.id);
    case "sending":
    case "unclear":
    case "accepted":
      if (state !== "accepted" && (await returnLeftBehind(request, by))) return;
      pollKeys.add(pollKeyOf(record));
      return state === "sending" ? by.wakeIfIdle(record.id) : undefined;
    case "not-applied":
      return giveUpResend(request, by);
    case "draft":
      return expireUnanswered(request, by);
    case "unknown":
      return remind(request, by);
    default:
      return;
  }
}

/** Only the worker that sent it may resend it; without that worker, the request ends. */
async function giveUpResend(request: StoredRequest, by: WorkerContext): Promise<void> {
  const { id } = request.record;
  if (request.owner === by.workerId) {
    if (by.unclearCallsOfThisWorker.has(id) || by.calling.has(claimId(request))) return;
  } else if (request.owner && (await by.isAlive(request.owner))) return;
  const { mayResend: _over, ...kept } = request.progress;
  const progress = { ...kept, hint: "It was not resent: the worker that sent it is gone." };
  await by.store.move(request, { state: "not-applied", progress, why: "no effect" });
}

/** Only a person resolves an unknown outcome. One who can't tell yet puts the reminders off, and is asked again once. */
async function remind(request: StoredRequest, by: WorkerContext): Promise<void> {
  const { asksAgainAt, ...kept } = request.progress;
  const { unknownSince = request.changedAt, reminders = 0, remindersOver = reminders } = kept;
  const now = await by.store.now();
  const over = by.policy.timing.remindersMs.filter((after) => now - unknownSince >= after).length;
  const due = asksAgainAt === undefined ? over - remindersOver : Number(now >= asksAgainAt);
  if (due <= 0) return;
  const progress = { ...kept, reminders: reminders + due, remindersOver: over };
  await by.store.move(request, { state: "unknown", progress, why: "still unknown" });
}

/** Reminds half way, once. An expired request is final; a retry is a new one. */
async function expireUnanswered(request: StoredRequest, by: WorkerContext): Promise<void> {
  const { approval, policyVersion } = request.record;
  const isOther = policyVersion !== by.policyVersion;
  if (isOther && (await by.store.isOlderPolicy(policyVersion, by.policyVersion))) {
    const why = "the policy changed while this waited for approval";
    return void (await endUnsent(request, "cancelled", why, by, underNewPolicy));
  }
  const { target } = request.record;
  const { id } = ownerOf(target);
  const called = id === "" ? undefined : await by.projectName(id);
  const elsewhere = teamChange(target, called, by.policy);
  if (elsewhere !== undefined)
    return void (await endUnsent(request, "cancelled", elsewhere, by, "Request again."));
  const now = await by.store.now();
  if (approval && approval.expiresAt > now) {
    const { remindsAt = approval.expiresAt } = approval;
    if (request.progress.isHalfWay || remindsAt > now) return;
    const progress = { ...request.progress, isHalfWay: true };
    const why = "half of the time for approvals has passed";
    await by.store.move(request, { state: "draft", progress, why });
    return;
  }
  const why =
    request.votes.length > 0 ? "too few approved it in time" : "nobody approved it in time";
  await endUnsent(request, "expired", why, by);
}

/**
 * Resends what was proven to have no effect. Only the worker that saw its own call end may do so: no other can know whether
 * that call is still under way.
 */
export async function resendOwn(by: WorkerContext): Promise<void> {
  // The set grows while these are read
  const ids = [...by.unclearCallsOfThisWorker];
  const requests = await by.store.getMany(ids);
  const present = new Set(requests.map(({ record }) => record.id));
  for (const id of ids) if (!present.has(id)) by.unclearCallsOfThisWorker.delete(id);
  for (const request of requests) {
    const { id } = request.record;
    if (request.final || request.owner !== by.workerId) {
      by.unclearCallsOfThisWorker.delete(id);
      continue;
    }
    if (request.state !== "not-applied") continue;
    // Facts about the first call say nothing about the second
    const { notSent, throttled, resent = 0, before } = request.progress;
    // Before the move: a crash in between costs one read too many, not one too few
    await by.store.lates.later(id, 0);
    const moved = await by.store.move(request, {
      state: "authorized",
      progress: { notSent, throttled, before, resent: resent + 1, reservedFor: by.workerId },
      why: "no effect: resending",
    });
    if (moved.is !== "moved") continue;
    // After the move: the sweep ends what no worker will resend
    by.unclearCallsOfThisWorker.delete(id);
    const next = await advance(id, by);
    if (next.is === "wait") await by.wake(id);
  }
}

/** The first call may still take effect for this many quiet periods after the resend. */
const quiets = 10;
const maxOthers = 20;
const latesAtOnce = 20;

/**
 * Reads the targets of resent requests. A late effect of the first call can't be prevented, but one that is seen under way
 * is reported once, in the thread and the trail.
 */
export async function lookForLateEffects(
  by: WorkerContext,
  tell: (request: StoredRequest, message: Message) => Promise<unknown>,
): Promise<void> {
  const { store, policy } = by;
  for (const id of await store.lates.take(latesAtOnce, policy.timing.stableGapMs)) {
    const request = await store.get(id);
    if (request && !request.final && request.state !== "unknown") continue;
    if (!request || !(await mayStillCome(request, by))) {
      await store.lates.remove(id);
      continue;
    }
    const seen = await read(request, by);
    if (seen === undefined || !isUnsettled(seen)) continue;
    // A request made meanwhile may explain it
    if (!(await mayStillCome(request, by))) continue;
    await tell(request, renderLateEffect(request, seen));
    const { target } = request.record;
    await store.note({ what: "late-effect", request: id, target, status: statusOf(seen) });
    await store.lates.remove(id);
  }
}

/** Not after a later change of the target: then its cause is uncertain. */
async function mayStillCome(request: StoredRequest, by: WorkerContext): Promise<boolean> {
  const { record, changedAt } = request;
  const { store, policy } = by;
  if ((await store.now()) > changedAt + quiets * policy.timing.quiesceMs) return false;
  const { id, projectId } = record.target;
  const places = [...new Set([id, projectId])].map((targetId) =>
    store.recentIds({ targetId }, maxOthers),
  );
  const others = await store.getMany([...new Set((await Promise.all(places)).flat())]);
  return !others.some(
    (other) => other.record.id !== record.id && (other.progress.sentAt ?? 0) > changedAt,
  );
}

async function read({ record }: StoredRequest, by: WorkerContext): Promise<Seen | undefined> {
  try {
    return (await readTarget(record.target, by)).seen;
  } catch (error) {
    if (!(error instanceof ComputeError)) throw error;
    return undefined;
  }
}

export function renderLateEffect({ record, state }: StoredRequest, seen: Seen): Message {
  const said = md`🚨 *${record.target.name}* is ${statusOf(seen)}, and no request explains it.`;
  const second = state === "done" ? md`, after the resend was done` : md``;
  return message(
    news(said),
    section(
      lines(
        said,
        md`The first call of ${name(record.id)} got no clear answer, so Gatehouse resent it. The first call seems to take effect only now${second}: the same change, with one more interruption. No action is needed.`,
      ),
    ),
  );
}
