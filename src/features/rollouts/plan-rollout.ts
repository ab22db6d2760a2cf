import { type ListGaps, type Vm, mayHide } from "../../fleet/compute/compute.ts";
import { UserError, messageOf } from "../../errors.ts";
import { firstFew, plain } from "../../messages/markdown.ts";
import { type Asking, needingApproval } from "../../core/permit/permit.ts";
import type { PolicyRefusal } from "../../core/permit/refusal.ts";
import {
  type ChangeCommand,
  type Effect,
  type Target,
  calledName,
  targetArgument,
} from "../../registry/define.ts";
import { type Args, type ChangeInvocation, withoutRolling } from "../../registry/invocation.ts";
import { type Several, targetOfVm, vmOf } from "../../core/submit/resolve-targets.ts";
import { type RolloutRecord, newRolloutId } from "./rollout.ts";
import type { Rollouts } from "./rollouts.ts";
import { authorizeEach } from "../../talk/authorize.ts";
import type { BeforeAck, GatewayContext } from "../../talk/gateway-context.ts";
import { placeOf } from "../../talk/submit-change.ts";
import { rollingOf } from "./rolling.ts";

/**
 * Plans one command on several VMs: reads their state and stores the plan, which runs nothing
 * before it is confirmed. Throws UserError when no VM is eligible, or one needs approval.
 */
export async function planRollout(
  invocation: ChangeInvocation,
  several: Several,
  asking: Asking<ChangeCommand>,
  { interaction, gateway }: BeforeAck,
  rollouts: Rollouts,
): Promise<{ record: RolloutRecord; targets: readonly Target[] }> {
  const { command, input } = invocation;
  const { channelId, threadTs } = interaction;
  const { person } = asking;
  const { permits, refused } = await authorizeEach(asking, several.targets, gateway);
  const allowed = permits.map(({ target }) => target);
  const read = await readNow(allowed, gateway);
  const seen = allowed.flatMap(({ id }) => read.get(id) ?? []);
  const targets = seen.filter((target) => ineligible(invocation, target) === undefined);
  const skipped = [
    ...refused.map(({ target, refusal }) => ({ target, why: refusedWords(refusal) })),
    ...allowed.map((target) => ({ target, why: ineligible(invocation, read.get(target.id)) })),
  ].flatMap(({ target, why }) => (why === undefined ? [] : [{ name: calledName(target), why }]));
  if (targets.length === 0) {
    const reasons = [...new Set(skipped.map(({ why }) => why))].slice(0, 5).join("; ");
    throw new UserError(
      `None of the ${several.targets.length} VMs is eligible to ${command.say.verb.toLowerCase()}: ${reasons}.`,
      "Nothing was done.",
    );
  }
  const planned = new Set(targets.map(({ id }) => id));
  const needing = needingApproval(permits.filter(({ target }) => planned.has(target.id)));
  if (needing) {
    const names = firstFew(needing.targets.map(calledName), 5);
    throw new UserError(
      `${names} can't be part of a rollout: ${needing.why}.`,
      "Request those one by one; each approval is for one VM. Nothing was done.",
    );
  }
  const named = targetArgument(command)?.key ?? "";
  const { [named]: _targets, ...own } = withoutRolling(command, input);
  const record: RolloutRecord = {
    id: newRolloutId(),
    command: command.name,
    input: own,
    words: plain(several.words, 200),
    options: rollingOf(command, input, targets.length),
    total: targets.length,
    ...(several.isEverything ? { isEverything: several.isEverything } : {}),
    requester: { id: person.id, teamId: person.teamId, name: person.name },
    ...placeOf({ channelId: channelId || person.id, threadTs }),
    policyVersion: gateway.policyVersion,
    leftOut: skipped,
    createdAt: gateway.now(),
  };
  await rollouts.plan(record, targets);
  return { record, targets };
}

/** With more projects than this, the plan uses known states; the gate reads each VM anyway. */
const maxReads = 50;

/** The current targets by ID, read once per project. VMs that are gone are left out. */
async function readNow(targets: readonly Target[], { compute, log }: GatewayContext) {
  const ofProjects = Map.groupBy(targets, ({ projectId }) => projectId);
  const now = new Map(targets.map((target) => [target.id, target]));
  if (ofProjects.size > maxReads) return now;
  const readProject = async ([projectId, known]: [string, Target[]]): Promise<void> => {
    try {
      let gaps: ListGaps | undefined;
      const onGaps = (listGaps: ListGaps) => void (gaps = listGaps);
      const list = await compute.projects.vms(projectId, { onGaps });
      const vms = new Map(list.map((vm) => [vm.id, vm]));
      for (const { id, name: called, sharesName, projectName = projectId } of known) {
        const vm = vms.get(id);
        if (vm)
          now.set(id, { ...targetOfVm(vm, projectName), ...(sharesName ? { sharesName } : {}) });
        else if (!mayHide(gaps, called)) now.delete(id);
      }
    } catch (error) {
      log.info("roll.unread", { project: projectId, why: messageOf(error) });
    }
  };
  await Promise.all([...ofProjects].map(readProject));
  return now;
}

/** Why policy refuses one VM of the rollout. */
function refusedWords({ rule, toldAs }: PolicyRefusal): string {
  const [kind, glob] = rule.split(" ");
  return kind === "protect"
    ? `protected by ${glob ?? "a rule"}`
    : `you aren't in ${toldAs ?? rule}`;
}

/** Why a VM is skipped: it is gone, in the wrong state, or already as wanted. */
function ineligible({ command, args }: ChangeInvocation, target?: Target): string | undefined {
  if (!target) return "gone";
  const effect = command.effect as Effect<Vm, Args>;
  const seen = vmOf(target);
  if (args && effect.already?.(seen, args)) return `${target.status}, nothing to change`;
  return effect.notNow?.(seen) && target.status;
}
