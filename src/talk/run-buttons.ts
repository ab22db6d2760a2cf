import {
  type ButtonSpec,
  type Message,
  buttons,
  limits,
  lines,
  md,
  message,
  name,
  section,
  sentence,
} from "../messages/message.ts";
import { type Confirming, askOnce } from "../core/permit/refusal.ts";
import {
  type ChangeCommand,
  type Command,
  type Target,
  asked,
  calledName,
  dottedName,
  isChange,
  runButton,
} from "../registry/define.ts";
import { type Input, type PickValue, hasForm, withTarget } from "../registry/invocation.ts";
import type { NamedCommand, WordsRefusal } from "../registry/parse.ts";
import type { PickOne } from "../core/submit/resolve-targets.ts";
import type { Act } from "./gateway-context.ts";

/** Runs what was probably meant. What interrupts and has no form asks once more, and is below. */
export function guessButton(
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
export function pressToGoOn(command: ChangeCommand, input: Input, target: Target): Message {
  const what = target.name === "" ? md`a new project` : md`${name(calledName(target))}`;
  const ask = md`${command.say.verb} ${what}? Press the button: a message alone changes nothing.`;
  const text = lines(ask, ...(command.risk?.({ target, input, vms: [] }) ?? []));
  const { confirm: _asked, ...button } = targetButton(command, input, target);
  const once = hasForm(command) ? button : { ...button, action: `${button.action}${asked}` };
  return sentence(text, buttons([once]));
}

/** The same, for commands that have no target: thaw, digest now. */
export function pressToRun(command: Command, input: Input): Message {
  const label = `Run /${command.name}`;
  const text = md`${label}? Press the button: a message alone only reads.`;
  return sentence(text, buttons([runButton(label, dottedName(command), input)]));
}

/** A button for each candidate, which runs the same command on it. */
export function pickList(
  { command, input }: NamedCommand,
  pick: PickOne,
  { gateway }: Act,
): Message {
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
export function valueList(command: Command, { message: text, choices }: PickValue): Message {
  const shown = choices
    .slice(0, 5)
    .map(([label, input], index) => runButton(label, `${dottedName(command)}:${index}`, input));
  return sentence(md`${text} Which one?`, buttons(shown));
}
