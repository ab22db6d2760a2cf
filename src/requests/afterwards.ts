import type { Vm } from "../compute/compute.ts";
import type { Inventory } from "../inventory/inventory.ts";
import type { Snapshots } from "../inventory/snapshots.ts";
import type { StoredRequest } from "./record.ts";

/**
 * What is remembered of a request that has ended, beyond its journal: snapshots, which the service can't list, and what
 * the inventory should know at once. Called at least once for each; telling the same again changes nothing.
 */
export async function afterwards(
  request: StoredRequest,
  to: { snapshots: Snapshots; inventory: Inventory },
): Promise<void> {
  const { record, progress, state } = request;
  if (state !== "done") return;
  const { after } = progress;
  if (record.command === "vm restore") await rememberTyped(request, to.snapshots);
  if (record.command === "vm snapshot") await rememberSnapshot(request, to.snapshots);
  if (after === undefined) {
    if (record.command === "project delete")
      await to.inventory.note({ goneProjectId: record.target.id });
    return;
  }
  for (const seen of Array.isArray(after) ? after : [after]) {
    await to.inventory.note("projectId" in seen ? { vm: seen } : { project: seen });
  }
}

async function rememberSnapshot(
  { record, progress }: StoredRequest,
  snapshots: Snapshots,
): Promise<void> {
  const before = progress.before as Vm | undefined;
  const measurement = before?.attestation?.measurement;
  const { input, target } = record;
  await snapshots.remember({
    id: progress.answer?.snapshotId ?? "",
    name: typeof input["name"] === "string" ? input["name"] : "",
    vmId: target.id,
    vmName: target.name,
    projectId: target.projectId,
    by: record.requester.id,
    at: progress.sentAt ?? record.createdAt,
    ...(measurement ? { measurement } : {}),
    ...(before?.specs ? { specs: before.specs } : {}),
    ...(record.via === "safety" ? { isSafety: true } : {}),
  });
}

/** An id that was typed by hand and worked is one we know from now on. */
async function rememberTyped({ record }: StoredRequest, snapshots: Snapshots): Promise<void> {
  const { input, target } = record;
  const id = input["snapshot"];
  if (typeof id !== "string" || (await snapshots.ownerOf(id)) !== undefined) return;
  await snapshots.remember({
    id,
    name: "",
    vmId: target.id,
    vmName: target.name,
    projectId: target.projectId,
    by: "",
    at: record.createdAt,
  });
}
