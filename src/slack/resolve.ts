import type { Vm } from "../compute/compute.ts";
import { UserError } from "../errors.ts";
import type { Inventory, KnownProject, KnownVm } from "../inventory/inventory.ts";
import type { Target } from "../registry/target.ts";

/** More than one, or none but some that are near: the person picks. There is no default. */
export class PickOne extends UserError {
  readonly candidates: readonly Target[];
  readonly isAmbiguous: boolean;

  constructor(message: string, candidates: readonly Target[], isAmbiguous: boolean) {
    super(message);
    this.candidates = candidates;
    this.isAmbiguous = isAmbiguous;
  }
}

/** Exactly one VM or project by what was typed: id, name or `project/name`. Throws PickOne or UserError. */
export async function resolveTarget(
  kind: "vm" | "project",
  words: string,
  inventory: Inventory,
): Promise<Target> {
  const found = kind === "vm" ? await inventory.findVm(words) : await inventory.findProject(words);
  if ("found" in found) return targetOf(found.found);
  const what = kind === "vm" ? "VM" : "project";
  if ("ambiguous" in found) {
    const { ambiguous } = found;
    throw new PickOne(
      `${ambiguous.length} ${what}s are called ${words}. Which one?`,
      ambiguous.map(targetOf),
      true,
    );
  }
  if (found.unknown.length > 0) {
    throw new PickOne(
      `There is no ${what} called ${words}. Did you mean…`,
      found.unknown.map(targetOf),
      false,
    );
  }
  throw new UserError(
    `There is no ${what} called ${words}.`,
    `\`/${kind} list\` shows all that I know.`,
  );
}

export function targetOf(known: KnownVm | KnownProject): Target {
  const shared = {
    id: known.id,
    name: known.name,
    status: known.status,
    ...(known.createdAt ? { createdAt: known.createdAt } : {}),
  };
  if (!("projectId" in known)) return { kind: "project", projectId: known.id, ...shared };
  return {
    kind: "vm",
    projectId: known.projectId,
    projectName: known.projectName,
    ...(known.specs ? { specs: known.specs } : {}),
    ...shared,
  };
}

/** A VM as it was just read. */
export function targetOfVm(vm: Vm, projectName: string): Target {
  return {
    kind: "vm",
    id: vm.id,
    name: vm.name,
    projectId: vm.projectId,
    projectName,
    status: vm.status,
    ...(vm.createdAt ? { createdAt: vm.createdAt } : {}),
    ...(vm.specs ? { specs: vm.specs } : {}),
  };
}
