import { list } from "../../commands/vm/list.ts";
import { restart } from "../../commands/vm/restart.ts";
import { message, type Message, section, table } from "../../messages/message.ts";
import { md, name } from "../../messages/text.ts";
import type { KnownVm } from "../../inventory/inventory.ts";
import { say } from "../error-reply.ts";
import type { Reply, Interaction } from "../receive/interaction.ts";
import { authorize } from "./authorize.ts";
import { pickerFor } from "./choose-target.ts";
import { frozenLine } from "./frozen.ts";
import { type GatewayContext } from "./gateway-context.ts";

const restartShortcut = "restart-vm";

export async function shortcut(
  interaction: Extract<Interaction, { kind: "shortcut" }>,
  reply: Reply,
  gateway: GatewayContext,
): Promise<void> {
  if (interaction.callback === "show-vms") return showNamed(interaction, reply, gateway);
  if (interaction.callback !== restartShortcut) return;
  const picker = pickerFor({ command: restart, input: {} }, interaction, await frozenLine(gateway));
  if (picker) await reply.open(picker);
}

/** The VMs that a message names, for those who may run `/vm list`. */
async function showNamed(
  interaction: Extract<Interaction, { kind: "shortcut" }>,
  reply: Reply,
  gateway: GatewayContext,
): Promise<void> {
  const person = await gateway.person(interaction.userId, interaction.teamId);
  const asked = { command: list, targets: [], person, channelId: interaction.channelId };
  await authorize(asked, gateway);
  await reply.privately(await vmsNamedIn(interaction.messageText ?? "", gateway));
}

const maxShown = 20;

/** VMs whose name or id is a whole word of the text. */
async function vmsNamedIn(text: string, gateway: GatewayContext): Promise<Message> {
  const words = new Set(
    text
      .slice(0, 10_000)
      .match(/[\p{L}\p{N}][\p{L}\p{N}._-]*/gu)
      ?.map((word) => word.replace(/[._-]+$/, "")),
  );
  const found: KnownVm[] = [];
  for (const word of [...words].slice(0, 300)) {
    const match = await gateway.inventory.findVm(word, { onlyKnown: true });
    if ("found" in match) found.push(match.found);
    else if ("ambiguous" in match) found.push(...match.ambiguous);
  }
  const vms = [...new Map(found.map((vm) => [vm.id, vm])).values()];
  if (vms.length === 0) {
    return say(md`That message names no known VM.`, md`${name("/vm list")} lists all VMs.`);
  }
  const rows = vms.slice(0, maxShown).map((vm) => [vm.name, vm.status, vm.projectName, vm.id]);
  const what = `${vms.length === 1 ? "One VM is" : `${vms.length} VMs are`} named in that message`;
  const { block } = table("VMs", ["Name", "Status", "Project", "ID"], rows);
  return message(what, section(md`${what}:`), block);
}
