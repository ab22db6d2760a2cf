import { parseInput } from "../registry/parse.ts";
import { gate } from "./gate.ts";
import { backoff, ended, jitter, type Next, type Performing, waitFor } from "./performing.ts";
import type { Progress, StoredRequest } from "./record.ts";
import { watchKeyOf } from "./record.ts";
import { wayBack } from "./safety.ts";
import { claimAndSend } from "./send.ts";

/** A bug must not hold a request for ever. */
const mostStepErrors = 5;

/**
 * Brings one request one step further. The queue may call it as often as it likes: every step is a compare-and-set, so
 * calling it twice, or from two workers at once, does nothing twice.
 */
export async function advance(id: string, by: Performing): Promise<Next> {
  const request = await by.store.get(id);
  if (!request || request.final) return ended;
  try {
    switch (request.state) {
      case "authorized":
        return await begin(request, by);
      case "sending":
        return await checkSender(request, by);
      case "accepted":
      case "unclear":
        await by.watch(watchKeyOf(request.record), false);
        return ended;
      default:
        return ended;
    }
  } catch (error) {
    return stepFailed(request, error, by);
  }
}

async function begin(request: StoredRequest, by: Performing): Promise<Next> {
  const { store } = by;
  const { timing } = by.policy;
  const { record, progress } = request;
  const now = await store.now();
  if (progress.notBefore && progress.notBefore > now) return waitFor(progress.notBefore - now);
  if (record.runsUntil < now) {
    const why = progress.why
      ? `it could not begin in time: ${progress.why}`
      : "it could not begin in time";
    return end(request, "expired", why, "Nothing was sent. Ask again if it is still wanted.", by);
  }
  if (progress.reservedFor && progress.reservedFor !== by.workerId) {
    if (await by.isAlive(progress.reservedFor)) return waitFor(2 * timing.heartbeatMs);
    return end(
      request,
      "cancelled",
      "nothing happened, and the worker that may send it again is gone",
      undefined,
      by,
    );
  }
  const frozen = await store.freezeState();
  if (frozen) return stopFrozen(request, frozen, by);
  const throttledMs = await store.throttledMs();
  if (throttledMs > 0)
    return hold(request, "the service asked us to slow down", throttledMs + jitter(1000), by);

  const command = by.commands.find(({ name }) => name === record.command);
  if (!command)
    return end(
      request,
      "cancelled",
      `this version of Gatehouse does not know ${record.command}`,
      undefined,
      by,
    );
  const args: unknown = parseInput(command, record.input);
  await by.at("gate", record.id);
  const verdict = await gate(request, command, args, by);
  await by.at("gated", record.id);
  if (verdict.is === "later")
    return hold(request, verdict.why, backoff(progress.looks ?? 0, timing), by);
  if (verdict.is === "closed") return end(request, "cancelled", verdict.why, verdict.hint, by);
  if (verdict.is === "already") {
    const standing = { ...progress, before: verdict.seen, after: verdict.seen, already: true };
    await store.move(request, {
      state: "done",
      progress: standing,
      why: "it stands that way already",
    });
    return ended;
  }
  const ready = await wayBack(request, command, args, by);
  if (ready.is === "wait") return hold(request, ready.why, backoff(1, timing), by, ready.safety);
  if (ready.is === "no") return end(request, "cancelled", ready.why, ready.hint, by);
  const safe = ready.safety
    ? { ...request, progress: { ...request.progress, safety: ready.safety } }
    : request;
  const sent = await claimAndSend(safe, command, args, verdict, by);
  if (sent.is === "frozen") return stopFrozen(request, sent.freeze, by);
  if (sent.is === "locked") return waitBehind(request, sent.holder, by);
  return sent;
}

/** In `sending`, not by us: while its owner may still be at it, wait; when it can't be any more, look. */
async function checkSender(request: StoredRequest, by: Performing): Promise<Next> {
  const { timing } = by.policy;
  const now = await by.store.now();
  const sentFor = now - (request.progress.sentAt ?? request.changedAt);
  const longest = timing.httpTimeoutMs + 2 * timing.claimWindowMs;
  const isGone = request.owner !== undefined && !(await by.isAlive(request.owner));
  if (!isGone && sentFor < longest) return waitFor(Math.min(timing.heartbeatMs, longest - sentFor));
  const why = isGone
    ? "the worker that sent it is gone"
    : "the worker that sent it does not answer";
  const moved = await by.store.move(request, { state: "unclear", progress: request.progress, why });
  if (moved.is === "changed") return waitFor(50);
  await by.watch(watchKeyOf(request.record), true);
  return ended;
}

function stopFrozen(
  request: StoredRequest,
  freeze: { by: string; reason: string },
  by: Performing,
): Promise<Next> {
  const reason = freeze.reason ? `: ${freeze.reason}` : "";
  return end(
    request,
    "cancelled",
    `all changes are frozen by ${freeze.by}${reason}`,
    "Nothing was sent. Ask again after the thaw.",
    by,
  );
}

async function waitBehind(request: StoredRequest, holder: string, by: Performing): Promise<Next> {
  const { pollFirstMs } = by.policy.timing;
  if (request.progress.waitsFor?.request === holder) return waitFor(pollFirstMs);
  const other = await by.store.get(holder);
  const asker = other
    ? { requesterName: other.record.requester.name, command: other.record.command }
    : {};
  await by.store.move(request, {
    state: "authorized",
    progress: { ...request.progress, waitsFor: { request: holder, ...asker } },
    why: `waits for ${holder}, which holds the target`,
  });
  return waitFor(pollFirstMs);
}

/** Waits where it is; the person is told a reason once. */
async function hold(
  request: StoredRequest,
  why: string,
  ms: number,
  by: Performing,
  safety?: Progress["safety"],
): Promise<Next> {
  const isNews = request.progress.why !== why;
  await by.store.move(request, {
    state: "authorized",
    progress: {
      ...request.progress,
      ...(safety ? { safety } : {}),
      why,
      looks: (request.progress.looks ?? 0) + 1,
    },
    ...(isNews ? { why } : {}),
  });
  return waitFor(ms);
}

async function end(
  request: StoredRequest,
  state: "expired" | "cancelled",
  why: string,
  hint: string | undefined,
  by: Performing,
): Promise<Next> {
  const moved = await by.store.move(request, {
    state,
    progress: { ...request.progress, why, ...(hint ? { hint } : {}) },
    why,
  });
  return moved.is === "changed" ? waitFor(50) : ended;
}

/** After a few tries a request whose step keeps throwing ends where a person sees it. */
async function stepFailed(request: StoredRequest, error: unknown, by: Performing): Promise<Next> {
  by.log.error("request.step-failed", { request: request.record.id, state: request.state, error });
  const fresh = await by.store.get(request.record.id);
  if (!fresh || fresh.final) return ended;
  const stepErrors = (fresh.progress.stepErrors ?? 0) + 1;
  const progress = { ...fresh.progress, stepErrors };
  if (stepErrors < mostStepErrors) {
    await by.store.move(fresh, { state: fresh.state, progress });
    return waitFor(backoff(stepErrors, by.policy.timing));
  }
  const why = "something in Gatehouse keeps failing on this request";
  if (fresh.state === "authorized")
    return end({ ...fresh, progress }, "cancelled", why, "Nothing was sent.", by);
  if (fresh.state === "sending") await by.store.move(fresh, { state: "unclear", progress, why });
  return ended;
}
