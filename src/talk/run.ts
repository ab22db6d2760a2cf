import { statusFacts } from "../fleet/compute/compute.ts";
import { UserError } from "../errors.ts";
import {
  type ButtonSpec,
  Markdown,
  type Message,
  buttons,
  hintOf,
  limits,
  lines,
  md,
  message,
  name,
  section,
  sentence,
} from "../messages/message.ts";
import { type Asking, breakGlassBasis, forChange, specify } from "../core/permit/permit.ts";
import { type Confirming, askOnce, isToConfirm } from "../core/permit/refusal.ts";
import {
  type ChangeCommand,
  type Command,
  type Target,
  asked,
  calledName,
  dottedName,
  isChange,
  isPin,
  runButton,
  targetArgument,
} from "../registry/define.ts";
import {
  type ChangeInvocation,
  type Input,
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
import type { Interaction, ViewSubmission } from "../slack/receive/interaction.ts";
import { originOf } from "./act-origin.ts";
import { answer } from "./answer.ts";
import { authorize, authorizeTargets } from "./authorize.ts";
import { confirmFirst } from "./confirm-first.ts";
import { openForm } from "./form.ts";
import { type Act, personOf } from "./gateway-context.ts";
import { placeOf, submitChange } from "./submit-change.ts";
import { noEmergency } from "../registry/emergency.ts";
import { openPicker, kindOf, pickMeta } from "./pick-target.ts";
import { parseJson } from "../text/parse-json.ts";

/** What a person typed. Only what has one meaning runs: a guess is a button. */
export async function runWords(text: string, act: Act): Promise<void> {
  const parsed = parseCommand(text, act.gateway.commands);
  await ("refusal" in parsed ? refuse(parsed.refusal, act) : run(parsed, act));
}

async function refuse({ text, hint, near, lacks }: WordsRefusal, act: Act): Promise<void> {
  if (lacks) return chooseTarget({ message: text, named: lacks }, act);
  const said = say(md`${text}`, hintOf(hint));
  const guesses = near.flatMap((one, index) => guessButton(one, index));
  const [direct, asking] = [false, true].map((asks) =>
    buttons(guesses.filter(({ confirm }) => (confirm !== undefined) === asks)),
  );
  await act.reply.privately(message(new Markdown(said.text), said.blocks, direct, asking));
}

/** Runs what was probably meant. What interrupts and has no form asks once more, and is below. */
function guessButton(
  { command, input, words }: WordsRefusal["near"][number],
  index: number,
): ButtonSpec[] {
  const base = runButton(words, `${dottedName(command)}:${index}`, input);
  if (base.value.length > limits.buttonValue) return [];
  const verb = isChange(command) ? command.say.verb : "Show";
  if (command.class !== "disrupt" || hasForm(command)) return [base];
  const text = `${words}. What runs there is interrupted.`;
  const confirm = { title: `${verb}?`, text, confirm: verb, style: "danger" as const };
  return [{ ...base, action: `${base.action}${asked}`, confirm }];
}

/** Runs what a button names, or asks for the target that it doesn't name. */
export async function runNamed({ command, input }: NamedCommand, act: Act): Promise<void> {
  try {
    await run(parseInvocation(command, input), act);
  } catch (error) {
    if (!(error instanceof LacksTarget)) throw error;
    await chooseTarget(error, act);
  }
}

/** Runs a command, typed, pressed or mentioned: policy decides before names are resolved. */
export async function run(
  invocation: Invocation & { breakGlass?: string },
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
    // A message doesn't prove that a person wrote it: everything but a plain read needs a press (decision 005)
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
 * What several VMs become is contributed by a feature. What interrupts or destroys is confirmed first, in a form or by a press.
 * Break-glass always has a form and then waits for no approval; protection and the freeze still apply.
 */
async function change(
  invocation: ChangeInvocation & { breakGlass?: string },
  asking: Asking<ChangeCommand>,
  act: Act,
): Promise<void> {
  const { command, input, breakGlass } = invocation;
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
  // A press says of a pin which VM it is for: why, its form asks
  const asksWhy = isPin(command) && interaction.kind === "button" && input["why"] === undefined;
  if (hasForm(command) || asksOnce || asksWhy || isEmergency) {
    const exact = await withIds(command, input, target, gateway);
    if (await openForm(specify(permit, exact), act, isEmergency ? { breakGlass } : {})) return;
    if (isEmergency)
      throw new UserError("Its form took too long to open. Nothing was done.", "Type it again.");
    return reply.privately(pressToGoOn(command, input, target));
  }
  const caution = await cautionNow();
  const submitted = await submitChange(permit, { ...place, origin: originOf(act) }, act);
  if (!submitted.isNew) return;
  // In place of the message that only its reader saw: its buttons are used
  const requested = md`✓ ${invocation.command.say.verb} ${name(calledName(target))}: requested. Its message will show the result.`;
  if (interaction.kind === "button") await reply.replace(say(requested));
  if (caution) await reply.privately(say(caution));
}

/** A button that asks by itself says so in its action. */
function isConfirmed(interaction: Interaction): boolean {
  if (interaction.kind === "submission") return true;
  return interaction.kind === "button" && interaction.action.endsWith(asked);
}

/** A button that runs a command on a target: what interrupts asks, even where typed words don't. */
export function targetButton(
  command: Command,
  input: Input,
  target: Target,
  policy: Confirming = { confirm: [] },
): ButtonSpec {
  const label = isChange(command) ? command.say.verb : "Show";
  const button = runButton(label, dottedName(command), withTarget(command, input, target));
  return askOnce(button, command, target, policy);
}

/** For mentions, and triggers that were too old. The press is the confirmation. */
function pressToGoOn(command: ChangeCommand, input: Input, target: Target): Message {
  const what = target.name === "" ? md`a new project` : md`${name(calledName(target))}`;
  const ask = md`${command.say.verb} ${what}? Press the button: a message alone changes nothing.`;
  const text = lines(ask, ...(command.risk?.({ target, input, vms: [] }) ?? []));
  const { confirm: _asked, ...button } = targetButton(command, input, target);
  const once = hasForm(command) ? button : { ...button, action: `${button.action}${asked}` };
  return sentence(text, buttons([once]));
}

/** The same, for commands that have no target: thaw, digest now. */
function pressToRun(command: Command, input: Input): Message {
  const label = `Run /${command.name}`;
  const text = md`${label}? Press the button: a message alone only reads.`;
  return sentence(text, buttons([runButton(label, dottedName(command), input)]));
}

/** A button for each candidate, which runs the same command on it. */
function pickList({ command, input }: NamedCommand, pick: PickOne, { gateway }: Act): Message {
  const specs = pick.candidates.slice(0, 20).map((target): ButtonSpec => {
    const label =
      target.kind === "vm"
        ? `${target.name} in ${target.projectName ?? target.projectId}`
        : target.name;
    const spec = targetButton(command, input, target, gateway.policy);
    return { ...spec, label, action: `${spec.action}:${target.id}` };
  });
  const more = pick.candidates.length - specs.length;
  const hidden = md` ${more} more are not shown: \`project/name\` names one exactly.`;
  const text = md`${pick.message}${more > 0 ? hidden : ""}`;
  return message(pick.message, section(text), buttons(specs));
}

/** The newest things of one name; the form opens next. */
function valueList(command: Command, { message: text, choices }: PickValue): Message {
  const shown = choices
    .slice(0, 5)
    .map(([label, input], index) => runButton(label, `${dottedName(command)}:${index}`, input));
  return sentence(md`${text} Which one?`, buttons(shown));
}

/** Opens a picker for those who may run the command; where no modal can open, a button does. */
async function chooseTarget(lacks: Pick<LacksTarget, "message" | "named">, act: Act) {
  const { command, input } = lacks.named;
  const { interaction, reply, gateway } = act;
  const person = await personOf(act);
  await authorize({ command, person, channelId: interaction.channelId }, gateway);
  if ((await openPicker(lacks.named, act)) !== undefined) return;
  const label = `Choose a ${kindOf(targetArgument(command)).label}`;
  const choose = runButton(label, dottedName(command), input);
  await reply.privately(sentence(md`${lacks.message}`, buttons([choose])));
}

/** Runs the command on what was picked, where its picker was opened; a form of its own opens next. */
export async function targetChosen(act: Act<ViewSubmission>): Promise<void> {
  const { interaction, gateway } = act;
  const read = pickMeta.safeParse(parseJson(interaction.privateMetadata));
  const command = gateway.commands.find(({ name: one }) => one === read.data?.command);
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
