import type { Vm } from "../compute/compute.ts";
import { messageOf } from "../errors.ts";
import { approvalRule } from "../policy/approval-rule.ts";
import { protection } from "../policy/protection.ts";
import type { ChangeCommand, VmCommand } from "../registry/define.ts";
import { checkInput } from "../registry/parse.ts";
import type { Target } from "../registry/target.ts";
import type { LeftOut } from "../rolls/roll.ts";
import { targetOfVm } from "./resolve.ts";
import type { Talk } from "./talk.ts";

export interface Sorted {
  targets: readonly Target[];
  leftOut: readonly LeftOut[];
}

/** Up to so many projects are read anew for a dialog; beyond that what is known must do, the gate reads each VM anyway. */
const mostReads = 50;

/** The same targets as they stand now, by one read for each project; those that are gone are left out. */
export async function readNow(
  targets: readonly Target[],
  talk: Pick<Talk, "compute" | "log">,
): Promise<Sorted> {
  const projectIds = [...new Set(targets.map(({ projectId }) => projectId))];
  if (projectIds.length > mostReads) return { targets, leftOut: [] };
  const read = new Map<string, ReadonlyMap<string, Vm>>();
  await Promise.all(
    projectIds.map(async (projectId) => {
      try {
        const vms = await talk.compute.projects.vms(projectId);
        read.set(projectId, new Map(vms.map((vm) => [vm.id, vm])));
      } catch (error) {
        talk.log.info("roll.unread", { project: projectId, why: messageOf(error) });
      }
    }),
  );
  const leftOut: LeftOut[] = [];
  const now = targets.flatMap((target) => {
    const vms = read.get(target.projectId);
    const vm = vms?.get(target.id);
    if (vms !== undefined && vm === undefined) {
      leftOut.push({ name: target.name, why: "gone" });
      return [];
    }
    return [vm ? targetOfVm(vm, target.projectName ?? target.projectId) : target];
  });
  return { targets: now, leftOut };
}

/**
 * Which of them would be touched: those that are protected, can't be changed in the state they are in or stand as wanted
 * already are left out, each with its reason. A glob reaches further than people think.
 */
export function sortOut(
  command: ChangeCommand,
  input: Record<string, unknown>,
  targets: readonly Target[],
  talk: Pick<Talk, "policy">,
): Sorted {
  const { effect } = command as VmCommand;
  const checked = checkInput(command, input);
  const leftOut: LeftOut[] = [];
  const kept = targets.filter((target) => {
    const guarded = protection(talk.policy, command, [target]);
    const seen = seenOf(target);
    const why = guarded
      ? `protected by ${guarded.glob ?? "a rule"}`
      : "args" in checked && effect.already?.(seen, checked.args as never)
        ? `${target.status}, so there is nothing to do`
        : effect.notNow?.(seen, input as never) && target.status;
    if (why) leftOut.push({ name: target.name, why });
    return !why;
  });
  return { targets: kept, leftOut };
}

/** The ones that others have to agree to, and by which rule: a roll can't wait for them. */
export function needApproval(
  command: ChangeCommand,
  targets: readonly Target[],
  talk: Pick<Talk, "policy">,
): { targets: readonly Target[]; why: string } | undefined {
  const needing = targets.filter(
    (target) => approvalRule(talk.policy, command, [target]).required > 0,
  );
  if (needing.length === 0) return undefined;
  return { targets: needing, why: approvalRule(talk.policy, command, needing).why };
}

function seenOf(target: Target): Vm {
  const { id, name, projectId, status, createdAt, specs } = target;
  return {
    id,
    name,
    projectId,
    status,
    ...(createdAt ? { createdAt } : {}),
    ...(specs ? { specs } : {}),
  };
}
