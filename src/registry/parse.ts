import { UserError } from "../errors.ts";
import { nearest } from "../nearest.ts";
import type { Command } from "./define.ts";
import { tokenize } from "./tokenize.ts";
import { type Argument, argumentsOf, flagName, usageOf } from "./usage.ts";

export type Input = Record<string, unknown>;

/** Words that name a command, with its arguments as written (`input`) and as checked (`args`); or why not, and the way out. */
export type Parsed =
  | { command: Command; input: Input; args: unknown }
  | { refusal: { text: string; hint: string | undefined } };

/** `vm restart web-1` → the command and its arguments. Unknown flags are refused, never ignored. Never throws. */
export function parseCommand(text: string, commands: readonly Command[]): Parsed {
  try {
    const words = tokenize(text);
    const found = findCommand(words, commands);
    const input = readArguments(found.command, found.rest);
    return { command: found.command, input, args: parseInput(found.command, input) };
  } catch (error) {
    if (error instanceof UserError) return { refusal: { text: error.message, hint: error.hint } };
    throw error;
  }
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
  const known = new Set(Object.keys(command.args.shape));
  const unknown = Object.keys(own).find((key) => !known.has(key));
  if (unknown !== undefined) {
    return { problems: [{ key: unknown, text: `/${command.name} has no ${flagName(unknown)}.` }] };
  }
  const parsed = command.args.safeParse(own, { reportInput: false });
  if (parsed.success) return { args: parsed.data };
  const all = argumentsOf(command);
  const problems = parsed.error.issues.map((issue) => {
    const key = String(issue.path[0] ?? "");
    const argument = all.find((one) => one.key === key);
    return {
      key,
      text: argument ? problemText(command, argument, own, issue.message) : issue.message,
    };
  });
  return { problems };
}

function problemText(command: Command, argument: Argument, own: Input, message: string): string {
  const { key } = argument;
  const shown = argument.isFlag ? flagName(key) : argument.isList ? key.replace(/s$/, "") : key;
  if (own[key] === undefined)
    return `/${command.name} needs ${argument.isFlag ? shown : `a ${shown}`}.`;
  if (argument.choices) return `${shown} is one of ${argument.choices.join(", ")}.`;
  return `${shown} ${issueText(message)}`;
}

function issueText(message: string | undefined): string {
  if (!message) return "can't be read.";
  const text = /^(must|should|is|can)/.test(message) ? message : `can't be that: ${message}`;
  return text.endsWith(".") ? text : `${text}.`;
}

function wrong(command: Command, text: string): UserError {
  return new UserError(
    text,
    `It is written \`${usageOf(command)}\`, for example \`${command.example}\`.`,
  );
}

function findCommand(
  words: readonly string[],
  commands: readonly Command[],
): { command: Command; rest: string[] } {
  const [root = "", verb = ""] = words;
  const command = commands.find(({ name }) => name === `${root} ${verb.toLowerCase()}`);
  if (command) return { command, rest: words.slice(2) };
  const ofRoot = commands.filter(({ name }) => name.startsWith(`${root} `));
  const help = commands.find(({ name }) => name === "gatehouse help");
  if (ofRoot.length === 0) {
    const roots = [...new Set(commands.map(({ name }) => name.split(" ")[0] ?? ""))];
    const near = nearest(root, roots);
    throw new UserError(
      `There is no command ${root}.`,
      near
        ? `Did you mean \`/${near}\`?`
        : `There are ${roots.map((one) => `\`/${one}\``).join(", ")}.`,
    );
  }
  if (help && (verb === "" || verb === "help"))
    return { command: help, rest: verb === "" && root === "gatehouse" ? [] : [root] };
  const near = nearest(
    verb.toLowerCase(),
    ofRoot.map(({ name }) => name.slice(root.length + 1)),
  );
  const show = commands.find(({ name }) => name === `${root} show`);
  throw new UserError(
    `/${root} has no ${verb}.`,
    near
      ? `Did you mean \`/${root} ${near}\`?`
      : show && words.length === 2
        ? `To look at it: \`/${root} show ${verb}\`. \`/${root} help\` lists what there is.`
        : `\`/${root} help\` lists what there is.`,
  );
}

function readArguments(command: Command, words: readonly string[]): Input {
  const all = argumentsOf(command);
  const input: Input = {};
  const positional: string[] = [];
  for (let index = 0; index < words.length; index++) {
    const word = words[index] ?? "";
    const flag = /^--(\p{L}[\p{L}\p{N}-]*)(?:=([\s\S]*))?$/u.exec(word);
    if (!flag) {
      positional.push(word);
      continue;
    }
    const argument = all.find(({ key }) => flagName(key) === `--${flag[1] ?? ""}`);
    if (!argument) throw unknownFlag(command, all, flag[1] ?? "");
    if (argument.key in input) throw wrong(command, `--${flag[1]} is given twice.`);
    if (argument.isSwitch) {
      if (flag[2] !== undefined) throw wrong(command, `--${flag[1]} takes no value.`);
      input[argument.key] = true;
      continue;
    }
    const value = flag[2] ?? words[++index];
    if (value === undefined || (flag[2] === undefined && /^--\p{L}/u.test(value))) {
      throw wrong(command, `--${flag[1]} needs a value.`);
    }
    input[argument.key] = argument.isList ? value.split(",").filter(Boolean) : value;
  }
  placePositional(command, all, positional, input);
  return input;
}

function placePositional(
  command: Command,
  all: readonly Argument[],
  words: readonly string[],
  input: Input,
): void {
  const waiting = [...words];
  for (const argument of all) {
    if (waiting.length === 0) return;
    if (argument.isFlag || argument.key in input) continue;
    if (argument.isList) input[argument.key] = waiting.splice(0);
    else if (argument.isRest) input[argument.key] = waiting.splice(0).join(" ");
    else input[argument.key] = waiting.shift();
  }
  if (waiting.length > 0)
    throw wrong(command, `That is one word too many: ${waiting[0]?.slice(0, 60)}.`);
}

function unknownFlag(command: Command, all: readonly Argument[], flag: string): UserError {
  const near = nearest(
    flag,
    all.map(({ key }) => flagName(key).slice(2)),
  );
  return new UserError(
    `/${command.name} has no --${flag.slice(0, 40)}. Nothing was done.`,
    near ? `Did you mean \`--${near}\`?` : `It is written \`${usageOf(command)}\`.`,
  );
}
