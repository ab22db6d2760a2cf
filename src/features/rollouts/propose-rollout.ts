import {
  type Message,
  buttons,
  counted,
  csv,
  lines,
  md,
  name,
  plain,
  sentence,
} from "../../messages/message.ts";
import type { ChangeCommand, Target } from "../../registry/define.ts";
import { sendFile } from "../../talk/answer.ts";
import { frozenLine } from "../../talk/authorize.ts";
import { pinnedAmong } from "../../talk/dialog-facts.ts";
import { openView } from "../../talk/form.ts";
import type { Act, SeveralHandler } from "../../talk/gateway-context.ts";
import { formOfMany, maxListed } from "./form-of-many.ts";
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
      const hasFile = await sendList(targets, act);
      const [frozen, pinned] = await Promise.all([
        frozenLine(gateway),
        pinnedAmong(targets, gateway),
      ]);
      return formOfMany(command, record, targets, { frozen, pinned, hasFile });
    };
    if (await openView(title, make, act)) return;
    const { record } = await planRollout(invocation, several, asking, act, rollouts);
    await reply.privately(pressToReview(record, command));
  };

function pressToReview(record: RolloutRecord, command: ChangeCommand): Message {
  const what = md`${command.say.verb} ${counted(record.total, "VM")} (${name(record.words)})?`;
  const how = md`Press the button to see the plan; nothing happens until you confirm it.`;
  const value = JSON.stringify({ roll: record.id });
  const review = { label: `Review ${counted(record.total, "VM")}`, action: "roll:open", value };
  return sentence(lines(what, how), buttons([review]));
}

/**
 * Sends the list of VMs to the requester as a file if there are too many for a form. False when no
 * file was sent.
 */
async function sendList(targets: readonly Target[], act: Act): Promise<boolean> {
  if (targets.length <= maxListed) return false;
  const rows = targets.map((target) => {
    return [target.name, target.projectName ?? target.projectId, target.status, target.id];
  });
  const title = `${targets.length} VMs`;
  const content = csv([["VM", "Project", "Status", "ID"], ...rows]);
  return sendFile({ name: "vms.csv", title, content }, act);
}
