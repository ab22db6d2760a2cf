import { ownerOf } from "../permit/refusal.ts";
import type { RequestIn, StoredRequest } from "../request/stored-request.ts";
import { pollKeyOf } from "../request/record.ts";
import { teamChange, underNewPolicy } from "./gate.ts";
import { endUnsent } from "./perform.ts";
import { returnLeftBehind } from "./send.ts";
import { claimId } from "./step.ts";
import type { WorkerContext } from "./worker-context.ts";

const page = 200;

/**
 * Moves open requests on after a deadline, a new policy, or the death of a worker, and keeps them
 * pending. It is idempotent, because it never sends.
 */
export async function sweep(worker: WorkerContext): Promise<{ open: number }> {
  const ids = await worker.store.openIds();
  const waiting: Waiting = { steps: new Set(), pollKeys: new Set() };
  const sending = new Set<string>();
  for (let start = 0; start < ids.length; start += page) {
    for (const request of await worker.store.latest(ids.slice(start, start + page))) {
      if (request.state === "sending") sending.add(claimId(request));
      // A request that throws must not keep the others from being found.
      await sweepOne(request, waiting, worker).catch((error: unknown) =>
        worker.log.error("request.sweep-failed", { request: request.record.id, error }),
      );
    }
  }
  for (const claim of worker.sendingSince.keys())
    if (!sending.has(claim)) worker.sendingSince.delete(claim);
  await worker.store.steps.restore([...waiting.steps]);
  await worker.polls.pending.restore([...waiting.pollKeys]);
  await worker.store.trim();
  return { open: ids.length };
}

/** What must be on the pending list. */
interface Waiting {
  /** IDs of requests. */
  steps: Set<string>;
  pollKeys: Set<string>;
}

async function sweepOne(
  request: StoredRequest,
  { steps, pollKeys }: Waiting,
  worker: WorkerContext,
): Promise<void> {
  const { record } = request;
  switch (request.state) {
    case "authorized":
      return void steps.add(record.id);
    case "sending":
    case "unclear":
      if (await returnLeftBehind(request, worker)) return;
      pollKeys.add(pollKeyOf(record));
      if (request.state === "sending") steps.add(record.id);
      return;
    case "accepted":
      return void pollKeys.add(pollKeyOf(record));
    case "draft":
      return expireUnanswered(request, worker);
    case "unknown":
      return remind(request, worker);
    default:
      return;
  }
}

/**
 * Reminds people of an unknown outcome, which only a person resolves. Someone who can't tell yet
 * puts the reminders off, and is asked again once.
 */
async function remind(request: RequestIn<"unknown">, worker: WorkerContext): Promise<void> {
  const { asksAgainAt, ...kept } = request.stage;
  const { since, reminders, remindersOver } = kept;
  const now = await worker.store.now();
  const over = worker.policy.timing.remindersMs.filter((after) => now - since >= after).length;
  const due = asksAgainAt === undefined ? over - remindersOver : Number(now >= asksAgainAt);
  if (due <= 0) return;
  const to = { ...kept, reminders: reminders + due, remindersOver: over };
  await worker.store.move(request, { to, why: "still unknown" });
}

/**
 * Reminds approvers once after half of the time, and ends a request that nobody answered. An
 * expired request is final, so a retry is a new one.
 */
async function expireUnanswered(request: RequestIn<"draft">, worker: WorkerContext): Promise<void> {
  const { approval, policyVersion } = request.record;
  const isOther = policyVersion !== worker.policyVersion;
  if (isOther && (await worker.store.isPolicyInForce(worker.policyVersion))) {
    const why = "the policy changed while this waited for approval";
    return void (await endUnsent(
      request,
      { state: "cancelled", why, hint: underNewPolicy },
      worker,
    ));
  }
  const { target } = request.record;
  const { id } = ownerOf(target);
  const called = id === "" ? undefined : await worker.projectName(id);
  const elsewhere = teamChange(target, called, worker.policy);
  if (elsewhere !== undefined) {
    const hint = "Request again.";
    return void (await endUnsent(request, { state: "cancelled", why: elsewhere, hint }, worker));
  }
  const now = await worker.store.now();
  if (approval && approval.expiresAt > now) {
    const { remindsAt = approval.expiresAt } = approval;
    if (request.stage.isHalfWay || remindsAt > now) return;
    const why = "half of the time for approvals has passed";
    await worker.store.move(request, { to: { state: "draft", isHalfWay: true }, why });
    return;
  }
  const why =
    request.votes.length > 0 ? "too few approved it in time" : "nobody approved it in time";
  await endUnsent(request, { state: "expired", why }, worker);
}
