import { type Message } from "../../messages/blocks.ts";
import { card } from "../../messages/card.ts";
import { csv } from "../../messages/csv.ts";
import { counted, lines, md, name, plain } from "../../messages/markdown.ts";
import type { Answer, ChangeCommand, Target } from "../../registry/define.ts";
import { frozenLine } from "../../talk/authorize.ts";
import { openView } from "../../talk/form.ts";
import { type GatewayContext, factReader } from "../../talk/gateway-context.ts";
import { type SeveralHandler, rehearsalOf } from "../../talk/service-keys.ts";
import { type AroundPlan, formOfMany } from "./form-of-many.ts";
import { planRollout } from "./plan-rollout.ts";
import type { RolloutRecord } from "./rollout.ts";
import type { Rollouts } from "./rollouts.ts";

/** Opens the form of several VMs, which shows the plan. Nothing runs before it is confirmed. */
export const proposeRollout =
  (rollouts: Rollouts): SeveralHandler =>
  async (invocation, several, asking, act) => {
    const { reply, gateway } = act;
    const { command } = invocation;
    const title = plain(`${command.say.verb} ${counted(several.targets.length, "VM")}`, 24);
    const make = async () => {
      const { record, targets } = await planRollout(invocation, several, asking, act, rollouts);
      const around = await aroundPlan(command, record, targets, gateway);
      return formOfMany(command, record, targets, around);
    };
    if (await openView(title, make, act)) return;
    const { record } = await planRollout(invocation, several, asking, act, rollouts);
    await reply.privately(pressToReview(record, command));
  };

export function pressToReview(record: RolloutRecord, command: ChangeCommand): Message {
  const question = md`${command.say.verb} ${counted(record.total, "VM")} (${name(record.words)})?`;
  const how = md`Press the button to see the plan; nothing happens until you confirm it.`;
  const value = JSON.stringify({ roll: record.id });
  const review = { label: `Review ${counted(record.total, "VM")}`, action: "roll:open", value };
  return card({ title: lines(question, how), ways: [review] });
}

/** Reads what the form of a plan shows beside it. */
export async function aroundPlan(
  command: ChangeCommand,
  { input }: RolloutRecord,
  targets: readonly Target[],
  gateway: GatewayContext,
): Promise<AroundPlan> {
  const [frozen, known] = await Promise.all([
    frozenLine(gateway),
    gateway.factsAbout(targets, { reader: factReader(gateway), change: { command, input } }),
  ]);
  return { frozen, known, isRehearsed: rehearsalOf.ifAny(gateway) !== undefined };
}

/** The VMs of a plan as a file, for a form that only counts them. */
export function planList(targets: readonly Target[]): NonNullable<Answer["file"]> {
  const rows = targets.map((target) => {
    return [target.name, target.projectName ?? target.projectId, target.status, target.id];
  });
  const content = csv([["VM", "Project", "Status", "ID"], ...rows]);
  return { name: "vms.csv", title: `${targets.length} VMs`, content };
}
