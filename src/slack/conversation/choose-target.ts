import type { KnownBlock, ModalView } from "@slack/types";
import * as z from "zod";
import { UserError } from "../../errors.ts";
import { buttons, message, plainText, readable, section } from "../../messages/message.ts";
import { lines, type Markdown, md, name } from "../../messages/text.ts";
import { type Argument, targetArgument } from "../../registry/arguments.ts";
import { dottedName, isChange } from "../../registry/define.ts";
import type { Input } from "../../registry/invocation.ts";
import { LacksTarget, type Named, parseInvocation } from "../../registry/parse.ts";
import { parseJson } from "../web.ts";
import type { Interaction, Reply, Submission } from "../receive/interaction.ts";
import { authorize } from "./authorize.ts";
import { modal, titleOf } from "./dialog-view.ts";
import { frozenLine } from "./frozen.ts";
import type { GatewayContext } from "./gateway-context.ts";
import { run } from "./run.ts";

export const pickCallback = "pick-target";

/** Runs what a button names, or asks for the target that it doesn't name. */
export async function runNamed(
  { command, input }: Named,
  interaction: Interaction,
  reply: Reply,
  gateway: GatewayContext,
): Promise<void> {
  try {
    const invocation = parseInvocation(command, input);
    return await run(invocation, interaction, reply, gateway);
  } catch (error) {
    if (!(error instanceof LacksTarget)) throw error;
    return await chooseTarget(error, interaction, reply, gateway);
  }
}

/** Opens a picker for those who may run the command; where no modal can open, a button does. */
export async function chooseTarget(
  lacks: Pick<LacksTarget, "message" | "named">,
  interaction: Interaction,
  reply: Reply,
  gateway: GatewayContext,
): Promise<void> {
  const { command, input } = lacks.named;
  const { userId, teamId, channelId } = interaction;
  const person = await gateway.person(userId, teamId);
  await authorize({ command, targets: [], person, channelId }, gateway);
  const frozen = isChange(command) ? await frozenLine(gateway) : undefined;
  const view = pickerFor(lacks.named, interaction, frozen);
  if (view && (await reply.open(view))) return;
  const text = lines(
    md`${lacks.message}`,
    view ? undefined : md`For example: ${name(command.example)}.`,
  );
  const action = `run:${dottedName(command)}`;
  const label = `Choose a ${words(targetArgument(command)).label}`;
  const choose = buttons(view ? [{ label, action, value: JSON.stringify(input) }] : []);
  await reply.privately(message(readable(text), section(text), choose));
}

/** Longer ones are refused by Slack (https://docs.slack.dev/reference/views). */
const maxMetadata = 2900;

/** With the channel for the result where it wasn't opened in one. Undefined when it can't carry the arguments. */
export function pickerFor(
  { command, input }: Named,
  { channelId, threadTs }: Pick<Interaction, "channelId" | "threadTs">,
  frozen?: Markdown,
): ModalView | undefined {
  const { kind, label } = words(targetArgument(command));
  const metadata: PickMeta = {
    command: command.name,
    values: input,
    channelId,
    ...(threadTs ? { threadTs } : {}),
  };
  if (JSON.stringify(metadata).length > maxMetadata) return undefined;
  const interrupts =
    command.class === "disrupt" ? md`This interrupts what runs on the ${label}.` : undefined;
  const what = lines(frozen, md`${command.summary}.`, interrupts);
  const picker: KnownBlock = {
    type: "input",
    block_id: kind,
    label: plainText(label === "VM" ? label : "Project"),
    element: {
      type: "external_select",
      action_id: `pick:${kind}`,
      min_query_length: 0,
      placeholder: plainText("Type a name"),
    },
  };
  const form = {
    callback: pickCallback,
    metadata,
    submit: isChange(command) ? command.say.verb : "Show",
  };
  const title = isChange(command) ? titleOf(command) : `Choose a ${label}`;
  const blocks = [section(what), picker, ...(channelId === "" ? [channelPicker] : [])];
  return modal(title, blocks, form);
}

const channelPicker: KnownBlock = {
  type: "input",
  block_id: "channel",
  label: plainText("Channel for the result"),
  element: {
    type: "conversations_select",
    action_id: "pick:channel",
    default_to_current_conversation: true,
    filter: { include: ["public", "private"], exclude_bot_users: true },
  },
};

function words(target: Argument | undefined) {
  return target?.target === "project"
    ? { kind: "project", label: "project" }
    : { kind: "vm", label: "VM" };
}

interface PickMeta {
  command: string;
  values: Input;
  channelId: string;
  threadTs?: string;
}

const metaSchema: z.ZodType<PickMeta> = z.object({
  command: z.string(),
  values: z.record(z.string(), z.unknown()).default({}),
  channelId: z.string(),
  threadTs: z
    .string()
    .regex(/^\d{1,20}\.\d{1,20}$/)
    .exactOptional(),
});

/** Runs the command on what was picked, where its picker was opened; a form of its own opens next. */
export async function targetChosen(
  interaction: Submission,
  reply: Reply,
  gateway: GatewayContext,
): Promise<void> {
  const read = metaSchema.safeParse(parseJson(interaction.privateMetadata));
  const command = gateway.commands.find(({ name: one }) => one === read.data?.command);
  const target = command && targetArgument(command);
  if (!read.success || !command || !target)
    throw new UserError("This form no longer works. Please run the command again.");
  const { values, channelId, threadTs } = read.data;
  const chosen = interaction.values[words(target).kind];
  if (typeof chosen !== "string")
    throw new UserError(`No ${words(target).label} was chosen. Nothing was done.`);
  const input = { ...values, [target.key]: target.isList ? [chosen] : chosen };
  const place = {
    channelId: channelId || String(interaction.values["channel"] ?? ""),
    ...(threadTs ? { threadTs } : {}),
  };
  const invocation = parseInvocation(command, input);
  await run(invocation, { ...interaction, ...place }, reply, gateway);
}
