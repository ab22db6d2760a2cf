import { duration } from "../messages/text.ts";
import type { KnownSnapshot } from "../inventory/snapshots.ts";
import type { Vm } from "../compute/compute.ts";
import type { Seen } from "../registry/define.ts";
import { statusOf } from "./judge.ts";
import type { StoredRequest } from "./record.ts";

export type Evidence = readonly (readonly [label: string, text: string])[];

/** What an approver should know, in one look: facts only, each as it was read when it was asked. */
export function gatherEvidence(facts: {
  seen: Seen | undefined;
  vms: readonly Vm[];
  snapshot?: KnownSnapshot | undefined;
  /** Requests on the same target, newest first. */
  last: readonly StoredRequest[];
  command: string;
  now: number;
  /** What asks for more approvals than policy alone, in words. */
  raised?: string | undefined;
  /** The snapshot is known to be of another VM. */
  foreignSnapshotOf?: string | undefined;
}): Evidence {
  const { seen, snapshot, last, now } = facts;
  const vm = seen !== undefined && !Array.isArray(seen) && "projectId" in seen ? seen : undefined;
  const measurement = vm?.attestation?.measurement;
  const rows: (readonly [string, string] | undefined)[] = [
    ["State now", seen === undefined ? "not read" : statusOf(seen)],
    facts.vms.length > 0
      ? ["VMs in it", facts.vms.map(({ name, status }) => `${name} (${status})`).join(", ")]
      : undefined,
    snapshot && [
      "Snapshot",
      `${snapshot.name || snapshot.id}, ${duration(Math.max(0, now - snapshot.at))} old`,
    ],
    measurement ? ["Measurement now", short(measurement)] : undefined,
    snapshot
      ? [
          "Measurement then",
          snapshot.measurement === undefined
            ? "not known"
            : `${short(snapshot.measurement)}${measurement && snapshot.measurement !== measurement ? " — another one" : ""}`,
        ]
      : undefined,
    facts.foreignSnapshotOf
      ? ["🚨 Another VM's snapshot", `known as one of ${facts.foreignSnapshotOf}`]
      : undefined,
    facts.raised ? ["One approval more", facts.raised] : undefined,
    ["Expected downtime", expectedDowntime(facts.command, last)],
    ["Last on it", lastWords(last, now)],
  ];
  return rows.filter((row) => row !== undefined);
}

function short(measurement: string): string {
  return measurement.length <= 20
    ? measurement
    : `${measurement.slice(0, 8)}…${measurement.slice(-8)}`;
}

/** The median of how long the same took here before. */
function expectedDowntime(command: string, last: readonly StoredRequest[]): string {
  const times = last
    .filter(
      ({ record, state, progress }) =>
        record.command === command && state === "done" && progress.sentAt !== undefined,
    )
    .map(({ changedAt, progress }) => changedAt - (progress.sentAt ?? changedAt))
    .toSorted((a, b) => a - b);
  const median = times[Math.floor(times.length / 2)];
  return median === undefined
    ? "not known: it was not done here before"
    : `about ${duration(median)}, as before`;
}

function lastWords(last: readonly StoredRequest[], now: number): string {
  if (last.length === 0) return "nothing from Slack";
  return last
    .slice(0, 5)
    .map(
      ({ record, state }) =>
        `${record.command} by ${record.requester.name} ${duration(Math.max(0, now - record.createdAt))} ago: ${state}`,
    )
    .join("; ");
}
