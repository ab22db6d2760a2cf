import type { Policy } from "../../config/policy-file.ts";
import type { Inventory, KnownVm, Scope } from "../../fleet/inventory/inventory.ts";
import type { Target } from "../../registry/define.ts";
import { policyPlaceOf, seesUnder } from "./access.ts";
import { compileTargetGlobs, ownerOf } from "./refusal.ts";

/** A target as far as it must be known to decide whether it is shown. */
export type SeenTarget = Pick<Target, "kind" | "id" | "name" | "projectId" | "projectName">;

/** Limits a digest or a night to the VMs and projects that its reader may see. */
export interface Sight {
  /** The VMs that the reader sees, as far as they could be read. */
  vms: readonly KnownVm[];
  /** Whether the reader sees everything, not only what a team sees or globs name. */
  seesAll: boolean;
  /** Keeps what is about a VM or project that the reader sees. */
  only<T>(
    reading: Promise<readonly T[]>,
    targetOf: (entry: T) => SeenTarget | undefined,
  ): Promise<readonly T[]>;
}

/** Tells which targets everyone sees who sees this one: those of the same place in gatehouse.yml. */
export function seenWith(target: SeenTarget, policy: Policy) {
  const placeOfTarget = (seen: SeenTarget) => policyPlaceOf(policy, ownerOf(seen));
  const place = placeOfTarget(target);
  return (targets: readonly SeenTarget[]): boolean =>
    targets.every((other) => placeOfTarget(other) === place);
}

type SightedInventory = Pick<Inventory, "vms" | "projects" | "state" | "upToDate" | "seenIn">;

/**
 * Limits what a message tells to what a scope sees, and within that to what globs name. Undefined is
 * no limit.
 */
export function sightOf(
  inventory: SightedInventory,
  scope: Scope | undefined,
  globs?: readonly string[],
) {
  const seen = scope ? inventory.seenIn(async () => scope) : inventory;
  const isNamed = globs && compileTargetGlobs(globs);
  return {
    inventory: seen,
    async vms() {
      const vms = await seen.vms();
      return isNamed ? vms.filter((vm) => isNamed({ kind: "vm", ...vm })) : vms;
    },
    /**
     * Keeps the facts about a VM or project within these limits, by its name then or its name now.
     */
    async only<T>(
      reading: Promise<readonly T[]>,
      targetOf: (entry: T) => SeenTarget | undefined,
    ): Promise<readonly T[]> {
      const some = await reading;
      if (!scope && !isNamed) return some;
      const projects = await inventory.projects();
      const namesNow = new Map(projects.map(({ id, name }) => [id, name]));
      return some.filter((entry) => {
        const target = targetOf(entry);
        if (!target) return false;
        const { id, name } = ownerOf(target);
        return seesUnder(scope, id, [name, namesNow.get(id)]) && (!isNamed || isNamed(target));
      });
    },
  };
}
