import type { Vm } from "../../compute/compute.ts";
import { messageOf, UserError } from "../../errors.ts";
import { buttons, message, type Message, readable, section } from "../../messages/message.ts";
import { counted, csv, lines, md, name, plain } from "../../messages/text.ts";
import { decideEach, needingApproval } from "../../policy/decide.ts";
import type { PolicyRefusal } from "../../policy/refusal.ts";
import { type ChangeCommand, type Effect, calledName, type Target } from "../../registry/define.ts";
import {
  type Args,
  type ChangeInvocation,
  type Person,
  rollingOf,
  withoutRolling,
} from "../../registry/invocation.ts";
import { targetArgument } from "../../registry/arguments.ts";
import { newRolloutId, type RolloutRecord, type Skipped } from "../../rollouts/rollout.ts";
import { uploadFile } from "../deliver/upload.ts";
import type { Interaction, Reply } from "../receive/interaction.ts";
import { noteRefusal, rules } from "./authorize.ts";
import { openView } from "./dialog-view.ts";
import { frozenLine } from "./frozen.ts";
import type { GatewayContext } from "./gateway-context.ts";
import { type Several, targetOfVm, vmOf } from "../../requests/submit/resolve.ts";
import { maxListed, rolloutView } from "./rollout-view.ts";

/** Several VMs in one command: shows the plan, and runs nothing before it is confirmed. */
export async function proposeRollout(
  invocation: ChangeInvocation,
  several: Several,
  person: Person,
  interaction: Interaction,
  reply: Reply,
  gateway: GatewayContext,
): Promise<void> {
  const { command } = invocation;
  const title = plain(`${command.say.verb} ${counted(several.targets.length, "VM")}`, 24);
  const plan = () => planRollout(invocation, several, person, interaction, gateway);
  const make = async () => {
    const planned = await plan();
    const hasFile = await sendList(planned.targets, person, gateway);
    return rolloutView({ command, ...planned, hasFile, frozen: await frozenLine(gateway) });
  };
  const isOpen =
    interaction.kind !== "mention" && (await openView(title, make, reply, gateway.log));
  if (!isOpen) await reply.privately(pressToReview((await plan()).record, command));
}

/** Reads the current state and stores the plan. Throws UserError when it has no eligible VM, or one needs approval. */
async function planRollout(
  invocation: ChangeInvocation,
  several: Several,
  person: Person,
  interaction: Interaction,
  gateway: GatewayContext,
): Promise<{ record: RolloutRecord; targets: readonly Target[] }> {
  const { command, input } = invocation;
  const { channelId } = interaction;
  const asked = { command, input, targets: several.targets, person, channelId };
  const { allowed, refused } = decideEach(rules(asked, gateway));
  for (const [rule, all] of Map.groupBy(refused, ({ by }) => by.rule))
    await noteRefusal({ ...asked, targets: all.map(({ target }) => target) }, rule, gateway);
  const now = await readNow(allowed, gateway);
  const sorted = splitEligible(invocation, now.targets);
  const { targets } = sorted;
  const skipped = [
    ...refused.map(({ target, by }) => ({ name: calledName(target), why: refusedWords(by) })),
    ...now.skipped,
    ...sorted.skipped,
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
    channelId: interaction.channelId || person.id,
    ...(interaction.threadTs ? { threadTs: interaction.threadTs } : {}),
    policyVersion: gateway.policyVersion,
    leftOut: skipped,
    createdAt: gateway.now(),
  };
  await gateway.rollouts.plan(record, targets);
  return { record, targets };
}

function pressToReview(record: RolloutRecord, command: ChangeCommand): Message {
  const text = lines(
    md`${command.say.verb} ${counted(record.total, "VM")} (${name(record.words)})?`,
    md`Press the button to see the plan; nothing happens until you confirm it.`,
  );
  const value = JSON.stringify({ roll: record.id });
  const review = { label: `Review ${counted(record.total, "VM")}`, action: "roll:open", value };
  return message(readable(text), section(text), buttons([review]));
}

/** Too many for a dialog: the list as a file, to the requester only. */
async function sendList(
  targets: readonly Target[],
  person: Person,
  gateway: GatewayContext,
): Promise<boolean> {
  if (targets.length <= maxListed) return false;
  const rows = targets.map((target) => [
    target.name,
    target.projectName ?? target.projectId,
    target.status,
    target.id,
  ]);
  const sent = await uploadFile({
    web: gateway.web,
    apiUrl: gateway.apiUrl,
    to: { userId: person.id },
    name: "vms.csv",
    title: `${targets.length} VMs`,
    content: csv([["VM", "Project", "Status", "ID"], ...rows]),
  });
  return sent.is === "posted";
}

interface Sorted {
  targets: readonly Target[];
  skipped: readonly Skipped[];
}

/** With more projects a dialog uses known data; the gate reads each VM anyway. */
const maxReads = 50;

/** The current state of the targets, by one read per project. Deleted ones are skipped. */
async function readNow(
  targets: readonly Target[],
  gateway: Pick<GatewayContext, "compute" | "log">,
): Promise<Sorted> {
  const projectIds = [...new Set(targets.map(({ projectId }) => projectId))];
  if (projectIds.length > maxReads) return { targets, skipped: [] };
  const read = new Map<string, ReadonlyMap<string, Vm>>();
  await Promise.all(
    projectIds.map(async (projectId) => {
      try {
        const vms = await gateway.compute.projects.vms(projectId);
        read.set(projectId, new Map(vms.map((vm) => [vm.id, vm])));
      } catch (error) {
        gateway.log.info("roll.unread", { project: projectId, why: messageOf(error) });
      }
    }),
  );
  const skipped: Skipped[] = [];
  const now = targets.flatMap((target) => {
    const vms = read.get(target.projectId);
    const vm = vms?.get(target.id);
    if (vms !== undefined && vm === undefined) {
      skipped.push({ name: calledName(target), why: "gone" });
      return [];
    }
    const { sharesName, projectName = target.projectId } = target;
    return [
      vm ? { ...targetOfVm(vm, projectName), ...(sharesName ? { sharesName } : {}) } : target,
    ];
  });
  return { targets: now, skipped };
}

/** Why policy refuses a VM that others of the rollout needn't be refused for. */
function refusedWords({ rule, toldAs }: PolicyRefusal): string {
  const [what, glob] = rule.split(" ");
  return what === "protect"
    ? `protected by ${glob ?? "a rule"}`
    : `you aren't in ${toldAs ?? rule}`;
}

/** Splits targets into eligible and skipped, each with its reason: wrong state, or already as wanted. */
function splitEligible({ command, args }: ChangeInvocation, targets: readonly Target[]): Sorted {
  const effect = command.effect as Effect<Vm, Args>;
  const skipped: Skipped[] = [];
  const kept = targets.filter((target) => {
    const seen = vmOf(target);
    const why =
      args && effect.already?.(seen, args)
        ? `${target.status}, nothing to change`
        : effect.notNow?.(seen) && target.status;
    if (why) skipped.push({ name: calledName(target), why });
    return !why;
  });
  return { targets: kept, skipped };
}
