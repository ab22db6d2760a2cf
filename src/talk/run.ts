import { statusFacts } from "../fleet/compute/compute.ts";
import { UserError } from "../errors.ts";
import { Markdown, buttons, hintOf, md, message, name } from "../messages/message.ts";
import { type Asking, breakGlassBasis, forChange, specify } from "../core/permit/permit.ts";
import { isToConfirm } from "../core/permit/refusal.ts";
import { type ChangeCommand, asked, calledName, isPin } from "../registry/define.ts";
import {
  type ChangeInvocation,
  type Invocation,
  PickValue,
  asksForChange,
  hasForm,
  targetWords,
  withIds,
  withTarget,
} from "../registry/invocation.ts";
import {
  LacksTarget,
  type NamedCommand,
  type WordsRefusal,
  parseCommand,
  parseInvocation,
} from "../registry/parse.ts";
import { PickOne, resolveOne, resolveSeveral, takesOne } from "../core/submit/resolve-targets.ts";
import { say } from "../slack/error-reply.ts";
import type { Interaction } from "../slack/receive/interaction.ts";
import { originOf } from "./act-origin.ts";
import { answer } from "./answer.ts";
import { authorize, authorizeTargets } from "./authorize.ts";
import { confirmFirst } from "./confirm-first.ts";
import { openForm } from "./form.ts";
import { type Act, personOf } from "./gateway-context.ts";
import { placeOf, submitChange } from "./submit-change.ts";
import { noEmergency } from "../registry/emergency.ts";
import { chooseTarget } from "./pick-target.ts";
import { guessButton, pickList, pressToGoOn, pressToRun, valueList } from "./run-buttons.ts";

/** Runs what a person typed if it has exactly one meaning; guesses are offered as buttons. */
export async function runWords(text: string, act: Act): Promise<void> {
  const parsed = parseCommand(text, act.gateway.commands);
  await ("refusal" in parsed ? refuseWords(parsed.refusal, act) : run(parsed, act));
}

async function refuseWords({ text, hint, near, lacks }: WordsRefusal, act: Act): Promise<void> {
  if (lacks) return chooseTarget({ message: text, named: lacks }, act);
  const said = say(md`${text}`, hintOf(hint));
  const guesses = near.flatMap((one, index) => guessButton(one, index));
  const [direct, asking] = [false, true].map((asks) =>
    buttons(guesses.filter(({ confirm }) => (confirm !== undefined) === asks)),
  );
  await act.reply.privately(message(new Markdown(said.text), said.blocks, direct, asking));
}

/** Runs the command that a button names, or asks for its target if the button names none. */
export async function runNamed({ command, input }: NamedCommand, act: Act): Promise<void> {
  try {
    await run(parseInvocation(command, input), act);
  } catch (error) {
    if (!(error instanceof LacksTarget)) throw error;
    await chooseTarget(error, act);
  }
}

/**
 * Runs a command that was typed, pressed or mentioned. Policy decides before names are resolved.
 * `reason` is that of the request that this one repeats. Throws Refused and UserError.
 */
export async function run(
  invocation: Invocation & { breakGlass?: string; reason?: string | undefined },
  act: Act,
): Promise<void> {
  const { command, input } = invocation;
  const { interaction, reply, gateway } = act;
  const { channelId } = interaction;
  const isEmergency = invocation.breakGlass !== undefined;
  if (isEmergency && interaction.kind !== "command") {
    throw new UserError(
      "--break-glass works only in a slash command: a message doesn't prove who wrote it.",
    );
  }
  if (isEmergency && !gateway.emergency) throw noEmergency();
  try {
    const person = await personOf(act, { fresh: isEmergency });
    const basis = isEmergency ? breakGlassBasis : undefined;
    const asking = await authorize({ command, input, person, channelId, basis }, gateway);
    const isRequested = await confirmFirst(invocation, asking, act);
    // A message doesn't prove that a person wrote it, so everything but a plain read needs a press
    // (decision 005).
    if (interaction.kind === "mention" && command.kind === "read" && command.class !== "read")
      return await reply.privately(pressToRun(command, input));
    if (asksForChange(invocation)) await change(invocation, forChange(asking), act);
    else if (!isRequested) await answer(invocation, asking, act);
  } catch (error) {
    if (error instanceof PickValue && !isEmergency)
      return await reply.privately(valueList(command, error));
    if (!(error instanceof PickOne)) throw error;
    const exactly = md`${error.message} --break-glass needs an exact target: use the ID or project/name.`;
    await reply.privately(isEmergency ? say(exactly) : pickList(invocation, error, act));
  }
}

/**
 * Runs a change. Several VMs are handed to the feature that handles them. A change that interrupts
 * or destroys is confirmed first, in a form or by a press. Break-glass always opens a form and then
 * waits for no approval; protection and the freeze still apply.
 */
async function change(
  invocation: ChangeInvocation & { breakGlass?: string; reason?: string | undefined },
  asking: Asking<ChangeCommand>,
  act: Act,
): Promise<void> {
  const { command, input, breakGlass, reason } = invocation;
  const { interaction, reply, gateway } = act;
  const isEmergency = breakGlass !== undefined;
  const several = isEmergency ? undefined : await resolveSeveral(asking, invocation, gateway);
  if (several) {
    const handle = gateway.contributed.several;
    if (!handle) throw takesOne(command, several.targets);
    return handle(invocation, several, asking, act);
  }
  const target = await resolveOne(asking, invocation, gateway);
  if (isEmergency && targetWords(invocation).length > 1)
    throw new UserError("--break-glass takes exactly one target.");
  const place = placeOf(interaction);
  const about = { targets: [target], input: withTarget(command, input, target) };
  const permit = await authorizeTargets(asking, about, gateway);
  if (interaction.kind === "mention") return reply.privately(pressToGoOn(command, input, target));
  const interrupts = command.class === "disrupt" && !statusFacts(target.status).isStopped;
  const asksOnce = interrupts && isToConfirm(gateway.policy, target) && !isConfirmed(interaction);
  const cautionNow = async () =>
    command.on === "vm" ? command.caution?.(input, target, gateway) : undefined;
  // The button of a pin names only the VM; its form asks for the reason.
  const asksWhy = isPin(command) && interaction.kind === "button" && input["why"] === undefined;
  if (hasForm(command) || asksOnce || asksWhy || isEmergency) {
    const exact = await withIds(command, input, target, gateway);
    const more = isEmergency ? { breakGlass } : reason === undefined ? {} : { reason };
    if (await openForm(specify(permit, exact), act, more)) return;
    if (isEmergency)
      throw new UserError("Its form took too long to open. Nothing was done.", "Type it again.");
    return reply.privately(pressToGoOn(command, input, target));
  }
  const caution = await cautionNow();
  const made = { ...place, origin: originOf(act), ...(reason === undefined ? {} : { reason }) };
  const submitted = await submitChange(permit, made, act);
  if (!submitted.isNew) return;
  // Replace the ephemeral message that had the button, because its buttons are used up.
  const requested = md`✓ ${invocation.command.say.verb} ${name(calledName(target))}: requested. Its message will show the result.`;
  if (interaction.kind === "button") await reply.replace(say(requested));
  if (caution) await reply.privately(say(caution));
}

/**
 * Whether the person has confirmed already: in a form, or on a button whose action says that it
 * asked.
 */
function isConfirmed(interaction: Interaction): boolean {
  if (interaction.kind === "submission") return true;
  return interaction.kind === "button" && interaction.action.endsWith(asked);
}
