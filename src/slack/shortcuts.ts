import type { ModalView } from "@slack/types";
import { message, type Message, plainText, section, table } from "../messages/message.ts";
import { md, name } from "../messages/text.ts";
import { UserError } from "../errors.ts";
import type { KnownVm } from "../inventory/inventory.ts";
import { say } from "./apology.ts";
import type { Ask } from "./ask.ts";
import { isRefused } from "./refuse.ts";
import type { Reply } from "./reply.ts";
import { run } from "./run.ts";
import { type Talk } from "./talk.ts";

export const restartCallback = "restart-vm";

/** A shortcut was picked: from the menu, or on a message. */
export async function shortcut(
  ask: Extract<Ask, { kind: "shortcut" }>,
  reply: Reply,
  talk: Talk,
): Promise<void> {
  if (ask.callback === "show-vms") return showNamed(ask, reply, talk);
  if (ask.callback === restartCallback) await reply.open(restartModal(ask.channelId));
}

/** What `/vm list` would show of them, to those who may run that. */
async function showNamed(
  ask: Extract<Ask, { kind: "shortcut" }>,
  reply: Reply,
  talk: Talk,
): Promise<void> {
  const command = talk.commands.find((one) => one.name === "vm list");
  if (!command) return;
  const person = await talk.person(ask.userId, ask.teamId);
  const asked = { command, targets: [], person, channelId: ask.channelId };
  if (await isRefused(asked, reply, talk)) return;
  await reply.privately(await vmsNamedIn(ask.messageText ?? "", talk));
}

function restartModal(channelId: string): ModalView {
  return {
    type: "modal",
    callback_id: restartCallback,
    private_metadata: JSON.stringify({ channelId }),
    title: plainText("Restart a VM", 24),
    submit: plainText("Restart", 24),
    close: plainText("Keep as it is", 24),
    blocks: [
      section(
        md`It interrupts what runs on the VM. The result comes into the channel that you choose.`,
      ),
      {
        type: "input",
        block_id: "vm",
        label: plainText("VM"),
        element: {
          type: "external_select",
          action_id: "pick:vm",
          min_query_length: 0,
          placeholder: plainText("Type a name"),
        },
      },
      {
        type: "input",
        block_id: "channel",
        label: plainText("Channel for the result"),
        element: {
          type: "conversations_select",
          action_id: "pick:channel",
          default_to_current_conversation: true,
          filter: { include: ["public", "private"], exclude_bot_users: true },
        },
      },
    ],
  };
}

/** The same command as typed, on the VM that was chosen. */
export async function restartChosen(
  ask: Extract<Ask, { kind: "submission" }>,
  reply: Reply,
  talk: Talk,
): Promise<void> {
  const command = talk.commands.find((one) => one.name === "vm restart");
  const [vm, channel] = [ask.values["vm"], ask.values["channel"]];
  if (!command || typeof vm !== "string") throw new UserError("No VM was chosen.");
  await run(command, { vms: [vm] }, { ...ask, channelId: String(channel ?? "") }, reply, talk);
}

const mostShown = 20;

/** VMs whose names or ids stand in a text. Words are compared whole: a name within a longer word is not named. */
async function vmsNamedIn(text: string, talk: Talk): Promise<Message> {
  const words = new Set(
    text
      .slice(0, 10_000)
      .match(/[\p{L}\p{N}][\p{L}\p{N}._-]*/gu)
      ?.map((word) => word.replace(/[._-]+$/, "")),
  );
  const found: KnownVm[] = [];
  for (const word of [...words].slice(0, 300)) {
    const match = await talk.inventory.findVm(word);
    if ("found" in match) found.push(match.found);
    else if ("ambiguous" in match) found.push(...match.ambiguous);
  }
  const vms = [...new Map(found.map((vm) => [vm.id, vm])).values()];
  if (vms.length === 0) {
    return say(
      md`That message names no VM that I know.`,
      md`${name("/vm list")} shows all of them.`,
    );
  }
  const rows = vms.slice(0, mostShown).map((vm) => [vm.name, vm.status, vm.projectName, vm.id]);
  return message(
    `${vms.length} VMs are named in that message`,
    section(md`${vms.length === 1 ? "One VM is" : `${vms.length} VMs are`} named in that message:`),
    table(["name", "status", "project", "id"], rows),
  );
}
