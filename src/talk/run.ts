import { UserError } from "../errors.ts";
import { withParts } from "../messages/card.ts";
import { hintOf, md, name } from "../messages/markdown.ts";
import { waysRow } from "../messages/parts.ts";
import { type Asking, breakGlassBasis, forChange, specify } from "../core/permit/permit.ts";
import { isToConfirm } from "../core/permit/refusal.ts";
import { type ChangeCommand, confirmedSuffix, calledName, isPin } from "../registry/define.ts";
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
import { authorize, authorizeTargets, refuseWhileFrozen } from "./authorize.ts";
import { requestApprovalOfRead } from "./request-approval-of-read.ts";
import { openForm } from "./form.ts";
import { tooSlow } from "./reply-with-error.ts";
import { type Act, personOf } from "./gateway-context.ts";
import { placeOf, submitChange } from "./submit-change.ts";
import { emergencyWordsOf, noEmergency } from "../registry/emergency.ts";
import { severalHandlerOf } from "./service-keys.ts";
import { chooseTarget } from "./pick-target.ts";
import { meantBySentence, meantInOwnWords, smallTalk, whatItIsFor } from "./sentence.ts";
import { guessButton, pickList, pressToGoOn, pressToRun, valueList } from "./run-buttons.ts";

/** Runs what a person typed if it has exactly one meaning; guesses are offered as buttons. */
export async function runWords(text: string, act: Act): Promise<void> {
  const { commands } = act.gateway;
  const talk = smallTalk(text, commands);
  if (talk) return act.reply.privately(talk);
  const asked = meantInOwnWords(text, commands);
  if (asked) return run(asked, act);
  const parsed = parseCommand(text, commands);
  await ("refusal" in parsed ? refuseWords(parsed.refusal, act) : run(parsed, act));
}

async function refuseWords(refusal: WordsRefusal, act: Act): Promise<void> {
  const { text, hint, near, lacks, sentence } = refusal;
  if (lacks) return chooseTarget({ message: text, named: lacks }, act);
  if (sentence !== undefined) {
    const meant = await meantBySentence(sentence, act);
    if (meant)
      return "pick" in meant ? act.reply.privately(meant.pick) : run(meant.invocation, act);
    const { kind, channelId } = act.interaction;
    if (kind === "mention" && near.length === 0)
      return act.reply.privately(whatItIsFor(await personOf(act), channelId, act.gateway));
  }
  const refusalMessage = say(md`${text}`, hintOf(hint));
  const guesses = near.flatMap((guess, index) => guessButton(guess, index));
  const [direct, asking] = [false, true].map((asks) =>
    waysRow(guesses.filter(({ confirm }) => (confirm !== undefined) === asks)),
  );
  await act.reply.privately(withParts(refusalMessage, direct, asking));
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
  if (isEmergency && !emergencyWordsOf.ifAny(gateway)) throw noEmergency();
  try {
    const person = await personOf(act, { fresh: isEmergency });
    const basis = isEmergency ? breakGlassBasis : undefined;
    // A proposal is read by those who may run it, so nobody else is asked to.
    const asksNobody = act.origin?.kind === "proposal";
    const question = { command, input, person, channelId, basis };
    const asking = await authorize(question, gateway, { asksNobody });
    const isRequested = await requestApprovalOfRead(invocation, asking, act);
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
 * waits for no approval; protection and the freeze still apply. During a freeze nothing is asked:
 * only the requester reads that.
 */
async function change(
  invocation: ChangeInvocation & { breakGlass?: string; reason?: string | undefined },
  asking: Asking<ChangeCommand>,
  act: Act,
): Promise<void> {
  const { command, input, breakGlass, reason } = invocation;
  const { interaction, reply, gateway } = act;
  const isEmergency = breakGlass !== undefined;
  const { person, basis } = asking;
  await refuseWhileFrozen({ command, person, basis, targets: [] }, gateway);
  const several = isEmergency ? undefined : await resolveSeveral(asking, invocation, gateway);
  if (several) {
    const runSeveral = severalHandlerOf.ifAny(gateway);
    if (!runSeveral) throw takesOne(command, several.targets);
    return runSeveral(invocation, several, asking, act);
  }
  const target = await resolveOne(asking, invocation, gateway);
  if (isEmergency && targetWords(invocation).length > 1)
    throw new UserError("--break-glass takes exactly one target.");
  const place = placeOf(interaction);
  const about = { targets: [target], input: withTarget(command, input, target) };
  const asksNobody = act.origin?.kind === "proposal";
  const permit = await authorizeTargets(asking, about, gateway, { asksNobody });
  if (interaction.kind === "mention")
    return reply.privately(pressToGoOn(command, input, target, gateway.commands));
  // Asked about every VM, because a stored status may be old: a stopped VM may run by now.
  const interrupts = command.class === "disrupt";
  const asksOnce = interrupts && isToConfirm(gateway.policy, target) && !isConfirmed(interaction);
  // The button of a pin names only the VM; its form asks for the reason.
  const asksWhy = isPin(command) && interaction.kind === "button" && input["why"] === undefined;
  if (hasForm(command) || asksOnce || asksWhy || isEmergency) {
    const exact = await withIds(command, input, target, gateway);
    const more = isEmergency ? { breakGlass } : reason === undefined ? {} : { reason };
    if (await openForm(specify(permit, exact), act, more)) return;
    if (isEmergency)
      throw new UserError("Its form took too long to open. Nothing was done.", "Type it again.");
    // The button that was pressed makes one request, however often it is pressed. Another button for
    // the same change would make a second one, which knows nothing of the first.
    if (act.origin) throw tooSlow();
    return reply.privately(pressToGoOn(command, input, target, gateway.commands));
  }
  const { caution } = invocation.command.on === "vm" ? invocation.command : {};
  const warning = await caution?.(input, target, gateway);
  const made = { ...place, origin: originOf(act), ...(reason === undefined ? {} : { reason }) };
  const submitted = await submitChange(permit, made, act);
  if (!submitted.isNew) return;
  // Replace the ephemeral message that had the button, because its buttons are used up.
  const requested = md`✓ ${invocation.command.say.verb} ${name(calledName(target))}: requested. Its message will show the result.`;
  if (interaction.kind === "button") await reply.replace(say(requested));
  if (warning) await reply.privately(say(warning));
}

/**
 * Whether the person has confirmed already: in a form, or on a button whose action says that it
 * asked.
 */
function isConfirmed(interaction: Interaction): boolean {
  if (interaction.kind === "submission") return true;
  return interaction.kind === "button" && interaction.action.endsWith(confirmedSuffix);
}
