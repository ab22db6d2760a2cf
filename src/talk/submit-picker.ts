import { UserError } from "../errors.ts";
import { targetArgument } from "../registry/define.ts";
import { parseInvocation } from "../registry/parse.ts";
import type { ViewSubmission } from "../slack/receive/interaction.ts";
import { parseJson } from "../text/parse-json.ts";
import type { Act } from "./gateway-context.ts";
import { kindOf, pickMeta } from "./pick-target.ts";
import { run } from "./run.ts";
import { placeOf } from "./submit-change.ts";

/**
 * Runs the command on the target that was picked, in the channel where the picker was opened or in
 * the chosen one. Throws UserError.
 */
export async function submitPicker(act: Act<ViewSubmission>): Promise<void> {
  const { interaction, gateway } = act;
  const read = pickMeta.safeParse(parseJson(interaction.privateMetadata));
  const command = gateway.commands.find(
    ({ name: commandName }) => commandName === read.data?.command,
  );
  const target = command && targetArgument(command);
  if (!read.success || !command || !target)
    throw new UserError("This form no longer works. Please run the command again.");
  const { values, channelId, threadTs } = read.data;
  const chosen = interaction.values[kindOf(target).kind];
  if (typeof chosen !== "string")
    throw new UserError(`No ${kindOf(target).label} was chosen. Nothing was done.`);
  const input = { ...values, [target.key]: target.isList ? [chosen] : chosen };
  const there = channelId || String(interaction.values["channel"] ?? "");
  const place = placeOf({ channelId: there, threadTs });
  await run(parseInvocation(command, input), { ...act, interaction: { ...interaction, ...place } });
}
