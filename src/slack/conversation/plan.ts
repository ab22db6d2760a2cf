import type { Vm } from "../../compute/compute.ts";
import { messageOf, UserError } from "../../errors.ts";
import type { KnownSnapshot } from "../../inventory/snapshots.ts";
import { plain } from "../../messages/text.ts";
import { approvalRule, type NeededApprovals, rollbackReason } from "../../policy/approval-rule.ts";
import { decideEach, needingApproval } from "../../policy/decide.ts";
import type { PolicyRefusal } from "../../policy/refusal.ts";
import { oneMore, totalOf } from "../../policy/vote-needs.ts";
import { targetArgument } from "../../registry/arguments.ts";
import {
  calledName,
  type ChangeCommand,
  type DialogFacts,
  type Effect,
  type Refusal,
  type Seen,
  type Target,
} from "../../registry/define.ts";
import {
  type Args,
  type ChangeInvocation,
  type Input,
  type Person,
  rollingOf,
  withoutRolling,
} from "../../registry/invocation.ts";
import { readTarget } from "../../requests/perform/gate.ts";
import { type Several, targetOfVm, vmOf } from "../../requests/submit/resolve.ts";
import { newRolloutId, type RolloutRecord } from "../../rollouts/rollout.ts";
import { noteRefusal, rules } from "./authorize.ts";
import type { BeforeAck, GatewayContext } from "./gateway-context.ts";

/** What a person should see before confirming, read now. */
export async function gatherFacts(
  command: ChangeCommand,
  target: Target,
  input: Input,
  gateway: GatewayContext,
): Promise<DialogFacts> {
  if (command.on === "new-project")
    return { ...unread(target, input), regions: await regionsKnown(gateway) };
  const { seen, vms } = await readTarget(target, gateway);
  const ofVms: readonly Pick<Vm, "id">[] = target.kind === "vm" ? [{ id: target.id }] : vms;
  const snapshots = (
    await Promise.all(ofVms.slice(0, 50).map(({ id }) => gateway.snapshots.of(id)))
  ).flat();
  const owner =
    typeof input["snapshot"] === "string"
      ? await gateway.snapshots.ownerOf(input["snapshot"])
      : undefined;
  return {
    ...(owner !== undefined && owner !== target.id ? { foreignSnapshotOf: owner } : {}),
    target,
    seen: Array.isArray(seen) ? undefined : (seen as DialogFacts["seen"]),
    vms,
    snapshots,
    input,
  };
}

/** What is known without a read: enough for what needs no approval, because the gate reads anyway. */
export function unread(target: Target, input: Input): DialogFacts {
  return { target, seen: undefined, vms: [], snapshots: [], input };
}

/** Where projects and VMs are, the most used first. */
export async function regionsKnown({
  inventory,
}: Pick<GatewayContext, "inventory">): Promise<readonly string[]> {
  const all = [...(await inventory.projects()), ...(await inventory.vms())];
  const counts = Map.groupBy(all, ({ region }) => region ?? "");
  counts.delete("");
  return [...counts.entries()].toSorted(([, a], [, b]) => b.length - a.length).map(([one]) => one);
}

/** Why the state of the target doesn't allow it. */
export function notNow(command: ChangeCommand, { seen }: DialogFacts): Refusal | undefined {
  const effect: Effect<Seen, Args> = command.effect;
  return seen && effect.notNow?.(seen);
}

export type Needed = NeededApprovals & { raised?: string };

/** The approvals that policy requires, and one more where a restore would change the measurement or is old. */
export function neededApprovals(
  command: ChangeCommand,
  facts: DialogFacts,
  gateway: Pick<GatewayContext, "policy" | "now">,
): Needed {
  const { target, seen, input } = facts;
  const vmNames = facts.vms.map((vm) => vm.name);
  const needed = approvalRule(gateway.policy, { command, targets: [target], input, vmNames });
  const restores = command.on === "vm" && command.snapshot === "restores";
  if (!restores || needed.required === 0 || input["snapshot"] === undefined) return needed;
  const raised = rollbackReason({
    snapshot: chosenSnapshot(facts),
    measurementNow: seen && "projectId" in seen ? seen.attestation?.measurement : undefined,
    maxAgeMs: gateway.policy.attestation.maxSnapshotAgeMs,
    now: gateway.now(),
  });
  if (!raised) return needed;
  const votes = oneMore(needed.votes);
  return { ...needed, votes, required: totalOf(votes), raised };
}

