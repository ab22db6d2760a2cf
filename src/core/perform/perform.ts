import { during, workOnRequest } from "../../log/traces.ts";
import { approvalsIn } from "../permit/votes.ts";
import type { PendingWork } from "../../queue/pending-work.ts";
import type { Pending } from "../../redis/pending.ts";
import { isBeforeSetBack, redisTrouble } from "../../redis/redis.ts";
import { type Seen, nounOf, isOpenedByRequester } from "../../registry/define.ts";
import type { Journal } from "../request/journal.ts";
import { hourlyOf, limitWords } from "../request/rate-limits.ts";
import { type StageIn, noReads, noSetbacks, sentWords } from "../request/stage.ts";
import type { RequestIn, StoredRequest } from "../request/stored-request.ts";
import { pollKeyOf } from "../request/record.ts";
import { backoff, jitter } from "./back-off.ts";
import { gate, policyStop } from "./gate.ts";
import { withSafetySnapshot } from "./safety-snapshot.ts";
import { claimAndSend } from "./send.ts";
import {
  type Change,
  type Next,
  type Stop,
  changeOf,
  claimId,
  ended,
  maxStepErrors,
  throttledWhy,
  waitFor,
} from "./step.ts";
import type { WorkerContext } from "./worker-context.ts";
import { lowerFirst, upperFirst } from "../../text/letter-case.ts";

/** A request that may be sent. */
type Waiting = RequestIn<"authorized">;

const noCurrentPolicy = "it waits for a worker that has the current policy";

/** Takes the steps of requests. */
export function stepWork(steps: Pending, contextNow: () => WorkerContext): PendingWork {
  return {
    pending: steps,
    async handle(id, mark) {
      const next = await advance(id, contextNow());
      return steps.release(id, mark, next.kind === "wait" ? next.ms : undefined);
    },
  };
}

/** Advances a request by a step; idempotent, because every step is a compare-and-set. */
export async function advance(id: string, worker: WorkerContext): Promise<Next> {
  const request = await worker.store.get(id);
  if (!request || request.final) return ended;
  return during(workOnRequest(request.record), () =>
    step(request, worker).catch((error: unknown) => stepFailed(request, error, worker)),
  );
}

async function step(request: StoredRequest, worker: WorkerContext): Promise<Next> {
  if (request.state === "authorized") return beginInTurn(request, worker);
  return request.state === "sending" ? recoverFromSender(request, worker) : ended;
}

/**
 * Takes the step of a request when its project has a free place, because a project whose calls hang
 * must not take every slot of the worker.
 */
async function beginInTurn(request: Waiting, worker: WorkerContext): Promise<Next> {
  const { projectId, id, name } = request.record.target;
  const turn = worker.shares.take(projectId || id || name, request.record.id);
  return "waitMs" in turn ? waitFor(turn.waitMs) : begin(request, worker).finally(turn.leave);
}

async function begin(request: Waiting, worker: WorkerContext): Promise<Next> {
  const { store } = worker;
  const [now, frozen, throttledMs] = await Promise.all([
    store.now(),
    store.freezeState(),
    store.throttledMs(),
  ]);
  const { record, stage } = request;
  const { notBefore = 0 } = stage;
  if (notBefore > now && !isBeforeSetBack(request.changedAt, now)) return waitFor(notBefore - now);
  const change = changeOf(record, worker.commands);
  if (runsUntil(request, change, worker) < now) {
    const why = `it did not start in time${stage.why ? `: ${stage.why}` : ""}`;
    const hint = `${sentSentence(stage)} Request again if it is still wanted.`;
    return endUnsent(request, { state: "expired", why, hint }, worker);
  }
  if (frozen) return conclude(request, { kind: "frozen", freeze: frozen }, worker);
  if (worker.standstill() !== undefined)
    return conclude(request, { kind: "later", why: noCurrentPolicy }, worker);
  if (throttledMs > 0) return postpone(request, throttledWhy, throttledMs + jitter(1000), worker);

  if (!change) {
    const why = `this version of Gatehouse does not know ${record.command}`;
    return endUnsent(request, { state: "cancelled", why }, worker);
  }
  if (isOpenedByRequester(change.command)) return untilOpened(request, now, worker);
  await worker.at?.("gate", record.id);
  const decision = await gate(request, change, worker);
  await worker.at?.("gated", record.id);
  if (decision.kind !== "open") return conclude(request, decision, worker);
  const kept = await keepIfKept(request, change, decision.before, worker);
  if (kept) return conclude(request, kept, worker);
  const safe = await withSafetySnapshot(request, change, worker);
  if (safe.kind !== "safe") return conclude(request, safe, worker);
  const hourly = hourlyOf(change.command, record);
  const { limits } = worker.policy;
  if (hourly && !(await store.takeHourlyPlace(hourly, record.id, limits))) {
    const why = lowerFirst(limitWords(hourly, limits[hourly]));
    const hint = `${sentSentence(stage)} Request again later.`;
    return conclude(request, { kind: "closed", why, hint }, worker);
  }
  return conclude(
    request,
    await claimAndSend(request, change, { ...decision, safety: safe.snapshot }, worker),
    worker,
  );
}

