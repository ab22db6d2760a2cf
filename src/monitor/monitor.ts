import { isDeepStrictEqual } from "node:util";
import type { Alarms } from "./alarms.ts";
import type { KnownRecords } from "./known-records.ts";
import type { Schedule } from "../queue/schedules.ts";
import type { Follow } from "./news.ts";

/**
 * What the monitor looks at. Its probes:
 *
 *     statuses       VMs that change without a request       one worker, whenever the fleet was read
 *     drift          pinned VMs whose attestation changes    one worker, each `timing.driftWatch`, and whoever attests a VM
 *     dependencies   calls to Slack, Redis, and the service  each process by its own clock; Redis merges what they saw
 *
 * The first two are of this kind. Dependencies are watched where nothing can be read or written (decision 136).
 */
export interface Probe<Known, Change> {
  name: string;
  /** Its own schedule. Without one it runs whenever the fleet was read. */
  every?: { ms: number; retryAfterMs: number };
  /** What is known, for all processes. */
  records: Pick<KnownRecords<Known>, "readRecords" | "writeRecords">;
  /** Undefined where there is nothing new to compare. */
  observe(): Promise<Observation<Known, Change> | undefined>;
  /** At least once for each change, under an ID made of what was known before it. */
  tell(changes: readonly Change[]): Promise<void>;
}

/** What a probe sees now. */
export interface Observation<Known, Change> {
  /** Those to compare; by default all that are known. */
  ids?: readonly string[];
  /** Pure. `after` has the records that are new or differ. */
  compare(before: ReadonlyMap<string, Known>): {
    after: ReadonlyMap<string, Known>;
    changes: readonly Change[];
  };
  /** Called once everything was told and remembered. */
  remembered?(): Promise<void>;
}

/** What probes tell with. */
export interface Telling {
  alarms: Alarms;
  /** Tells the channels that are subscribed. */
  follow: Follow;
}

/**
 * One run of a probe: compares what is seen with what was known, tells what changed, and remembers it. In this order: a process
 * that dies in between leaves the same comparison to the next run, whose news have the same IDs and are posted once.
 */
export async function runProbe<Known, Change>(
  probe: Pick<Probe<Known, Change>, "records" | "observe" | "tell">,
): Promise<void> {
  const observation = await probe.observe();
  if (!observation) return;
  const before = await probe.records.readRecords(observation.ids);
  const { after, changes } = observation.compare(before);
  await probe.tell(changes);
  // Another process may have written the others meanwhile
  const differing = [...after].filter(([id, record]) => !isDeepStrictEqual(record, before.get(id)));
  await probe.records.writeRecords(new Map(differing));
  await observation.remembered?.();
}

/** The monitor of one installation: whichever worker is free runs its probes. */
export function createMonitor(probes: readonly Probe<unknown, unknown>[]) {
  return {
    /** Of probes with a period of their own. */
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
