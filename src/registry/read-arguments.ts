import { nearest } from "../text/nearest.ts";
import { UserError } from "../errors.ts";
import type { Command } from "./define.ts";
import type { Input } from "./invocation.ts";
import { type Argument, argumentsOf, flagName, usageOf } from "./arguments.ts";
import { type Word, isPolite, nameIn, namesIn } from "./tokenize.ts";

/** A refusal with the usage. */
export function wrong(command: Command, text: string): UserError {
  return new UserError(text, `Usage: \`${usageOf(command)}\`. Example: \`${command.example}\`.`);
}

/** Words after the command → arguments, by `--key value` or by position. Throws UserError, also for unknown flags. */
export function readArguments(command: Command, words: readonly Word[]): Input {
  const all = argumentsOf(command);
  const input: Input = {};
  const positional: Word[] = [];
  // `rest` takes flags too: `/gatehouse can-i vm list --status ERROR`
  const positions = all.filter(({ isFlag }) => !isFlag);
  const restAt = positions.findIndex(({ isRest }) => isRest);
  const waiting = words.values();
  for (const word of waiting) {
    const isRest = restAt >= 0 && positional.length > restAt;
    const flag = word.isQuoted || isRest ? null : flagIn(word.text);
    if (!flag) {
      positional.push(word);
      continue;
    }
    const argument = all.find(({ key }) => flagName(key) === `--${flag.name.toLowerCase()}`);
    if (!argument) throw unknownFlag(command, all, flag.name);
    const shown = flagName(argument.key);
    if (Object.hasOwn(input, argument.key)) throw wrong(command, `${shown} is given twice.`);
    if (argument.isSwitch) {
      if (flag.value !== undefined) throw wrong(command, `${shown} takes no value.`);
      input[argument.key] = true;
      continue;
    }
    const value = flag.value ?? takeValue(waiting.next().value);
    if (value === undefined) throw wrong(command, `${shown} needs a value.`);
    input[argument.key] = argument.isList ? value.split(",").filter(Boolean) : value;
  }
  place(command, positions, positional, input);
  return input;
}

function flagIn(text: string): { name: string; value: string | undefined } | undefined {
  const found = /^--(\p{L}[\p{L}\p{N}-]*)(?:=([\s\S]*))?$/u.exec(text);
  return found?.[1] === undefined ? undefined : { name: found[1], value: found[2] };
}

function takeValue(word: Word | undefined): string | undefined {
  if (word === undefined) return undefined;
  return !word.isQuoted && /^--\p{L}/u.test(word.text) ? undefined : word.text;
}

function place(
  command: Command,
  positions: readonly Argument[],
  words: readonly Word[],
  input: Input,
): void {
  const restAt = positions.findIndex(({ isRest }) => isRest);
  const waiting = words.filter(
    (word, index) => (restAt >= 0 && index >= restAt) || !isPolite(word),
  );
  for (const argument of positions) {
    const { key, isList, isRest, target } = argument;
    if (waiting.length === 0) return;
    if (Object.hasOwn(input, key)) continue;
    if (isRest) input[key] = asWritten(waiting.splice(0));
    else if (isList) input[key] = namesIn(waiting.splice(0));
    else if (target) input[key] = nameIn(argument, waiting);
    else input[key] = waiting.shift()?.text;
  }
  if (waiting.length > 0) {
    const count = waiting.length === 1 ? "one word" : `${waiting.length} words`;
    throw wrong(command, `That is ${count} too many: ${waiting[0]?.text.slice(0, 60)}.`);
  }
}

/** Words as one text, quoted where needed, but not as a whole. */
function asWritten(words: readonly Word[]): string {
  if (words.length === 1) return words[0]?.text ?? "";
  return words
    .map(({ text, isQuoted }) => (isQuoted && /\s|^$/.test(text) ? `"${text}"` : text))
    .join(" ");
}

function unknownFlag(command: Command, all: readonly Argument[], flag: string): UserError {
  const near = nearest(
    flag,
    all.map(({ key }) => flagName(key).slice(2)),
  );
  return new UserError(
    `/${command.name} has no --${flag.slice(0, 40)}. Nothing was done.`,
    near ? `Did you mean \`--${near}\`?` : `Usage: \`${usageOf(command)}\`.`,
  );
}
