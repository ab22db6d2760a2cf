import * as z from "zod";
import { sentence } from "../messages/card.ts";
import type { InputPart } from "../messages/inputs.ts";
import { lines, md } from "../messages/markdown.ts";
import { paragraph, waysRow } from "../messages/parts.ts";
import { modal } from "../messages/views.ts";
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
import { formMeta, titleOf } from "./form-view.ts";
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
  const picker: InputPart = {
    kind: "input",
    id: kind,
    label: label === "VM" ? label : "Project",
    entry: { kind: "search", placeholder: "Type a name" },
    action: `pick:${kind}`,
  };
  const submit = isChange(command) ? command.say.verb : "Show";
  const title = isChange(command) ? titleOf(command) : `Choose a ${label}`;
  const parts = [
    paragraph(explanation),
    picker,
    place.channelId === "" ? channelPicker : undefined,
  ];
  return reply.open(modal(title, parts, { callback: pickCallback, metadata, submit }));
}

const channelPicker: InputPart = {
  kind: "input",
  id: "channel",
  label: "Channel for the result",
  entry: { kind: "channel" },
  action: "pick:channel",
};

export function kindOf(target: Argument | undefined) {
  return target?.target === "project"
    ? { kind: "project", label: "project" }
    : { kind: "vm", label: "VM" };
}
