import type { Specs, Vm } from "../../compute/compute.ts";
import { isSettledVmStatus } from "../../compute/settle.ts";
import type { Refusal } from "../../registry/define.ts";

/** A mark of change that moved since `before`, where the service gives one (it isn't documented). */
export function hasMoved(now: Vm | undefined, before: Vm | undefined): boolean {
  return (
    now?.updatedAt !== undefined &&
    before?.updatedAt !== undefined &&
    now.updatedAt !== before.updatedAt
  );
}

/** The same as before, and known to be: the service gives a mark, and it did not move. */
export function isUnmoved(now: Vm | undefined, before: Vm | undefined): boolean {
  return now?.updatedAt !== undefined && now.updatedAt === before?.updatedAt;
}

/** A status that a later version of the service may have: shown as it is, and nothing is sent on top of it. */
export function unknownStatus(vm: Vm): Refusal | undefined {
  const isKnown =
    isSettledVmStatus(vm.status) || ["CREATING", "REBOOTING", "DELETING"].includes(vm.status);
  if (isKnown) return undefined;
  return {
    text: `${vm.name} is ${vm.status}, which I don't know.`,
    hint: "Nothing was sent. Look at it in the service's own console.",
  };
}

/** Refuses but in these statuses. CREATING and REBOOTING pass: the gate waits them out. DELETING leads nowhere. */
export function onlyIn(
  vm: Vm,
  statuses: readonly string[],
  otherwise: Refusal,
): Refusal | undefined {
  const odd = unknownStatus(vm);
  if (odd) return odd;
  if (vm.status === "DELETING") return { text: `${vm.name} is being deleted.` };
  return isSettledVmStatus(vm.status) && !statuses.includes(vm.status) ? otherwise : undefined;
}

/** Whether these specs stand. What wasn't asked for doesn't count. */
export function hasSpecs(vm: Vm | undefined, wanted: Specs): boolean {
  const { cpu, memory } = vm?.specs ?? {};
  return (
    (wanted.cpu === undefined || cpu === wanted.cpu) &&
    (wanted.memory === undefined || memory === wanted.memory)
  );
}
