import { hash } from "node:crypto";
import { redisTrouble } from "../../redis/trouble.ts";
import {
  buttons,
  type ButtonSpec,
  message,
  type Message,
  readable,
  section,
} from "../../messages/message.ts";
import { lines, md, name } from "../../messages/text.ts";
import { needsConfirmation } from "../../policy/refusal.ts";
import {
  type ChangeCommand,
  type Command,
  isChange,
  dottedName,
  calledName,
  type Target,
} from "../../registry/define.ts";
import {
  asksForChange,
  type ChangeInvocation,
  hasForm,
  type Input,
  type Invocation,
  withTarget,
  type Person,
} from "../../registry/invocation.ts";
import type { RequestRecord } from "../../requests/journal/record.ts";
import { errorReply, say } from "../error-reply.ts";
import type { Interaction, Reply } from "../receive/interaction.ts";
import { answer } from "./answer.ts";
import { authorize, authorizeTargets } from "./authorize.ts";
import { asksFirst, sessionOn } from "./console.ts";
import { openDialog } from "./dialog.ts";
import type { GatewayContext } from "./gateway-context.ts";
import {
  PickOne,
  resolveOne,
  resolveSeveral,
  withSnapshotId,
} from "../../requests/submit/resolve.ts";
import { proposeRollout } from "./rollout-plan.ts";
import { gatherIfNeeded, placeOf, submitChange } from "./submit-change.ts";

/** Runs a command, typed, pressed or mentioned: policy decides before names are resolved. */
export async function run(
  invocation: Invocation,
  interaction: Interaction,
  reply: Reply,
  gateway: GatewayContext,
): Promise<void> {
  const { command, input } = invocation;
  const { userId, teamId, channelId } = interaction;
  try {
    const person = await gateway.person(userId, teamId);
    await authorize({ command, input, targets: [], person, channelId }, gateway);
    const session = await sessionOn(invocation, person, interaction, gateway);
    // A message doesn't prove that a person wrote it: everything but a plain read needs a press (decision 005)
    if (interaction.kind === "mention" && command.kind === "read" && command.class !== "read")
      return await reply.privately(pressToRun(command, input));
    if (asksForChange(invocation)) await change(invocation, person, interaction, reply, gateway);
    else if (!session || !(await asksFirst(session, person, interaction, reply, gateway)))
      await answer(invocation, person, interaction, reply, gateway);
  } catch (error) {
    if (error instanceof PickOne) return reply.privately(pickList(command, input, error));
    if (redisTrouble(error) !== undefined) throw error;
    await reply.privately(errorReply(error, gateway.log));
  }
}

async function change(
  invocation: ChangeInvocation,
  person: Person,
  interaction: Interaction,
  reply: Reply,
  gateway: GatewayContext,
): Promise<void> {
  const { command, input } = invocation;
  const several = await resolveSeveral(invocation, gateway);
  if (several) return proposeRollout(invocation, several, person, interaction, reply, gateway);
  const target = await resolveOne(invocation, gateway);
  const place = placeOf(interaction, gateway);
  await authorizeTargets({ command, input, targets: [target], person, ...place }, gateway);
  if (interaction.kind === "mention") return reply.privately(pressToGoOn(command, input, target));
  const asksOnce = needsConfirmation(gateway.policy, command, target) && !isConfirmed(interaction);
  if (hasForm(command) || asksOnce) {
    const exact = await withSnapshotId(command, input, target, gateway);
    if (await openDialog(command, target, exact, interaction, reply, gateway)) return;
    return reply.privately(pressToGoOn(command, input, target));
  }
  const facts = await gatherIfNeeded(command, target, input, gateway);
  const isNew = await submitChange(
    {
      command,
      input: withTarget(command, input, target),
      target,
      person,
      ...place,
      via: viaOf(interaction),
      interactionId: onceOf(interaction),
    },
    facts,
    reply,
    gateway,
  );
  if (isNew && interaction.kind === "button") await reply.replace(requested(command, target));
}

/** A second press of one button in one message, however late, is the first again. */
function onceOf(interaction: Interaction): string {
  if (interaction.kind !== "button" || interaction.messageTs === undefined) return interaction.id;
  if (interaction.id.startsWith("after:")) return interaction.id;
  const { channelId, messageTs, action, value } = interaction;
  return `press:${hash("sha256", JSON.stringify([channelId, messageTs, action, value]))}`;
}

/** In place of the message that only its reader saw: its buttons are used. */
function requested({ say: { verb } }: ChangeCommand, target: Target): Message {
  return say(
    md`✓ ${verb} ${name(calledName(target))}: requested. Its message will show the result.`,
  );
}

/** What a press has confirmed: a button that asks by itself says so in its action. */
const asked = ":asked";

function isConfirmed(interaction: Interaction): boolean {
  if (interaction.kind === "submission") return true;
  return interaction.kind === "button" && interaction.action.endsWith(asked);
}

function viaOf({ kind }: Interaction): RequestRecord["via"] {
  return kind === "button" ? "button" : kind === "submission" ? "modal" : "command";
}

/** A button that runs a command on a target, which asks like typed words do. */
export function runButton(command: Command, input: Input, target: Target): ButtonSpec {
  const label = isChange(command) ? command.say.verb : "Show";
  const value = JSON.stringify(withTarget(command, input, target));
  return { label, action: `run:${dottedName(command)}`, value };
}

/** For mentions, and triggers that were too old. The press is the confirmation. */
function pressToGoOn(command: ChangeCommand, input: Input, target: Target): Message {
  const what = target.name === "" ? md`a new project` : md`${name(calledName(target))}`;
  const ask = md`${command.say.verb} ${what}? Press the button: a message alone changes nothing.`;
  const text = lines(ask, ...(command.risk?.({ target, input, vms: [] }) ?? []));
  const button = runButton(command, input, target);
  const once = hasForm(command) ? button : { ...button, action: `${button.action}${asked}` };
  return message(readable(text), section(text), buttons([once]));
}

/** The same, for commands that have no target: thaw, digest now. */
function pressToRun(command: Command, input: Input): Message {
  const label = `Run /${command.name}`;
  const value = JSON.stringify(input);
  const text = md`${label}? Press the button: a message alone only reads.`;
  const button = { label, action: `run:${dottedName(command)}`, value };
  return message(readable(text), section(text), buttons([button]));
}

/** A button for each candidate, which runs the same command on it. */
function pickList(command: Command, input: Input, pick: PickOne): Message {
  const specs = pick.candidates.slice(0, 20).map((target): ButtonSpec => {
    const label =
      target.kind === "vm"
        ? `${target.name} in ${target.projectName ?? target.projectId}`
        : target.name;
    const spec = runButton(command, input, target);
    return { ...spec, label, action: `${spec.action}:${target.id}` };
  });
  const more = pick.candidates.length - specs.length;
  return message(
    pick.message,
    section(
      more > 0
        ? md`${pick.message} ${more} more are not shown: \`project/name\` names one exactly.`
        : md`${pick.message}`,
    ),
    buttons(specs),
  );
}
