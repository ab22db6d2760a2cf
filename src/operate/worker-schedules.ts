import { Trail } from "../audit/trail.ts";
import { diagnosis } from "../commands/diagnosis.ts";
import { createAlarms } from "../monitor/alarms.ts";
import { createMonitor } from "../monitor/monitor.ts";
import type { News } from "../monitor/news.ts";
import { statusProbe } from "../monitor/status-probe.ts";
import { type Schedule, startSchedules } from "../queue/schedules.ts";
import { requestable } from "../registry/define.ts";
import { redraw } from "../core/request/journal.ts";
import type { Services } from "./services.ts";
import { announceHead } from "./trail.ts";
import { createStatusRecords } from "../monitor/status-records.ts";

/** How often it is checked whether the head of the audit trail was announced today (ms). */
const headEveryMs = 600_000;
/** How soon the compute service is read again after a failure (ms). */
const readAgainMs = 10_000;
/** How long running tasks may continue while the process stops (ms). */
const endMs = 1_500;

type Process = "config" | "log" | "opened" | "taking" | "policyKeeper" | "stopping" | "clock";
type Stored = "redis" | "key" | "connected" | "queues" | "store";
type Watched =
  | "commands"
  | "compute"
  | "inventory"
  | "askingAbout"
  | "announce"
  | "features"
  | "services";

/** What one worker does for all: reads the fleet, watches it, announces the audit trail's head, and what features do. */
export async function startWorkerSchedules(
  on: Pick<Services, Process | Stored | Watched>,
): Promise<void> {
  const { redis, key, config, opened, announce, inventory, log } = on;
  const { timing } = config.policy;
  const { now } = on.clock;
  const alarms = createAlarms({ config, announce });
  const follow = (news: readonly News[]) => on.features.emit("troubleChanged", news);
  const watching = { ...on, alarms, follow, now };
  const monitor = createMonitor([
    statusProbe({
      ...watching,
      commands: requestable(on.commands),
      records: createStatusRecords(redis, key),
      trail: new Trail(redis, key),
      readEveryMs: timing.inventoryRefreshMs,
      hasWhy: diagnosis.ifAny(on) !== undefined,
      // Cards that wait for approval must say that the status has changed.
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
    {
      name: "audit-head",
      repeat: { every: headEveryMs },
      run: () => announceHead(on, config.policy.audit?.channel),
    },
  ];

  const running = startSchedules({
    queue: on.queues.schedules,
    connection: await on.connected("worker"),
    prefix: key.prefix,
    heartbeatMs: timing.heartbeatMs,
    syncEveryMs: 6 * timing.sweepMs,
    schedules: async () => [...fixed, ...(await on.features.schedules())],
    isCurrent: () => on.policyKeeper.standstill() === undefined,
    log,
  });
  opened({ close: () => running.close(endMs) });
  on.policyKeeper.onChanged(() => void running.sync());
  on.taking.add(running);
  await running.sync();
  // This is opened last, so that it is closed first: a long read must not delay the stop.
  opened({ close: async () => on.stopping.abort() });
}
