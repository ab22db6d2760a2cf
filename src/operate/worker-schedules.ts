import { createAlarms } from "../digests/alarms.ts";
import { createDigests, createPostDue } from "../digests/create-digests.ts";
import { requestsForDigest } from "../digests/request-facts.ts";
import { cronOf, scheduleName } from "../digests/schedules.ts";
import { createMonitor } from "../monitor/monitor.ts";
import { statusProbe } from "../monitor/status-probe.ts";
import { placesOf } from "../policy/access.ts";
import { type Schedule, startSchedules } from "../queue/schedules.ts";
import { requestable } from "../registry/define.ts";
import { redraw } from "../requests/journal/journal.ts";
import type { Services } from "./services.ts";
import { announceHead } from "./trail.ts";

/** How long one process has a digest to itself, in the longest calls to the service: usually a minute. */
const leaseInCalls = 4;
/** Digests that were missed are looked for this often (ms). */
const missedEveryMs = 60_000;
/** How often the head of the audit trail is announced where it wasn't today (ms). */
const headEveryMs = 600_000;
/** The compute service is read again so soon after a failure (ms). */
const readAgainMs = 10_000;
/** How long what runs may go on while the process stops. */
const endMs = 1_500;

/** What one worker does for all: reads the fleet, watches it, posts digests, announces the audit trail's head. */
export async function startWorkerSchedules(on: Services): Promise<void> {
  const { redis, key, config, opened, announce, inventory, log } = on;
  const { timing } = config.policy;
  const now = Date.now;
  const requests = requestsForDigest(on.store, redis, key, requestable(on.commands));
  const personName = async (id: string) =>
    (await on.people.person(id, on.identity.known().teamId)).name;
  const digests = createDigests({
    ...on,
    parts: on.features.digestParts,
    requests,
    personName,
    now,
  });
  const alarms = createAlarms({ config, announce });
  const postDue = createPostDue({
    ...on,
    digests,
    alarm: (channelId, id, message) =>
      alarms.tell(id, message, placesOf(config.policy, channelId)[0] ?? ""),
    now,
    leaseMs: leaseInCalls * timing.httpTimeoutMs,
  });
  const watching = { ...on, alarms, follow: on.subscriptions.follow, now };
  const monitor = createMonitor([
    statusProbe({
      ...watching,
      requests,
      records: digests.statuses,
      readEveryMs: timing.inventoryRefreshMs,
      // Cards that wait for approval say that the status is another one by now
      async onMoved(vms) {
        for (const vm of vms) await redraw(await on.askingAbout({ kind: "vm", ...vm }), on.store);
      },
    }),
  ]);

  async function readFleet(): Promise<void> {
    const isRead = await inventory.refresh();
    await monitor.fleetWasRead();
    if (!isRead) throw new Error("the fleet could not be read");
  }

  const fixed: readonly Schedule[] = [
    {
      name: "inventory",
      repeat: { every: timing.inventoryRefreshMs },
      run: readFleet,
      retryAfterMs: Math.min(timing.inventoryRefreshMs, readAgainMs),
    },
    ...monitor.schedules,
    ...on.features.schedules,
    {
      name: "audit-head",
      repeat: { every: headEveryMs },
      run: () => announceHead(on, config.policy.audit?.channel),
    },
    // A digest whose job was removed by hand, or that failed, is late by this at most
    {
      name: "digests-missed",
      repeat: { every: Math.min(missedEveryMs, timing.sweepMs) },
      run: postDue,
    },
  ];

  async function schedules(): Promise<readonly Schedule[]> {
    const rules = await digests.schedules.all();
    const named = new Map(
      rules.map((rule) => [
        scheduleName(rule),
        { repeat: { pattern: cronOf(rule), tz: rule.timezone }, run: postDue },
      ]),
    );
    return [...fixed, ...[...named].map(([name, schedule]) => ({ name, ...schedule }))];
  }

  const running = startSchedules({
    queue: on.queues.schedules,
    connection: await on.connected("worker"),
    prefix: key.prefix,
    heartbeatMs: timing.heartbeatMs,
    syncEveryMs: 6 * timing.sweepMs,
    schedules,
    isCurrent: () => on.policyKeeper.standstill() === undefined,
    log,
  });
  opened({ close: () => running.close(endMs) });
  on.policyKeeper.onChanged(() => void running.sync());
  on.taking.add(running);
  await running.sync();
  // Last, so that it is closed first: a long look must not delay the stop
  opened({ close: async () => on.stopping.abort() });
}
