import type { ButtonSpec } from "../messages/message.ts";
import { metaOf } from "../registry/arguments.ts";
import type { Command } from "../registry/define.ts";
import { withoutRolling } from "../registry/rolling.ts";
import type { Target } from "../registry/target.ts";
import { needsDialog } from "./dialog.ts";
import { dotted, isChange } from "./talk.ts";

/** The argument of a command that names its target. */
export function targetKey(command: Command): string | undefined {
  return Object.entries(command.args.shape).find(
    ([, schema]) => metaOf(schema as never).target !== undefined,
  )?.[0];
}

/** The input for one target, by id: names may change hands, ids don't. How to go over several is no part of it. */
export function withTarget(
  command: Command,
  input: Record<string, unknown>,
  target: Target,
): Record<string, unknown> {
  const key = targetKey(command);
  if (key === undefined || target.id === "") return input;
  const isList = command.args.shape[key] !== undefined && key.endsWith("s");
  return { ...withoutRolling(command, input), [key]: isList ? [target.id] : target.id };
}

/** A button that runs a command on a target. What disrupts asks once more, unless a dialog of ours does. */
export function runButton(
  command: Command,
  input: Record<string, unknown>,
  target: Target,
): ButtonSpec {
  const verb = isChange(command) ? command.say.verb : "Show";
  const value = JSON.stringify(withTarget(command, input, target));
  const base: ButtonSpec = { label: verb, action: `run:${dotted(command)}`, value };
  if (!isChange(command) || command.class === "change" || needsDialog(command)) return base;
  return {
    ...base,
    confirm: {
      title: `${verb} ${target.name}?`,
      text: `${target.name} is ${target.status}.`,
      confirm: verb,
      style: "danger",
    },
  };
}
