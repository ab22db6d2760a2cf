import type { Vm } from "../compute/compute.ts";
import type { Inventory, KnownVm } from "./inventory.ts";
import type { Known } from "./known.ts";
import { contentsOf } from "./packing.ts";
import type { Replica } from "./replica.ts";

/**
 * Takes over what was just read. A VM of a project that isn't known waits for the next refresh: without the project's
 * name it can't be shown. Never rejects: when Redis is away, this process knows it and the next refresh tells the rest.
 */
export async function takeNote(
  seen: Parameters<Inventory["note"]>[0],
  known: Known,
  replica: Replica,
): Promise<void> {
  const { vm, project, goneVmId, goneProjectId } = seen;
  if (project) {
    await replica.change(project.id, (now) =>
      contentsOf({ ...now?.project, ...project }, now?.vms ?? []),
    );
  }
  if (vm) {
    const before = known.vm(vm.id);
    if (before && before.projectId !== vm.projectId) await dropVm(vm.id, before.projectId, replica);
    await replica.change(
      vm.projectId,
      (now) => now && contentsOf(now.project, merged(vm, now.vms)),
    );
  }
  if (goneVmId !== undefined) {
    const projectId = known.vm(goneVmId)?.projectId;
    if (projectId !== undefined) await dropVm(goneVmId, projectId, replica);
  }
  if (goneProjectId !== undefined) await replica.change(goneProjectId, () => undefined);
}

async function dropVm(vmId: string, projectId: string, replica: Replica): Promise<void> {
  await replica.change(
    projectId,
    (now) =>
      now &&
      contentsOf(
        now.project,
        now.vms.filter(({ id }) => id !== vmId),
      ),
  );
}

/** A record that leaves something out says nothing about it. */
function merged(vm: Vm, vms: readonly KnownVm[]): (KnownVm | Vm)[] {
  const before = vms.find(({ id }) => id === vm.id);
  return before ? vms.map((old) => (old === before ? { ...old, ...vm } : old)) : [...vms, vm];
}
