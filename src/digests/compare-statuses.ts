import type { KnownVm } from "../inventory/inventory.ts";
import type { SeenStatuses } from "./status-records.ts";

/** A VM that is now where somebody must know of it. */
export interface StatusChange {
  vm: KnownVm;
  from: string | undefined;
  /** Names this very change, whoever finds it: the VM, its new status, and since when it had the old one. */
  key: string;
}

/**
 * What is different from what was last seen of a project. Without `before` it is seen for the first time, and nothing in it
 * has changed. Pure; `after` is `before` itself when nothing differs.
 */
export function compareStatuses(
  before: SeenStatuses | undefined,
  vms: readonly KnownVm[],
  now: number,
): { after: SeenStatuses; changes: StatusChange[] } {
  const after: Record<string, readonly [string, number]> = {};
  const changes: StatusChange[] = [];
  let differs = before === undefined || Object.keys(before).length !== vms.length;
  for (const vm of vms) {
    const was = before?.[vm.id];
    if (was?.[0] === vm.status) {
      after[vm.id] = was;
      continue;
    }
    differs = true;
    after[vm.id] = [vm.status, now];
    if (before && isTold(was?.[0], vm.status))
      changes.push({ vm, from: was?.[0], key: `${vm.id} ${vm.status} ${was?.[1] ?? 0}` });
  }
  return { after: !differs && before ? before : after, changes };
}

/** One that was made and stands still was never running. */
function isTold(from: string | undefined, to: string): boolean {
  if (to === "ERROR") return true;
  return to === "STOPPED" && from !== undefined && from !== "CREATING";
}
