import { commands } from "../commands/index.ts";
import type { Services } from "./services.ts";
import { createAlarms } from "../digests/watch.ts";
import { createDigests } from "../digests/create-digests.ts";
import { monitorDrift } from "../digests/drift-monitor.ts";
import { createPostDue } from "../digests/post-due.ts";
import { monitorStatuses } from "../digests/status-monitor.ts";
import { startRounds } from "../redis/rounds.ts";
import { requestable } from "../registry/define.ts";
import { requestsForDigest } from "../requests/for-digest.ts";

/** How late a digest may be for its time. */
const dueEveryMs = 5_000;
/** Lease of a digest in longest calls: usually a minute. */
const leaseInCalls = 4;

/** Digests, drift of pinned VMs, unrequested changes. Redis lets one process at a time; each ID is posted once. */
export function startDigests(on: Services): void {
  const { redis, key, log, config, inventory, snapshots, opened, announce, at } = on;
  const { timing } = config.policy;
  const now = Date.now;
  const requests = requestsForDigest(on.store, redis, key, requestable(commands));
  const digests = createDigests({
    redis,
    key,
    get policy() {
      return config.policy;
    },
    inventory,
    snapshots,
    requests,
    log,
    now,
    leaseMs: leaseInCalls * timing.httpTimeoutMs,
  });
  const alarms = createAlarms({
    get policy() {
      return config.policy;
    },
    announce,
  });
  const { follow } = on.subscriptions;
  const stopping = new AbortController();

  const postDue = createPostDue({ digests, announce, alarm: alarms.tellOf, at, now, log });
  const drift = {
    redis,
    key,
    inventory,
    appraiser: on.appraiser,
    log,
    now,
    alarms,
    follow,
    get pins() {
      return config.policy.attestation.pins;
    },
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
    alarms,
    follow,
    records: digests.statuses,
    everyMs: timing.inventoryRefreshMs,
  };
  // More often than the interval, so that a dead process's turn is soon retaken
  const rounds = [
    startRounds("digests", Math.min(dueEveryMs, timing.sweepMs), postDue, log),
    startRounds("drift-watch", timing.driftWatchMs / 4, () => monitorDrift(drift), log),
    startRounds(
      "status-watch",
      timing.inventoryRefreshMs / 2,
      () => monitorStatuses(statuses),
      log,
    ),
  ];
  for (const round of rounds) opened(round);
  // Last, so that it is closed first: a long round must not delay the stop
  opened({ close: async () => stopping.abort() });
}
