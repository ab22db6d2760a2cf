import { buttons, type ButtonSpec, limits, message } from "../../messages/message.ts";
import { hintOf, Markdown, md } from "../../messages/text.ts";
import { dottedName, isChange } from "../../registry/define.ts";
import { asksForChange, hasForm } from "../../registry/invocation.ts";
import { parseCommand, type WordsRefusal } from "../../registry/parse.ts";
import { errorReply, say } from "../error-reply.ts";
import type { Interaction, Reply } from "../receive/interaction.ts";
import { offerEmergency } from "./break-glass.ts";
import { chooseTarget } from "./choose-target.ts";
import type { GatewayContext } from "./gateway-context.ts";
import { run } from "./run.ts";

/** What a person typed. Only what has one meaning runs: a guess is a button. */
export async function runWords(
  text: string,
  interaction: Interaction,
  reply: Reply,
  gateway: GatewayContext,
): Promise<void> {
  const parsed = parseCommand(text, gateway.commands);
  if ("refusal" in parsed) return refuse(parsed.refusal, interaction, reply, gateway);
  if (parsed.breakGlass !== undefined && asksForChange(parsed)) {
    return offerEmergency(parsed, parsed.breakGlass, interaction, reply, gateway);
  }
  await run(parsed, interaction, reply, gateway);
}

async function refuse(
  refusal: WordsRefusal,
  interaction: Interaction,
  reply: Reply,
  gateway: GatewayContext,
): Promise<void> {
  const { text, hint, near, lacks } = refusal;
  if (!lacks) {
    const said = say(md`${text}`, hintOf(hint));
    const guesses = near.flatMap((one, index) => guessButton(one, index));
    return reply.privately(message(new Markdown(said.text), said.blocks, buttons(guesses)));
  }
  try {
    return await chooseTarget({ message: text, named: lacks }, interaction, reply, gateway);
  } catch (error) {
    await reply.privately(errorReply(error, gateway.log));
  }
}

/** Runs what was probably meant. What interrupts and has no form asks once more: buttons stand side by side. */
function guessButton(
  { command, input, words }: WordsRefusal["near"][number],
  index: number,
): ButtonSpec[] {
  const value = JSON.stringify(input);
  if (value.length > limits.buttonValue) return [];
  const base = { label: words, action: `run:${dottedName(command)}:${index}`, value };
  const verb = isChange(command) ? command.say.verb : "Show";
  if (command.class !== "disrupt" || hasForm(command)) return [base];
  const confirm = { title: `${verb}?`, text: words, confirm: verb, style: "danger" as const };
  return [{ ...base, action: `${base.action}:asked`, confirm }];
}
