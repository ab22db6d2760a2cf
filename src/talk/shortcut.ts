import type { KnownVm } from "../fleet/inventory/inventory.ts";
import { statusSign } from "../fleet/inventory/status-order.ts";
import { type Message } from "../messages/blocks.ts";
import { card } from "../messages/card.ts";
import { md, name } from "../messages/markdown.ts";
import { table } from "../messages/table.ts";
import { say } from "../slack/error-reply.ts";
import type { Interaction } from "../slack/receive/interaction.ts";
import { authorize } from "./authorize.ts";
import { type Act, personOf } from "./gateway-context.ts";
import { vmsNamedIn } from "./named-in-text.ts";
import { openPicker } from "./pick-target.ts";

type Shortcut = Extract<Interaction, { kind: "shortcut" }>;

/**
 * Answers a shortcut. On a message it lists the VMs that the message names; otherwise it opens the
 * command's target picker.
 */
export async function shortcut(act: Act<Shortcut>): Promise<void> {
  const { interaction, reply, gateway } = act;
  const command = gateway.commands.find(
    (candidate) => candidate.shortcut?.callback === interaction.callback,
  );
  if (!command) return;
  const { channelId, messageText } = interaction;
  if (messageText === undefined) return void (await openPicker({ command, input: {} }, act));
  const person = await personOf({ interaction, gateway });
  await authorize({ command, person, channelId }, gateway);
  await reply.privately(vmTable(await vmsNamedIn(messageText, gateway.inventory)));
}

const maxShown = 20;

export function vmTable(vms: readonly KnownVm[]): Message {
  if (vms.length === 0)
    return say(
      md`That message names no known VM.`,
      md`${name("/vm list")} shows every VM you can see.`,
    );
  const rows = vms
    .slice(0, maxShown)
    .map((vm) => [`${statusSign(vm.status)} ${vm.name}`, vm.status, vm.projectName, vm.id]);
  const title = `${vms.length === 1 ? "One VM is" : `${vms.length} VMs are`} named in that message`;
  const { part, shown } = table("VMs", ["VM", "Status", "Project", "ID"], rows);
  const first = shown < vms.length ? `, the first ${shown} of them here` : "";
  return card({ title: md`${title}${first}:`, body: [part] });
}
