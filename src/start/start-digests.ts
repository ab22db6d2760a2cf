import { commands } from "../commands/index.ts";
import { createAlarms } from "../digests/alarms.ts";
import { createDigests, createPostDue } from "../digests/create-digests.ts";
import { monitorDrift } from "../digests/drift-monitor.ts";
import { requestsForDigest } from "../digests/request-facts.ts";
import { monitorStatuses } from "../digests/status-monitor.ts";
import { placesOf } from "../policy/access.ts";
import { startRounds } from "../redis/rounds.ts";
import { takeTurn } from "../redis/turns.ts";
import { requestable } from "../registry/define.ts";
import { redraw } from "../requests/journal/journal.ts";
import type { Services } from "./services.ts";

/** How late a digest may be for its time. */
const dueEveryMs = 5_000;
/** Lease of a digest in longest calls: usually a minute. */
const leaseInCalls = 4;

/** How often alerts are looked for whose source says no more of them (ms). */
const unheardEveryMs = 60_000;

/** Digests, drift of pinned VMs, unrequested changes. Redis lets one process at a time; each ID is posted once. */
export function startDigests(on: Services): void {
  const { redis, key, config, opened, announce } = on;
  const { timing } = config.policy;
  const now = Date.now;
  const requests = requestsForDigest(on.store, redis, key, requestable(commands));
  const personName = async (id: string) =>
    (await on.people.person(id, on.identity.known().teamId)).name;
  const digests = createDigests({ ...on, requests, personName, now });
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
  const watching = { ...on, alarms, follow: on.subscriptions.follow, now };
  const drift = () =>
    monitorDrift({
      ...watching,
      pins: config.policy.attestation.pins,
      records: digests.drift,
      everyMs: timing.driftWatchMs,
      signal: stopping.signal,
    });
  const statuses = () =>
    monitorStatuses({
      ...watching,
      requests,
      records: digests.statuses,
      everyMs: timing.inventoryRefreshMs,
      // Cards that wait for approval say that the status is another one by now
      async onMoved(vms) {
        for (const vm of vms) await redraw(await on.askingAbout({ kind: "vm", ...vm }), on.store);
      },
    });
  // More often than the interval, so that a dead process's turn is soon retaken
  const every = roundsOf(on);
  every(Math.min(dueEveryMs, timing.sweepMs), "digests", postDue);
  every(timing.driftWatchMs / 4, "drift-watch", drift);
  every(timing.inventoryRefreshMs / 2, "status-watch", statuses);
  every(unheardEveryMs, "alerts-unheard", async () => {
    if (await takeTurn(redis, key, "alerts-unheard", unheardEveryMs))
      await on.alerts.endUnheard(config.policy.sources);
  });
  // Last, so that it is closed first: a long round must not delay the stop
  opened({ close: async () => stopping.abort() });
}

export const roundsOf =
  ({ opened, log }: Services) =>
  (everyMs: number, name: string, act: () => Promise<unknown>) =>
    opened(startRounds(name, everyMs, act, log));
