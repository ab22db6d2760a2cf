import { type Message } from "../messages/blocks.ts";
import type { ButtonSpec } from "../messages/buttons.ts";
import { sentence, card } from "../messages/card.ts";
import { limits } from "../messages/limits.ts";
import { lines, md, name } from "../messages/markdown.ts";
import { waysRow } from "../messages/parts.ts";
import { targetButton } from "../core/cards/target-button.ts";
import { vmOf } from "../core/submit/resolve-targets.ts";
import {
  type ChangeCommand,
  type Command,
  type Target,
  argumentsOf,
  confirmedSuffix,
  calledName,
  dottedName,
  isChange,
  runButton,
} from "../registry/define.ts";
import { type Input, type PickValue, hasForm } from "../registry/invocation.ts";
import type { NamedCommand, WordsRefusal } from "../registry/parse.ts";
import type { PickOne } from "../core/submit/resolve-targets.ts";
import type { Act } from "./gateway-context.ts";

/**
 * A button that runs what was probably meant. A command that interrupts and has no form asks first.
 * Empty when the value is too long for Slack.
 */
export function guessButton(
  { command, input, words }: WordsRefusal["near"][number],
  index: number,
): ButtonSpec[] {
  const base = runButton(`/${words}`, `${dottedName(command)}:${index}`, input);
  if (base.value.length > limits.buttonValue) return [];
  const verb = isChange(command) ? command.say.verb : "Show";
  if (command.class !== "disrupt" || hasForm(command)) return [base];
  const text = `/${words}. What runs there is interrupted.`;
  const confirm = { title: `${verb}?`, text, confirm: verb, style: "danger" as const };
  return [{ ...base, action: `${base.action}${confirmedSuffix}`, confirm }];
}

/**
 * A message with a button that runs the change, for mentions and for forms that Slack didn't open.
 * The press is the confirmation. Where the change has nothing to do in the VM's status, another one
 * is offered, as by the request's card.
 */
export function pressToGoOn(
  command: ChangeCommand,
  input: Input,
  target: Target,
  commands: readonly Command[],
): Message {
  const refused = command.on === "vm" ? command.effect.notNow?.(vmOf(target)) : undefined;
  const instead = commands.find((candidate) => dottedName(candidate) === refused?.instead?.command);
  if (refused && instead)
    return sentence(md`${refused.text}`, waysRow([targetButton(instead, {}, target)]));
  const targetWords = target.name === "" ? md`a new project` : md`${name(calledName(target))}`;
  const ask = md`${command.say.verb} ${targetWords}? Press the button: a message alone changes nothing.`;
  const text = lines(ask, ...(command.risk?.({ target, input, vms: [] }) ?? []));
  const { confirm: _asked, ...button } = targetButton(command, input, target);
  const once = hasForm(command)
    ? button
    : { ...button, action: `${button.action}${confirmedSuffix}` };
  return sentence(text, waysRow([once]));
}

/**
 * A message with a button that runs a mentioned command without a target, such as `thaw` or `digest
 * now`.
 */
export function pressToRun(command: Command, input: Input): Message {
  const label = `Run /${calledAs(command, input)}`;
  const text = md`${label}? Press the button: a message alone only reads.`;
  return sentence(text, waysRow([runButton(label, dottedName(command), input)]));
}

/** Where an alias is the choice of the first argument, the alias alone: `gatehouse handover`. */
function calledAs(command: Command, input: Input): string {
  const [first] = argumentsOf(command);
  const choice = first?.choices && input[first.key];
  const alias = command.aliases?.find((candidate) => candidate === choice);
  return alias === undefined ? command.name : `${command.name.split(" ", 1)[0]} ${alias}`;
}

/** A message with a button for each candidate, which runs the same command on it. */
export function pickList(
  { command, input }: NamedCommand,
  pick: PickOne,
  { gateway }: Act,
): Message {
  const shown = pick.candidates.slice(0, 20);
  const called = Map.groupBy(shown, placedName);
  const specs = shown.map((target): ButtonSpec => {
    const placed = placedName(target);
    const isShared = (called.get(placed)?.length ?? 0) > 1;
    const label = isShared ? `${placed} (${target.id})` : placed;
    const spec = targetButton(command, input, target, gateway.policy);
    return { ...spec, label, about: undefined, action: `${spec.action}:${target.id}` };
  });
  const more = pick.candidates.length - specs.length;
  const hidden = md` ${more} more are not shown: \`project/name\` names one exactly.`;
  return card({ title: md`${pick.message}${more > 0 ? hidden : ""}`, ways: specs });
}

/** `web-1 in payments`. A project may have several VMs of one name. */
const placedName = ({ kind, name: called, projectName, projectId }: Target) =>
  kind === "vm" ? `${called} in ${projectName ?? projectId}` : called;

/** A message with a button for each of the newest things of one name. A press opens the form. */
export function valueList(command: Command, { message: text, choices }: PickValue): Message {
  const shown = choices
    .slice(0, 5)
    .map(([label, input], index) => runButton(label, `${dottedName(command)}:${index}`, input));
  return card({ title: md`${text} Which one?`, ways: shown });
}
