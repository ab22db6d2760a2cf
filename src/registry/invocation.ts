import type * as z from "zod";
import type { ArgsSchema, ChangeCommand, Command, ReadCommand } from "./define.ts";
import { withoutRolling } from "./rolling.ts";
import type { Target } from "./target.ts";
import { targetArgument } from "./arguments.ts";

/** Arguments as written, by key: text, lists of text, and `true` for switches. */
export type Input = Record<string, unknown>;

/** Parsed by the command's own schema. */
export type Args = z.output<ArgsSchema>;

/** Parsed once, from words, a button, or a form. It keeps `input`, which is what buttons, forms, and the journal store. */
export type Invocation = ReadInvocation | ChangeInvocation;

export interface ReadInvocation {
  command: ReadCommand;
  input: Input;
  args: Args;
}

export interface ChangeInvocation {
  command: ChangeCommand;
  input: Input;
  /** Undefined where a form will ask for what is missing; what was given is valid. */
  args: Args | undefined;
}

export function asksForChange(invocation: Invocation): invocation is ChangeInvocation {
  return invocation.command.kind === "change";
}

/** Whether it has a form to confirm; destructive commands always do. */
export function hasForm(command: Command): command is ChangeCommand {
  return command.kind === "change" && (command.class === "destroy" || command.dialog !== undefined);
}

/** The words that name its targets. */
export function targetWords({ command, input }: Pick<Invocation, "command" | "input">): string[] {
  const key = targetArgument(command)?.key;
  return key === undefined
    ? []
    : [input[key]].flat().filter((word): word is string => typeof word === "string");
}

/** The input for one target, by ID, because names can be reused; without the rollout's options. */
export function withTarget(command: Command, input: Input, { id }: Pick<Target, "id">): Input {
  const named = targetArgument(command);
  if (named === undefined || id === "") return input;
  return { ...withoutRolling(command, input), [named.key]: named.isList ? [id] : id };
}
