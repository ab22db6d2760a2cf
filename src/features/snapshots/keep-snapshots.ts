import type { NamedVm } from "../../attestation/pins.ts";
import type { Vm } from "../../fleet/compute/compute.ts";
import type { KnownSnapshot, Snapshots } from "../../fleet/inventory/snapshots.ts";
import { type Message } from "../../messages/blocks.ts";
import { card } from "../../messages/card.ts";
import { md, name } from "../../messages/markdown.ts";
import type { ChangeCommand } from "../../registry/define.ts";
import type { RequestRecord } from "../../core/request/record.ts";
import { beforeOf, callOf } from "../../core/request/stage.ts";
import { type StoredRequest, sentAtOf } from "../../core/request/stored-request.ts";

/** Remembers the snapshots of a finished request, because the compute service can't list them. */
export async function keepSnapshots(
  request: StoredRequest,
  command: ChangeCommand,
  to: Keeping,
): Promise<void> {
  const { record, stage, state } = request;
  if (state !== "done" || command.on !== "vm") return;
  if (command.snapshot === "restores") await keepTyped(request, to.snapshots);
  if (command.snapshot === "takes") await keepSnapshot(request, to);
  const { claimed } = callOf(stage)?.answer ?? {};
  if (claimed)
    await to.tellAudit(`snapshot-claimed-${record.id}-${claimed.id}`, claimNews(request, claimed));
}

interface Keeping {
  snapshots: Snapshots;
  /** Posts in the audit channel, once per ID. */
  tellAudit(id: string, message: Message): Promise<void>;
  /** The appraisal of the VM's evidence now, as text. */
  attestation(vm: NamedVm): Promise<string | undefined>;
}

/**
 * Asks for someone who can confirm the ID: a snapshot of another team would bring that team's data
 * into this VM.
 */
export function claimNews(
  { record }: StoredRequest,
  { id, by: person }: NonNullable<KnownSnapshot["claimed"]>,
): Message {
  return card({
    title: md`${person} says that the snapshot ${name(record.input["name"])} of ${name(record.target.name)} has the ID ${name(id)}.`,
    lines: [
      md`It can't be restored by its name before someone who sees every VM has checked that: _Confirm its ID_ on the request's card does it.`,
    ],
    meta: [name(record.id)],
  });
}

async function keepSnapshot(request: StoredRequest, to: Keeping): Promise<void> {
  const { record, stage } = request;
  const before = beforeOf(stage) as Vm | undefined;
  const { snapshotId = "", claimed } = callOf(stage)?.answer ?? {};
  const measurement = before?.attestation?.measurement;
  const attestation = measurement ? await to.attestation(record.target) : undefined;
  const { name: called } = record.input;
  await to.snapshots.remember({
    ...vmOfSnapshot(record),
    id: snapshotId,
    name: typeof called === "string" ? called : "",
    by: record.requester.id,
    at: sentAtOf(request),
    ...(measurement ? { measurement } : {}),
    ...(attestation ? { attestation } : {}),
    ...(before?.specs ? { specs: before.specs } : {}),
    ...(record.origin.kind === "safety" ? { isSafety: true } : {}),
    ...(claimed ? { claimed } : {}),
  });
}

/** Remembers a typed ID that could be restored. */
async function keepTyped({ record }: StoredRequest, snapshots: Snapshots): Promise<void> {
  const { snapshot: id } = record.input;
  if (typeof id !== "string" || (await snapshots.ownerOf(id)) !== undefined) return;
  await snapshots.remember({ ...vmOfSnapshot(record), id, name: "", by: "", at: record.createdAt });
}

const vmOfSnapshot = ({ target: { id, name: vmName, projectId } }: RequestRecord) => ({
  vmId: id,
  vmName,
  projectId,
});
