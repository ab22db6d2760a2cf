import * as z from "zod";
import { section } from "../messages/blocks.ts";
import { sentence } from "../messages/card.ts";
import { lines, md } from "../messages/markdown.ts";
import { plainText } from "../messages/text-objects.ts";
import { waysRow } from "../messages/parts.ts";
import {
  type Argument,
  dottedName,
  isChange,
  runButton,
  targetArgument,
} from "../registry/define.ts";
import type { LacksTarget, NamedCommand } from "../registry/parse.ts";
import { mayRun } from "../core/permit/permit.ts";
import { authorize, frozenLine } from "./authorize.ts";
import { field, formMeta, modal, titleOf } from "./form-view.ts";
import { type Act, personOf } from "./gateway-context.ts";
import { placeOf } from "./submit-change.ts";

export const pickCallback = "pick-target";

/** Private metadata that a picker carries to its submission. */
export const pickMeta = formMeta.pick({
  command: true,
  values: true,
  channelId: true,
  threadTs: true,
});

/**
 * Opens a target picker for a person who may run the command. If no modal can open, the answer has
 * a button that opens it. Throws Refused.
 */
export async function chooseTarget(lacks: Pick<LacksTarget, "message" | "named">, act: Act) {
  const { command, input } = lacks.named;
  const { interaction, reply, gateway } = act;
  const person = await personOf(act);
  const { channelId } = interaction;
  // Without a channel the picker asks for one, too, and the rules are asked again with that.
  const isPlaced = channelId !== "" || !mayRun({ person, command }, gateway);
  if (isPlaced) await authorize({ command, person, channelId }, gateway);
  if ((await openPicker(lacks.named, act)) !== undefined) return;
  const label = `Choose a ${kindOf(targetArgument(command)).label}`;
  const choose = runButton(label, dottedName(command), input);
  await reply.privately(sentence(md`${lacks.message}`, waysRow([choose])));
}

/**
 * Opens the target picker. It also asks for a channel if it wasn't opened in one. Undefined when
 * Slack's trigger has expired.
 */
export async function openPicker(
  { command, input }: NamedCommand,
  { interaction, reply, gateway }: Act,
) {
  const place = placeOf(interaction);
  const frozen = isChange(command) ? await frozenLine(gateway) : undefined;
  const { kind, label } = kindOf(targetArgument(command));
  const metadata: z.output<typeof pickMeta> = { command: command.name, values: input, ...place };
  const interrupts =
    command.class === "disrupt" ? md`This interrupts what runs on the ${label}.` : undefined;
  const explanation = lines(frozen, md`${command.summary}.`, interrupts);
  const picker = field(kind, label === "VM" ? label : "Project", {
    type: "external_select",
    action_id: `pick:${kind}`,
    min_query_length: 0,
    placeholder: plainText("Type a name"),
  });
  const submit = isChange(command) ? command.say.verb : "Show";
  const title = isChange(command) ? titleOf(command) : `Choose a ${label}`;
  const blocks = [section(explanation), picker, ...(place.channelId === "" ? [channelPicker] : [])];
  return reply.open(modal(title, blocks, { callback: pickCallback, metadata, submit }));
}

const channelPicker = field("channel", "Channel for the result", {
  type: "conversations_select",
  action_id: "pick:channel",
  default_to_current_conversation: true,
  filter: { include: ["public", "private"], exclude_bot_users: true },
});

export function kindOf(target: Argument | undefined) {
  return target?.target === "project"
    ? { kind: "project", label: "project" }
    : { kind: "vm", label: "VM" };
}
