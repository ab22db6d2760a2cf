import { duration } from "../../messages/text.ts";
import type { KnownSnapshot } from "../../inventory/snapshots.ts";
import type { Vm } from "../../compute/compute.ts";
import type { Seen } from "../../registry/define.ts";
import { type StoredRequest, statusOf, stateWords } from "../journal/record.ts";

export type Evidence = readonly (readonly [label: string, text: string])[];

/** Facts for approvers, as read at the request. */
export function gatherApprovalFacts(facts: {
  seen: Seen | undefined;
  vms: readonly Vm[];
  /** What Gatehouse makes of the VM's evidence now, in words; undefined where attestation is off. */
  attestation?: string | undefined;
  snapshot?: KnownSnapshot | undefined;
  /** Requests on the same target, newest first. */
  last: readonly StoredRequest[];
  command: string;
  now: number;
  /** Why one approval more is required than policy says. */
  raised?: string | undefined;
  /** What would be kept; then nothing is interrupted. */
  prepared?: Evidence | undefined;
  /** The VM whose snapshot it is, when that is another one. */
  foreignSnapshotOf?: string | undefined;
}): Evidence {
  const { seen, snapshot, last, now, prepared = [] } = facts;
  const vm = seen !== undefined && !Array.isArray(seen) && "projectId" in seen ? seen : undefined;
  const measurement = vm?.attestation?.measurement;
  const rows: (readonly [string, string] | undefined)[] = [
    ["Status when requested", seen === undefined ? "not read" : statusOf(seen)],
    facts.vms.length > 0
      ? [
          "VMs in the project",
          facts.vms.map(({ name, status }) => `${name} (${status})`).join(", "),
        ]
      : undefined,
    snapshot && ["Age of the snapshot", duration(Math.max(0, now - snapshot.at))],
    facts.attestation ? ["Current attestation", facts.attestation] : undefined,
    snapshot?.attestation ? ["Attestation at snapshot", snapshot.attestation] : undefined,
    measurement ? ["Current measurement", short(measurement)] : undefined,
    snapshot && [
      "Measurement at snapshot",
      snapshot.measurement === undefined
        ? "not known"
        : `${short(snapshot.measurement)}${measurement && snapshot.measurement !== measurement ? " (differs)" : ""}`,
    ],
    facts.foreignSnapshotOf
      ? ["🚨 Another VM's snapshot", `taken of ${facts.foreignSnapshotOf}`]
      : undefined,
    facts.raised ? ["One additional approval", facts.raised] : undefined,
    ...prepared,
    prepared.length > 0 ? undefined : ["Expected downtime", expectedDowntime(facts.command, last)],
    ["Recent requests", lastWords(last, now)],
  ];
  return rows.filter((row) => row !== undefined);
}

function short(measurement: string): string {
  return measurement.length <= 20
    ? measurement
    : `${measurement.slice(0, 8)}…${measurement.slice(-8)}`;
}

/** The median of earlier runs on this target. */
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
    ? "not known: no earlier run on this target"
    : `about ${duration(median)}, as in earlier runs`;
}

function lastWords(last: readonly StoredRequest[], now: number): string {
  if (last.length === 0) return "none";
  return last
    .slice(0, 5)
    .map(
      ({ record, state }) =>
        `${record.command} by ${record.requester.name} ${duration(Math.max(0, now - record.createdAt))} ago: ${stateWords(state)}`,
    )
    .join("; ");
}
