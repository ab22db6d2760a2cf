import type { Inventory, KnownVm, Scope } from "../inventory/inventory.ts";
import { ownerOf } from "../policy/judged.ts";
import { seesUnder } from "../policy/scope.ts";
import { compileTargetGlobs } from "../policy/target-globs.ts";
import type { Target } from "../registry/define.ts";

/** What of everything is spoken of: what a scope sees, and of that what globs name. */
export interface Sight {
  /** Whether something is left out at all. */
  isPartial: boolean;
  inventory: Pick<Inventory, "vms" | "state">;
  vms(): Promise<readonly KnownVm[]>;
  /** Keeps what is about a VM or project that is spoken of: by the name it had, and by that of now. */
  only<T>(some: readonly T[], targetOf: (one: T) => Target | undefined): Promise<readonly T[]>;
}

export function sightOf(
  inventory: Pick<Inventory, "vms" | "state" | "projects" | "seenIn">,
  scope: Scope | undefined,
  globs: readonly string[] | undefined,
): Sight {
  const seen = scope ? inventory.seenIn(async () => scope) : inventory;
  const isNamed = globs && compileTargetGlobs(globs);
  const isPartial = scope !== undefined || isNamed !== undefined;
  let names: Promise<ReadonlyMap<string, string>> | undefined;
  return {
    isPartial,
    inventory: seen,
    async vms() {
      const vms = await seen.vms();
      return isNamed ? vms.filter((vm) => isNamed({ kind: "vm", ...vm })) : vms;
    },
    async only(some, targetOf) {
      if (!isPartial) return some;
      names ??= inventory
        .projects()
        .then((projects) => new Map(projects.map(({ id, name }) => [id, name])));
      const namesNow = await names;
      return some.filter((one) => {
        const target = targetOf(one);
        if (!target) return false;
        const { id, name } = ownerOf(target);
        return (
          seesUnder(scope, id, [name, namesNow.get(id)]) &&
          (isNamed === undefined || isNamed(target))
        );
      });
    },
  };
}
