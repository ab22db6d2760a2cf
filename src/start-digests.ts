import type { Connected } from "./connect.ts";
import { createDigests } from "./digests/create-digests.ts";
import { watchDrift } from "./digests/drift-watch.ts";
import { createPostDue } from "./digests/post-due.ts";
import { watchStatuses } from "./digests/status-watch.ts";
import { startRounds } from "./rounds.ts";
import type { Message } from "./messages/message.ts";
import { requestsForDigest } from "./requests/for-digest.ts";

/** How late a digest may be for its time. */
const dueEveryMs = 5_000;
/** For how many of the longest calls a digest is left to whoever makes it: a minute, as a rule. */
const leaseInCalls = 4;

/**
 * What is said at set times, or because something changed that nobody asked for: digests, drift of pinned VMs, VMs in
 * trouble. Every process does all of it; Redis lets one at a time, and each thing is told under an id that is told once.
 */
export function startDigests(on: Connected, now: () => number = Date.now): void {
  const { redis, key, log, config, inventory, snapshots, compute, opened, announce, at } = on;
  const { policy } = config;
  const { timing } = policy;
  const requests = requestsForDigest(on.store, redis, key);
  const digests = createDigests({
    redis,
    key,
    policy,
    inventory,
    snapshots,
    requests,
    log,
    now,
    leaseMs: leaseInCalls * timing.httpTimeoutMs,
  });
  const tell = (id: string, message: Message) => on.tell("alerts", id, message);
  const stopping = new AbortController();

  const postDue = createPostDue({ digests, announce, alarm: tell, at, now, log });
  const drift = {
    redis,
    key,
    inventory,
    compute,
    log,
    now,
    tell,
    pins: policy.attestation.pins,
    records: digests.drift,
    everyMs: timing.driftWatchMs,
    signal: stopping.signal,
  };
  const statuses = {
    redis,
    key,
    inventory,
    requests,
    now,
    tell,
    records: digests.statuses,
    everyMs: timing.inventoryRefreshMs,
  };
  // Asked for more often than done: a turn that a process died in is taken up before the next interval
  const rounds = [
    startRounds("digests", Math.min(dueEveryMs, timing.sweepMs), postDue, log),
    startRounds("drift-watch", timing.driftWatchMs / 4, () => watchDrift(drift), log),
    startRounds("status-watch", timing.inventoryRefreshMs / 2, () => watchStatuses(statuses), log),
  ];
  for (const round of rounds) opened(round, (it) => it.close());
  // Last, so that it is closed first: a round that goes through many VMs must not be waited for
  opened(stopping, async (it) => it.abort());
}
