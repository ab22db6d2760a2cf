import { isDeepStrictEqual } from "node:util";
import type { Alarms } from "./alarms.ts";
import type { KnownRecords } from "./known-records.ts";
import type { Schedule } from "../queue/schedules.ts";
import type { Follow } from "./news.ts";

/**
 * The monitor runs probes:
 *
 *     statuses       VMs that change without a request       one worker, whenever the fleet was read
 *     drift          pinned VMs whose attestation changes    one worker, each `timing.driftWatch`, and whoever attests a VM
 *     dependencies   calls to Slack, Redis, and the service  each process by its own clock; Redis merges what they saw
 *
 * The first two implement this interface. Dependencies are observed while nothing can be read or
 * written, so they can't (decision 136).
 */
export interface Probe<Known, Change> {
  name: string;
  /** The probe's own interval. Without one it runs whenever the fleet was read. */
  every?: { ms: number; retryAfterMs: number };
  /** The last known records, shared by all processes. */
  records: Pick<KnownRecords<Known>, "readRecords" | "writeRecords">;
  /** Resolves with undefined when there is nothing new to compare. */
  observe(): Promise<Observation<Known, Change> | undefined>;
  /** Called at least once for each change, under an ID derived from what was known before it. */
  reportChanges(changes: readonly Change[]): Promise<void>;
}

/** The state that a probe observes now. */
export interface Observation<Known, Change> {
  /** The IDs to compare, by default all that are known. */
  ids?: readonly string[];
  /** Pure. `after` has the records that are new or differ. */
  compare(before: ReadonlyMap<string, Known>): {
    after: ReadonlyMap<string, Known>;
    changes: readonly Change[];
  };
  /** Called once everything was reported and stored. */
  remembered?(): Promise<void>;
}

/** The ways in which probes report. */
export interface Telling {
  alarms: Alarms;
  /** Tells the channels that are subscribed. */
  follow: Follow;
}

/**
 * Runs a probe once: it compares what is observed with what was known, reports what changed, and
 * stores it. Because of this order, a process that dies in between leaves the same comparison to
 * the next run, whose messages have the same IDs and are posted once.
 */
export async function runProbe<Known, Change>(
  probe: Pick<Probe<Known, Change>, "records" | "observe" | "reportChanges">,
): Promise<void> {
  const observation = await probe.observe();
  if (!observation) return;
  const before = await probe.records.readRecords(observation.ids);
  const { after, changes } = observation.compare(before);
  await probe.reportChanges(changes);
  // Another process may have written the other records meanwhile.
  const differing = [...after].filter(([id, record]) => !isDeepStrictEqual(record, before.get(id)));
  await probe.records.writeRecords(new Map(differing));
  await observation.remembered?.();
}

/** The monitor of one installation. Whichever worker is free runs its probes. */
export function createMonitor(probes: readonly Probe<unknown, unknown>[]) {
  return {
    /** The schedules of probes with an interval of their own. */
    schedules: probes.flatMap((probe): Schedule[] => {
      const { name, every } = probe;
      if (!every) return [];
      const { ms, retryAfterMs } = every;
      return [
        {
          name: `monitor ${name}`,
          repeat: { every: ms },
          run: () => runProbe(probe),
          retryAfterMs,
        },
      ];
    }),
    /** Runs the other probes. */
    async fleetWasRead(): Promise<void> {
      for (const probe of probes) if (!probe.every) await runProbe(probe);
    },
  };
}
