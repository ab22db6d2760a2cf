import { ComputeError } from "../compute/errors.ts";
import { nextPollDelay } from "../compute/settle.ts";
import type { Seen } from "../registry/define.ts";
import { parseInput } from "../registry/parse.ts";
import { readTarget } from "./gate.ts";
import { judge } from "./judge.ts";
import { ended, type Next, type Performing, waitFor } from "./performing.ts";
import type { StoredRequest } from "./record.ts";

/**
 * One poll for everybody who waits under one key: all VMs of a project share a read of its list. Requests that wait
 * cost no worker's time and no memory between polls: who waits stands in Redis.
 */
export async function watch(watchKey: string, polls: number, by: Performing): Promise<Next> {
  const waiting = (await by.store.getMany(await by.store.watchedIds(watchKey))).filter(
    ({ state, final }) =>
      !final && (state === "sending" || state === "accepted" || state === "unclear"),
  );
  if (waiting.length === 0) return ended;
  const early = earlyMs(waiting, await by.store.now(), by.policy.timing.pollFirstMs);
  if (early > 0) return waitFor(early);
  let read: (request: StoredRequest) => { seen: Seen | undefined } | undefined;
  try {
    read = await readFor(watchKey, waiting, by);
  } catch (error) {
    if (!(error instanceof ComputeError)) throw error;
    // No read, no verdict: but who waits must not wait for ever
    await giveUpLate(waiting, by);
    return waitFor(error.retryAfterMs ?? by.policy.timing.pollMostMs);
  }
  const at = await by.store.now();
  let youngest = 0;
  let left = 0;
  for (const request of waiting) {
    const found = read(request);
    if (found && (await judgeOne(request, found.seen, at, by))) continue;
    left++;
    youngest = Math.max(youngest, request.progress.sentAt ?? at);
  }
  await by.at("watch", watchKey);
  if (left === 0) return ended;
  const { pollFirstMs, pollMostMs } = by.policy.timing;
  return waitFor(
    nextPollDelay({
      firstMs: pollFirstMs,
      mostMs: pollMostMs,
      sinceStartMs: Math.max(0, at - youngest),
      polls,
    }),
  );
}

/** As many as this wait between looks like one that is alone between its first polls. */
const crowd = 50;

/**
 * How much too early it is to look again. Each send and each answer rings for a look, because a short REBOOTING is a
 * restart's only proof; of many at once the rings would be as many polls. The more wait together, the longer none of
 * them is looked at twice, at most the time between first polls. Who waits alone is looked at whenever it rings.
 */
function earlyMs(waiting: readonly StoredRequest[], now: number, pollFirstMs: number): number {
  if (waiting.length === 1) return 0;
  const lookedAt = Math.max(0, ...waiting.map(({ progress }) => progress.lastLook?.at ?? 0));
  return lookedAt + pollFirstMs * Math.min(1, waiting.length / crowd) - now;
}

/** True when the request moved on and no longer waits here. */
async function judgeOne(
  request: StoredRequest,
  seen: Seen | undefined,
  at: number,
  by: Performing,
): Promise<boolean> {
  const command = by.commands.find(({ name }) => name === request.record.command);
  if (!command) return false;
  const { blindSince: _over, ...progress } = request.progress;
  const verdict = judge({
    state: request.state as "sending" | "accepted" | "unclear",
    progress,
    effect: command.effect as never,
    args: parseInput(command, request.record.input),
    seen,
    at,
    timing: by.policy.timing,
  });
  const moved = await by.store.move(request, {
    state: verdict.state,
    progress: verdict.progress,
    ...(verdict.why ? { why: verdict.why } : {}),
  });
  // Changed by its sender meanwhile: the next poll sees it as it is then
  if (moved.is !== "moved") return false;
  return !["sending", "accepted", "unclear"].includes(verdict.state);
}

/** Reads what these requests wait for: one VM alone, or the list of its project for several. */
async function readFor(
  watchKey: string,
  waiting: readonly StoredRequest[],
  by: Performing,
): Promise<(request: StoredRequest) => { seen: Seen | undefined } | undefined> {
  const targets = new Set(waiting.map(({ record }) => record.target.id));
  const [first] = waiting;
  if (!watchKey.startsWith("vms/") || targets.size === 1) {
    const { seen } = await readTarget((first as StoredRequest).record.target, by);
    return () => ({ seen });
  }
  const vms = new Map(
    (await by.compute.projects.vms(watchKey.slice("vms/".length))).map((vm) => [vm.id, vm]),
  );
  return ({ record }) => ({ seen: vms.get(record.target.id) });
}

/** One failed read proves nothing, however late it is: only being unable to look for a whole time of quiet does. */
async function giveUpLate(waiting: readonly StoredRequest[], by: Performing): Promise<void> {
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
    const why = "the service can't be read";
    const next = state === "accepted" ? "unclear" : "unknown";
    await by.store.move(request, {
      state: next,
      progress: { ...progress, why, unknownSince: now },
      why,
    });
  }
}