/**
 * Returns until when the request may start (Redis, ms). One that was approved waits as long as one that needs no
 * approval, counted from its last approval: its record allows for an approval in the last moment. A
 * request that its requester opens keeps that time, because no worker starts it late.
 */
function runsUntil(
  { record, votes }: Waiting,
  change: Change | undefined,
  { policy }: Pick<WorkerContext, "policy">,
): number {
  const approvedAt = approvalsIn(votes).map(({ at }) => at);
  if (approvedAt.length === 0 || (change && isOpenedByRequester(change.command)))
    return record.runsUntil;
  return Math.min(record.runsUntil, Math.max(...approvedAt) + policy.timing.staleAfterMs);
}

/** Ends or puts off a request that isn't sent now. */
async function conclude(
  request: Waiting,
  stopped: Stop | Next,
  worker: WorkerContext,
): Promise<Next> {
  const { stage } = request;
  switch (stopped.kind) {
    case "already": {
      const why = "already in that state";
      const done = { state: "done", setbacks: stage.setbacks, reads: noReads } as const;
      const to = { ...done, after: stopped.seen, already: true } as const;
      await worker.store.move(request, { to, why });
      return ended;
    }
    case "closed": {
      const { why, hint, instead } = stopped;
      const advice = { ...(hint && { hint }), ...(instead && { instead }) };
      return endUnsent(request, { state: "cancelled", why, ...advice }, worker);
    }
    case "later": {
      // It is asked for often while a safety snapshot is taken, because a person waits for the
      // change that follows.
      const times = stopped.safetyRequest ? 1 : (stage.holds ?? 0);
      return postpone(request, stopped.why, backoff(times, worker.policy.timing), worker, stopped);
    }
    case "frozen": {
      const { by: whom, reason } = stopped.freeze;
      const why = `all changes are frozen by ${whom}${reason ? `: ${reason}` : ""}`;
      const hint = `${sentSentence(stage)} Request again after the thaw.`;
      return endUnsent(request, { state: "cancelled", why, hint, wasFrozen: true }, worker);
    }
    case "locked":
      return waitBehind(request, stopped.holder, worker);
    default:
      return stopped;
  }
}

/** Has a request wait until its requester opens it, or until it expires. No worker opens it. */
async function untilOpened(request: Waiting, now: number, worker: WorkerContext): Promise<Next> {
  const { record, stage } = request;
  const stopped = await policyStop(record, worker);
  if (stopped) return conclude(request, stopped, worker);
  const why = "its requester has not opened it yet";
  if (stage.why !== why) await worker.store.move(request, { to: { ...stage, why }, why });
  return waitFor(record.runsUntil - now + 1);
}

/**
 * Recovers a request whose worker died during the send. The claim has put the request and its
 * first poll on the pending list, so another worker comes here: BullMQ gives it the stalled job
 * after 5 s, or the relay adds one. It waits while the owner may still be sending, until its
 * heartbeat is gone or its time is up by this process's clock. Then the outcome is unclear: reads
 * judge it (`judgeUnclear`), and nothing is sent again. A worker that dies before its claim leaves
 * nothing to recover: the request is still `authorized` and begins anew.
 */
async function recoverFromSender(
  request: RequestIn<"sending">,
  worker: WorkerContext,
): Promise<Next> {
  const { timing } = worker.policy;
  const { owner } = request;
  const claim = claimId(request);
  if (owner === worker.workerId && worker.calling.has(claim)) return waitFor(timing.heartbeatMs);
  // This counts by the process's own clock, because Redis's clock may be set.
  const since = worker.sendingSince.get(claim) ?? performance.now();
  worker.sendingSince.set(claim, since);
  const leftMs = timing.httpTimeoutMs + 2 * timing.claimWindowMs - (performance.now() - since);
  const isGone = owner !== undefined && !(await worker.isAlive(owner));
  if (!isGone && leftMs > 0) return waitFor(Math.min(timing.heartbeatMs, leftMs));
  const why = `the worker that sent it ${isGone ? "is gone" : "does not answer"}`;
  const { call, reads, setbacks } = request.stage;
  const endedCall = { ...call, endedAt: await worker.store.now() };
  const to = { state: "unclear", call: endedCall, reads, setbacks } as const;
  const moved = await worker.store.move(request, { to, why });
  if (moved.kind === "changed") return waitFor(50);
  await worker.polls.pollSoon(pollKeyOf(request.record));
  return ended;
}

async function waitBehind(request: Waiting, holder: string, worker: WorkerContext): Promise<Next> {
  const { pollFirstMs } = worker.policy.timing;
  // Why it waited before no longer counts.
  const { waitsFor, why: _before, ...stage } = request.stage;
  const isSame = waitsFor?.request === holder;
  const other = await worker.store.get(holder);
  const unknown = other?.state === "unknown" ? unknownOf(other, worker) : undefined;
  if (isSame && (unknown === undefined || waitsFor.unknown !== undefined))
    return waitFor(pollFirstMs);
  const facts = other && {
    requesterName: other.record.requester.name,
    command: other.record.command,
    ...(unknown ? { unknown } : {}),
  };
  await worker.store.move(request, {
    to: { ...stage, waitsFor: { request: holder, ...facts } },
    ...(isSame ? {} : { why: `waits for ${holder}, which holds the target` }),
  });
  return waitFor(pollFirstMs);
}

