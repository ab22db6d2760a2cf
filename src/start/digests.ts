import { commands } from "../commands/index.ts";
import { createDigests, createPostDue } from "../digests/create-digests.ts";
import { monitorDrift } from "../digests/drift-monitor.ts";
import { monitorStatuses } from "../digests/status-monitor.ts";
import { createAlarms } from "../digests/watch.ts";
import { placesOf } from "../policy/scope.ts";
import { startRounds } from "../redis/rounds.ts";
import { requestable } from "../registry/define.ts";
import { requestsForDigest } from "../digests/requests.ts";
import type { Services } from "./services.ts";

/** How late a digest may be for its time. */
const dueEveryMs = 5_000;
/** Lease of a digest in longest calls: usually a minute. */
const leaseInCalls = 4;

/** Digests, drift of pinned VMs, unrequested changes. Redis lets one process at a time; each ID is posted once. */
export function startDigests(on: Services): void {
  const { redis, key, log, config, inventory, opened, announce } = on;
  const { timing } = config.policy;
  const now = Date.now;
  const requests = requestsForDigest(on.store, redis, key, requestable(commands));
  const digests = createDigests({ ...on, requests, now });
  const alarms = createAlarms({ config, announce });
  const stopping = new AbortController();
  const postDue = createPostDue({
    ...on,
    digests,
    alarm: (channelId, id, message) =>
      alarms.tell(id, message, placesOf(config.policy, channelId)[0] ?? ""),
    now,
    leaseMs: leaseInCalls * timing.httpTimeoutMs,
  });
  const shared = { redis, key, log, inventory, alarms, follow: on.subscriptions.follow, now };
  const drift = () =>
    monitorDrift({
      ...shared,
      appraiser: on.appraiser,
      pins: config.policy.attestation.pins,
      records: digests.drift,
      everyMs: timing.driftWatchMs,
      signal: stopping.signal,
    });
  const statuses = () =>
    monitorStatuses({
      ...shared,
      requests,
      records: digests.statuses,
      everyMs: timing.inventoryRefreshMs,
    });
  // More often than the interval, so that a dead process's turn is soon retaken
  for (const round of [
    startRounds("digests", Math.min(dueEveryMs, timing.sweepMs), postDue, log),
    startRounds("drift-watch", timing.driftWatchMs / 4, drift, log),
    startRounds("status-watch", timing.inventoryRefreshMs / 2, statuses, log),
  ])
    opened(round);
  // Last, so that it is closed first: a long round must not delay the stop
  opened({ close: async () => stopping.abort() });
}
