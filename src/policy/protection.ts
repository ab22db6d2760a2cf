import type { Policy } from "../policy-file.ts";
import type { Target } from "../registry/target.ts";
import { dottedName, matchingTarget } from "./matches.ts";

/**
 * What `protect` keeps from happening: restore, delete, stop and resize. Updating a project is among them because it
 * changes specs, and because a new name would take the protection away.
 */
const kept: ReadonlySet<string> = new Set([
  "vm.restore",
  "vm.stop",
  "vm.resize",
  "project.delete",
  "project.update",
]);

export interface Protection {
  target: Target;
  /** The name that is protected, a VM's where a project holds it. */
  name: string;
  /** Undefined when it can't be told what the project holds: that is a no as well. */
  glob: string | undefined;
}

/**
 * Why a target must not be touched by this command. A project goes with all its VMs, so deleting it takes their names:
 * without them nothing can be promised, and it counts as protected.
 */
export function protection(
  policy: Policy,
  command: { name: string },
  targets: readonly Target[],
  vmNames?: readonly string[],
): Protection | undefined {
  const operation = dottedName(command);
  if (policy.protect.length === 0 || !kept.has(operation)) return undefined;
  for (const target of targets) {
    const own = matchingTarget(policy.protect, target);
    if (own) return { target, ...own };
    const takesVms = operation === "project.delete";
    for (const name of takesVms ? (vmNames ?? []) : []) {
      const inside = matchingTarget(policy.protect, {
        ...target,
        kind: "vm",
        name,
        projectName: target.name,
      });
      if (inside) return { target, ...inside };
    }
    if (takesVms && vmNames === undefined) return { target, name: target.name, glob: undefined };
  }
  return undefined;
}