export function chosenSnapshot({
  snapshots,
  input,
}: Pick<DialogFacts, "snapshots" | "input">): KnownSnapshot | undefined {
  const words = input["snapshot"];
  return snapshots.find(({ id, name: called }) => id !== "" && (id === words || called === words));
}

/**
 * What one command on several VMs would do: reads their state and stores the plan, which runs nothing before it is confirmed.
 * Throws UserError when no VM is eligible, or one needs approval.
 */
export async function planRollout(
  invocation: ChangeInvocation,
  several: Several,
  person: Person,
  { interaction, gateway }: BeforeAck,
): Promise<{ record: RolloutRecord; targets: readonly Target[] }> {
  const { command, input } = invocation;
  const { channelId, threadTs } = interaction;
  const asked = { command, input, targets: several.targets, person, channelId };
  const { allowed, refused } = decideEach(rules(asked, gateway));
  for (const [rule, all] of Map.groupBy(refused, ({ by }) => by.rule))
    await noteRefusal({ ...asked, targets: all.map(({ target }) => target) }, rule, gateway);
  const read = await readNow(allowed, gateway);
  const seen = allowed.flatMap(({ id }) => read.get(id) ?? []);
  const targets = seen.filter((target) => ineligible(invocation, target) === undefined);
  const skipped = [
    ...refused.map(({ target, by }) => ({ name: calledName(target), why: refusedWords(by) })),
    ...allowed
      .filter(({ id }) => !read.has(id))
      .map((one) => ({ name: calledName(one), why: "gone" })),
    ...seen.flatMap((one) => {
      const why = ineligible(invocation, one);
      return why === undefined ? [] : [{ name: calledName(one), why }];
    }),
  ];
  if (targets.length === 0) {
    const reasons = [...new Set(skipped.map(({ why }) => why))].slice(0, 5).join("; ");
    throw new UserError(
      `None of the ${several.targets.length} VMs is eligible to ${command.say.verb.toLowerCase()}: ${reasons}.`,
      "Nothing was done.",
    );
  }
  const needing = needingApproval(gateway.policy, { command, targets });
  if (needing) {
    const names = needing.targets.slice(0, 5).map(calledName);
    const more = needing.targets.length - names.length;
    throw new UserError(
      `${names.join(", ")}${more > 0 ? ` and ${more} more` : ""} can't be part of a rollout: ${needing.why}.`,
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
    ...(several.isEverything ? { isEverything: true } : {}),
    requester: { id: person.id, teamId: person.teamId, name: person.name },
    channelId: channelId || person.id,
    ...(threadTs ? { threadTs } : {}),
    policyVersion: gateway.policyVersion,
    leftOut: skipped,
    createdAt: gateway.now(),
  };
  await gateway.rollouts.plan(record, targets);
  return { record, targets };
}

/** With more projects a form uses known data; the gate reads each VM anyway. */
const maxReads = 50;

/** The current state of the targets by their IDs, from one read per project; without those that are gone. */
async function readNow(
  targets: readonly Target[],
  { compute, log }: Pick<GatewayContext, "compute" | "log">,
): Promise<ReadonlyMap<string, Target>> {
  const ofProjects = Map.groupBy(targets, ({ projectId }) => projectId);
  const now = new Map(targets.map((target) => [target.id, target]));
  if (ofProjects.size > maxReads) return now;
  const readProject = async ([projectId, known]: [string, Target[]]): Promise<void> => {
    try {
      const vms = new Map((await compute.projects.vms(projectId)).map((vm) => [vm.id, vm]));
      for (const { id, sharesName, projectName = projectId } of known) {
        const vm = vms.get(id);
        if (vm)
          now.set(id, { ...targetOfVm(vm, projectName), ...(sharesName ? { sharesName } : {}) });
        else now.delete(id);
      }
    } catch (error) {
      log.info("roll.unread", { project: projectId, why: messageOf(error) });
    }
  };
  await Promise.all([...ofProjects].map(readProject));
  return now;
}

/** Why policy refuses a VM that others of the rollout needn't be refused for. */
function refusedWords({ rule, toldAs }: PolicyRefusal): string {
  const [what, glob] = rule.split(" ");
  return what === "protect"
    ? `protected by ${glob ?? "a rule"}`
    : `you aren't in ${toldAs ?? rule}`;
}

/** Why a VM is skipped: it is in the wrong state, or already as wanted. */
function ineligible({ command, args }: ChangeInvocation, target: Target): string | undefined {
  const effect = command.effect as Effect<Vm, Args>;
  const seen = vmOf(target);
  if (args && effect.already?.(seen, args)) return `${target.status}, nothing to change`;
  return effect.notNow?.(seen) && target.status;
}
