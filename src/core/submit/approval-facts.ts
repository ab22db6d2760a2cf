import type { Vm } from "../../fleet/compute/compute.ts";
import type { KnownSnapshot } from "../../fleet/inventory/snapshots.ts";
import { duration } from "../../messages/markdown.ts";
import type { Seen } from "../../registry/define.ts";
import { type Approval, statusWhenRequested } from "../request/record.ts";
import { type StoredRequest, sentAtOf } from "../request/stored-request.ts";
import { stateWords, callOf } from "../request/stage.ts";
import { statusOf } from "../request/seen.ts";

export type Evidence = Approval["evidence"];

/**
 * Gathers the facts for approvers as they were read at the request. A fact that tells nothing is
 * left out.
 */
export function gatherApprovalFacts(facts: {
  seen: Seen | undefined;
  vms: readonly Vm[];
  /** The judgment of the VM's evidence now, in words. Undefined where attestation is off. */
  attestation?: string | undefined;
  snapshot?: KnownSnapshot | undefined;
  /** Requests on the same target, newest first. */
  last: readonly StoredRequest[];
  command: string;
  /** The reason why one approval more is required than policy says. */
  raised?: string | undefined;
  /** The values that would be kept. Nothing is interrupted then. */
  prepared?: Evidence | undefined;
  /** The VM that the snapshot was taken of, when it is another one. */
  foreignSnapshotOf?: string | undefined;
}): Evidence {
  const { seen, snapshot, last, prepared = [] } = facts;
  const vm = seen !== undefined && !Array.isArray(seen) && "projectId" in seen ? seen : undefined;
  const measurement = vm?.attestation?.measurement;
  const vms = facts.vms.map(({ name, status }) => `${name} (${status})`).join(", ");
  const isOther = snapshot !== undefined && snapshot.measurement !== measurement;
  const downtime = prepared.length > 0 ? undefined : expectedDowntime(facts.command, last);
  const rows: readonly (readonly [string, string | undefined | false, number?])[] = [
    [statusWhenRequested, seen && statusOf(seen)],
    ["VMs in the project", vms],
    ["Current attestation", facts.attestation],
    [
      "Attestation at snapshot",
      snapshot?.attestation !== facts.attestation && snapshot?.attestation,
    ],
    ["Current measurement", isOther && (measurement ? short(measurement) : "not known")],
    [
      "Measurement at snapshot",
      isOther && (snapshot.measurement ? short(snapshot.measurement) : "not known"),
    ],
    ["🚨 Another VM's snapshot", facts.foreignSnapshotOf && `taken of ${facts.foreignSnapshotOf}`],
    ["One additional approval", facts.raised],
    ...prepared,
    ["Expected downtime", downtime],
  ];
  return [
    ...rows.flatMap(([label, text]) => (text ? [[label, text] as const] : [])),
    ...last.slice(0, 3).map(earlierFact),
  ];
}

function short(measurement: string): string {
  return measurement.length <= 20
    ? measurement
    : `${measurement.slice(0, 8)}…${measurement.slice(-8)}`;
}

/** The median time of earlier runs on this target, in words. */
function expectedDowntime(command: string, last: readonly StoredRequest[]): string | undefined {
  const times = last
    .filter(
      ({ record, state, stage }) =>
        record.command === command && state === "done" && callOf(stage) !== undefined,
    )
    .map((request) => request.changedAt - sentAtOf(request))
    .toSorted((a, b) => a - b);
  const median = times[Math.floor(times.length / 2)];
  return median === undefined ? undefined : `about ${duration(median)}, as in earlier runs`;
}

/**
 * An earlier request, with its time and not its age, because the card stands for as long as the
 * request waits.
 */
function earlierFact({ record, state }: StoredRequest): Evidence[number] {
  const { command, requester, createdAt } = record;
  return ["Earlier request", `${command} by ${requester.name}, ${stateWords(state)}`, createdAt];
}