/** Describes the unknown request on the cards of requests that wait for it. */
function unknownOf({ record, stage }: RequestIn<"unknown">, worker: WorkerContext) {
  const command = worker.commands.find(({ name }) => name === record.command);
  return { noun: command ? nounOf(command) : "change", sentAt: stage.call.sentAt };
}

/** Keeps a request waiting in `authorized`. Each new reason goes into the history once. */
async function postpone(
  request: Waiting,
  why: string,
  ms: number,
  worker: WorkerContext,
  { safetyRequest }: { safetyRequest?: string } = {},
): Promise<Next> {
  // It holds the target now, so it waits for no other request.
  const { waitsFor: _holder, ...stage } = request.stage;
  const holds = (stage.holds ?? 0) + 1;
  await worker.store.move(request, {
    to: { ...stage, ...(safetyRequest ? { safetyRequest } : {}), why, holds },
    ...(stage.why === why ? {} : { why }),
  });
  return waitFor(ms);
}

/** Whether anything was sent, as a sentence. */
function sentSentence({ setbacks }: Pick<StageIn<"authorized">, "setbacks">): string {
  return `${upperFirst(sentWords(setbacks))}.`;
}

type Unsent = Omit<StageIn<"expired">, "setbacks"> | Omit<StageIn<"cancelled">, "setbacks">;

/** Ends a request of which nothing was sent. */
export async function endUnsent(
  request: RequestIn<"draft" | "authorized">,
  end: Unsent,
  { store }: { store: Pick<Journal, "move"> },
): Promise<Next> {
  const { stage } = request;
  const setbacks = stage.state === "authorized" ? stage.setbacks : noSetbacks;
  const moved = await store.move(request, { to: { ...end, setbacks }, why: end.why });
  return moved.kind === "changed" ? waitFor(50) : ended;
}

/**
 * Ends a request whose step keeps throwing, so that a person sees it. Errors of Redis don't count,
 * because they say nothing about the request.
 */
async function stepFailed(
  request: StoredRequest,
  error: unknown,
  worker: WorkerContext,
): Promise<Next> {
  if (redisTrouble(error) !== undefined) throw error;
  worker.log.error("request.step-failed", {
    request: request.record.id,
    state: request.state,
    error,
  });
  const fresh = await worker.store.get(request.record.id);
  if (!fresh || fresh.final) return ended;
  // Only these two have steps
  if (fresh.state !== "authorized" && fresh.state !== "sending") return ended;
  const { stage } = fresh;
  const errors = stage.setbacks.errors + 1;
  const setbacks = { ...stage.setbacks, errors };
  if (errors < maxStepErrors) {
    await worker.store.saveFacts(fresh, { ...stage, setbacks });
    return waitFor(backoff(errors, worker.policy.timing));
  }
  const why = "Gatehouse repeatedly fails to process this request";
  if (fresh.state === "authorized") {
    const hint = sentSentence({ setbacks });
    return endUnsent(fresh, { state: "cancelled", why, hint }, worker);
  }
  const { call, reads } = fresh.stage;
  await worker.store.move(fresh, { to: { state: "unclear", call, reads, setbacks, why }, why });
  return ended;
}

/**
 * Handles a command that changes only data of Gatehouse. It checks that the values still are as
 * they were approved, and keeps them in the step that ends the request, so they are kept exactly
 * once, wherever a worker dies. Undefined for a command that is sent to the compute service.
 */
async function keepIfKept(
  request: Waiting,
  { command, args }: Change,
  seen: Seen | undefined,
  worker: WorkerContext,
): Promise<Stop | Next | undefined> {
  if (command.on !== "vm" || !command.keeps) return undefined;
  const { record, stage } = request;
  const prepared = await command.keeps.prepare(record.target, args, worker);
  if (prepared.kind === "later") return { kind: "later", why: prepared.why.text };
  if (prepared.kind === "no")
    return { kind: "closed", why: prepared.why.text, hint: prepared.why.hint };
  if (prepared.values !== record.input["values"])
    return { kind: "closed", why: "it is no longer what was approved", hint: "Request again." };
  const { id, target: vm, requester } = record;
  const values = command.keeps.pin(prepared.values);
  const acceptance =
    values === undefined ? undefined : { values, request: id, vm, by: requester.name };
  const moved = await worker.store.move(request, {
    to: {
      state: "done",
      setbacks: stage.setbacks,
      reads: noReads,
      ...(seen === undefined ? {} : { after: seen }),
    },
    why: "kept",
    keep: { vmId: vm.id, pin: acceptance && worker.appraiser.accepted.vouched(acceptance) },
  });
  await worker.at?.("move", record.id);
  if (moved.kind === "frozen") return moved;
  return moved.kind === "changed" ? waitFor(50) : ended;
}
