import type * as z from "zod";
import { UserError } from "../errors.ts";
import { takeBreakGlass } from "./break-glass.ts";
import type { Command } from "./define.ts";
import { findCommand } from "./find-command.ts";
import { type Input, readArguments, wrong } from "./read-arguments.ts";
import { tokenize } from "./tokenize.ts";
import { type Argument, argumentsOf, flagName } from "./usage.ts";

export type { Input } from "./read-arguments.ts";

/**
 * Words that name a command, with its arguments as written (`input`) and as checked (`args`); or why not, and the way
 * out. `args` is undefined where a form will ask for what is missing.
 */
export type Parsed =
  | { command: Command; input: Input; args: unknown; breakGlass?: string }
  | { refusal: { text: string; hint: string | undefined } };

/** `vm restart web-1` → the command and its arguments. Unknown flags are refused, never ignored. Never throws. */
export function parseCommand(text: string, commands: readonly Command[]): Parsed {
  try {
    const { command, rest } = findCommand(tokenize(text), commands);
    const emergency = takeBreakGlass(command, rest);
    const input = readArguments(command, emergency.rest);
    const args = checkWritten(command, input);
    const { reason } = emergency;
    return { command, input, args, ...(reason === undefined ? {} : { breakGlass: reason }) };
  } catch (error) {
    if (error instanceof UserError) return { refusal: { text: error.message, hint: error.hint } };
    throw error;
  }
}

/** A form asks for what is missing, but not for its target, and what was given must be right. */
function checkWritten(command: Command, input: Input): unknown {
  const checked = checkInput(command, input);
  if ("args" in checked) return checked.args;
  const hasForm =
    command.kind === "change" && (command.dialog !== undefined || command.class === "destroy");
  const targets = argumentsOf(command).filter(({ target }) => target !== undefined);
  const problem = checked.problems.find(
    ({ key }) => !hasForm || Object.hasOwn(input, key) || targets.some((one) => one.key === key),
  );
  if (problem) throw wrong(command, problem.text);
  return undefined;
}

/** Checks arguments that were written down before, by a button, a modal or the journal. Throws UserError. */
export function parseInput(command: Command, input: Input): unknown {
  const checked = checkInput(command, input);
  if ("args" in checked) return checked.args;
  const [problem] = checked.problems;
  throw wrong(command, problem?.text ?? "That can't be read.");
}

/** The same with every problem, by argument: what a form shows on its fields. */
export function checkInput(
  command: Command,
  input: Input,
): { args: unknown } | { problems: { key: string; text: string }[] } {
  const own = Object.fromEntries(Object.entries(input).filter(([, value]) => value !== undefined));
  const unknown = Object.keys(own).find((key) => !Object.hasOwn(command.args.shape, key));
  if (unknown !== undefined) {
    const shown = flagName(unknown.slice(0, 40));
    return { problems: [{ key: unknown, text: `/${command.name} has no ${shown}.` }] };
  }
  const parsed = command.args.safeParse(own, { reportInput: false });
  if (parsed.success) return { args: parsed.data };
  const all = argumentsOf(command);
  const problems = parsed.error.issues.map((issue) => {
    const key = String(issue.path[0] ?? "");
    const argument = all.find((one) => one.key === key);
    return {
      key,
      text: argument ? problemText(command, argument, own, wordsOf(issue)) : issue.message,
    };
  });
  return { problems };
}

function problemText(command: Command, argument: Argument, own: Input, message: string): string {
  const { key, choices } = argument;
  const shown = argument.isFlag ? flagName(key) : argument.isList ? key.replace(/s$/, "") : key;
  const oneOf = choices ? `one of ${choices.join(", ")}` : undefined;
  if (own[key] === undefined) {
    // A rule over several arguments says more than that one is missing
    if (argument.isOptional) return `${shown} ${sentenceOf(message)}`;
    const what = argument.isFlag ? shown : `${article(shown)} ${shown}`;
    return `/${command.name} needs ${what}${oneOf ? `: ${oneOf}` : ""}.`;
  }
  return `${shown} ${oneOf ? `is ${oneOf}.` : sentenceOf(message)}`;
}

/** The library's own words about lengths, as a person says them. */
function wordsOf(issue: z.core.$ZodIssue): string {
  if (issue.code === "too_big" && issue.message.startsWith("Too big"))
    return `must be at most ${issue.maximum} characters`;
  if (issue.code === "too_small" && issue.message.startsWith("Too small"))
    return issue.minimum === 1
      ? "must not be empty"
      : `must be at least ${issue.minimum} characters`;
  return issue.message;
}

const article = (word: string) => (/^[aeiou]/i.test(word) ? "an" : "a");

function sentenceOf(message: string): string {
  const text = /^(must|should|is|can|or)\b/.test(message) ? message : `can't be that: ${message}`;
  return text.endsWith(".") ? text : `${text}.`;
}
