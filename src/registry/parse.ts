import * as z from "zod";
import { UserError } from "../errors.ts";
import { fold, plainForm } from "../text/fold.ts";
import { timeNamedIn } from "../text/future-words.ts";
import { allNearest, nearest } from "../text/nearest.ts";
import { commandWithRole } from "./command-roles.ts";
import {
  type Command,
  verbsOf,
  targetArgument,
  type Argument,
  argumentsOf,
  flagName,
  takesBreakGlass,
  usageOf,
} from "./define.ts";
import {
  type Args,
  hasForm,
  isOpen,
  type Input,
  type Invocation,
  isPolite,
  nameIn,
  namesIn,
  tokenize,
  type Word,
} from "./invocation.ts";

export type Parsed = (Invocation & { breakGlass?: string }) | { refusal: WordsRefusal };

export interface WordsRefusal {
  text: string;
  hint: string | undefined;
  /**
   * The commands that were probably meant. They are guesses, and run only when a person presses
   * their button.
   */
  near: readonly (NamedCommand & { words: string })[];
  /** Set when only the target is missing, which can be asked for. */
  lacks?: NamedCommand;
  /** The words without their slash command, when they may be a sentence rather than a command. */
  sentence?: string;
}

/** A command and its arguments, as buttons carry them. */
export type NamedCommand = Pick<Invocation, "command" | "input">;

/** Thrown when only the target is missing. */
export class LacksTarget extends UserError {
  readonly named: NamedCommand;

  constructor({ message, hint }: UserError, named: NamedCommand) {
    super(message, hint);
    this.named = named;
  }
}

/** Parses `vm restart web-1` into the command and its arguments, or a refusal. Never throws. */
export function parseCommand(text: string, commands: readonly Command[]): Parsed {
  let isEmergency = false;
  let words: readonly Word[] = [];
  try {
    words = withTimeLast(tokenize(text), commands);
    const { command, rest } = findCommand(words, commands);
    const { breakGlass, ...input } = readArguments(command, rest);
    if (typeof breakGlass !== "string") return parseInvocation(command, input);
    isEmergency = true;
    // Break-glass opens no form, so nothing may be missing.
    return { ...parseInvocation(command, input, { mayBeShort: false }), breakGlass };
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    const near = (error instanceof Unclear ? error.near : []).flatMap((guess) => {
      const named = namedBy(guess);
      return named ? { ...named, words: asTyped(guess) } : [];
    });
    const lacks = error instanceof LacksTarget && !isEmergency ? { lacks: error.named } : {};
    const spokenWords = withoutRootWord(words, commands);
    const isSentence =
      questionWord.test(spokenWords[0]?.text ?? "") ||
      (error instanceof Unclear && error.isSentence);
    const sentence = isSentence ? { sentence: spokenWords.map((word) => word.text).join(" ") } : {};
    return { refusal: { text: error.message, hint: error.hint, near, ...lacks, ...sentence } };
  }
}

/** `at 5pm restart web-2` is `restart web-2 at 5pm`. */
function withTimeLast(words: readonly Word[], commands: readonly Command[]): readonly Word[] {
  if (under(rootOf(words[0]?.text ?? ""), commands).length > 0) return words;
  const text = words.map((word) => word.text).join(" ");
  const time = timeNamedIn(text, { onlyNames: false });
  if (time === undefined || !plainForm(text).startsWith(time)) return words;
  const length = time.split(" ").length;
  return [...words.slice(length), ...words.slice(0, length)];
}

/** The first word of a question, which commands are rarely called. */
const questionWord =
  /^(?:who|what|why|when|where|which|how|is|are|was|were|do|does|did|has|have)(?:['’]?s)?$/i;

function withoutRootWord(words: readonly Word[], commands: readonly Command[]): readonly Word[] {
  const polite = words.filter((word) => !isPolite(word));
  const hasRoot = under(rootOf(polite[0]?.text ?? ""), commands).length > 0;
  return hasRoot ? polite.slice(1) : polite;
}

/** The command that a button for these words would run. Undefined when they can't be run. */
function namedBy({ command, rest }: FoundCommand): NamedCommand | undefined {
  try {
    const input = readArguments(command, rest);
    parseInvocation(command, input);
    return { command, input };
  } catch (error) {
    if (error instanceof LacksTarget) return error.named;
    if (error instanceof UserError) return undefined;
    throw error;
  }
}

/** Whether the command can be run with these words. A button can't carry break-glass; words can. */
function fits(guess: FoundCommand): boolean {
  try {
    const { breakGlass: _reason, ...input } = readArguments(guess.command, guess.rest);
    parseInvocation(guess.command, input);
    return true;
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    return error instanceof LacksTarget;
  }
}

const isReadable = ({ command, rest }: FoundCommand): boolean => {
  const named = namedBy({ command, rest });
  const target = targetArgument(command);
  return named !== undefined && (!target || target.isOptional || target.key in named.input);
};

/** A command and the words after it. */
interface FoundCommand {
  command: Command;
  rest: readonly Word[];
}

/**
 * An alias that is also a choice of the command's first argument is passed as that argument:
 * `handover` means `digest handover`.
 */
const foundAs = (commands: readonly Command[], rest: readonly Word[], verb = ""): FoundCommand[] =>
  commands.map((command) => {
    const isChoice = argumentsOf(command)[0]?.choices?.includes(verb) === true;
    return { command, rest: isChoice ? [plainWord(verb), ...rest] : rest };
  });

interface UnclearWords {
  /** What else to do. */
  hint?: string | undefined;
  /** What to do when nothing is near. */
  otherwise?: string | undefined;
  /** Whether it is like a command, although no guess takes its words. */
  isLikeOne?: boolean;
}

/**
 * Thrown for words that are no command. `near` is what they probably mean: of the guesses, those
 * that take all the words. A guess isn't run.
 */
class Unclear extends UserError {
  readonly near: readonly FoundCommand[];
  /** Whether the words are like no command at all, so that they may be a sentence. */
  readonly isSentence: boolean;

  constructor(
    message: string,
    guesses: readonly FoundCommand[],
    { hint, otherwise = hint, isLikeOne = false }: UnclearWords = {},
  ) {
    const near = guesses.filter(fits);
    const meant = `Did you mean ${near.map((guess) => `\`/${asTyped(guess)}\``).join(" or ")}?`;
    super(message, near.length > 0 ? [meant, hint].filter(Boolean).join(" ") : otherwise);
    this.near = near;
    this.isSentence = near.length === 0 && !isLikeOne;
  }
}

/**
 * Finds the command in `vm restart web-1`, by its name or an alias. `vm` may be missing if only one
 * command can be meant. Throws Unclear and UserError.
 */
function findCommand(typed: readonly Word[], commands: readonly Command[]): FoundCommand {
  const words = typed.filter((word, index) => index > 1 || !isPolite(word));
  const root = rootOf(words[0]?.text ?? "");
  const help = commandWithRole(commands, "help");
  const ofRoot = under(root, commands);
  if (ofRoot.length === 0) {
    if (help && (root === "" || root === "--help")) return { command: help, rest: [] };
    return withoutRoot(words, root, commands);
  }
  const { verb, rest } = verbIn(words.slice(1), ofRoot);
  const [match] = foundAs(answering(verb, ofRoot), rest, verb);
  if (help && match && rest.some(isHelpFlag))
    return { command: help, rest: match.command.name.split(" ").map(plainWord) };
  if (match) return match;
  if (help && (verb === "" || verb === "help" || verb === "--help")) {
    const topic = root === "gatehouse" ? [] : [plainWord(root)];
    return { command: help, rest: [...topic, ...rest] };
  }
  throw unknownVerb(root, words[1]?.text ?? "", rest, ofRoot, commands);
}

const rootOf = (text: string) => fold(text).replace(/^\/+/, "");

const isHelpFlag = ({ text, isQuoted }: Word) => fold(text) === "--help" && !isQuoted;

const plainWord = (text: string): Word => ({ text, isQuoted: false });

function under(root: string, commands: readonly Command[]): Command[] {
  const start = `${root} `;
  return commands.filter(({ name }) => name.startsWith(start));
}

/** Two words if they are a command (`pins drop`), otherwise one. */
function verbIn(words: readonly Word[], commands: readonly Command[]) {
  const [first = "", second = ""] = words.map(({ text }) => fold(text));
  const both = `${first} ${second}`;
  return answering(both, commands).length > 0
    ? { verb: both, rest: words.slice(2) }
    : { verb: first, rest: words.slice(1) };
}

/** The commands with this verb. A command's own name takes precedence over an alias. */
function answering(verb: string, commands: readonly Command[]): Command[] {
  return commands
    .filter((command) => verbsOf(command).includes(verb))
    .toSorted((a, b) => verbsOf(a).indexOf(verb) - verbsOf(b).indexOf(verb));
}

/** The commands whose verbs are nearest to this word. */
function namedLike(
  typed: string,
  rest: readonly Word[],
  commands: readonly Command[],
): FoundCommand[] {
  const words = allNearest(typed, commands.flatMap(verbsOf));
  const all = words.flatMap((word) => foundAs(answering(word, commands), rest, word));
  const isFirst = (guess: FoundCommand, at: number) =>
    all.findIndex((o) => o.command === guess.command) === at;
  return all.filter(isFirst).slice(0, 3);
}

/** `restart web-1`: a mention needs no `vm`. */
function withoutRoot(
  words: readonly Word[],
  root: string,
  commands: readonly Command[],
): FoundCommand {
  const { verb, rest } = verbIn([plainWord(root), ...words.slice(1)], commands);
  const ofKind = verbOfKind(verb, rest, commands);
  if (ofKind) return ofKind;
  const meant = foundAs(answering(verb, commands), rest, verb);
  const readable = meant.filter(isReadable);
  const likely = readable.length > 0 ? readable : meant;
  const own = likely.filter(({ command }) => verbsOf(command)[0] === verb);
  const [only] = own.length === 1 ? own : likely.length === 1 ? likely : [];
  if (only) return only;
  if (likely.length > 1) throw new Unclear(`${cut(root)} can be several commands.`, likely);
  const suggested = suggestion(root, "There is nothing called", rest, commands);
  throw suggested ?? unknownRoot(words[0]?.text ?? "", root, rest, commands);
}

/**
 * `list all vms in payments` is `vm list payments`: what kind of thing is meant stands after the
 * verb. A VM or project with the name of a kind must be quoted.
 */
function verbOfKind(
  verb: string,
  words: readonly Word[],
  commands: readonly Command[],
): FoundCommand | undefined {
  const kindAt = words.findIndex((word) => !isFiller(word, ["all", "a", "an", "the", "my", "our"]));
  const root = kindNamed(words[kindAt]);
  if (root === undefined) {
    // `show the payments project`
    const last = kindNamed(words.at(-1));
    const [match] = last ? foundAs(answering(verb, under(last, commands)), words.slice(0, -1)) : [];
    return words.length > 1 ? match : undefined;
  }
  const ofRoot = under(root, commands);
  const [preposition, ...others] = words.slice(kindAt + 1);
  const isBetween = preposition !== undefined && isFiller(preposition, ["in", "of", "called"]);
  const rest = isBetween ? others : words.slice(kindAt + 1);
  const [match] = foundAs(answering(verb, ofRoot), rest, verb);
  const suggested = match ? undefined : suggestion(verb, `/${root} has no`, rest, ofRoot);
  if (suggested) throw suggested;
  return match;
}

function kindNamed(word: Word | undefined): string | undefined {
  if (!word || word.isQuoted) return undefined;
  return /^(vm|project)s?$/.exec(fold(word.text))?.[1];
}

const isFiller = ({ text, isQuoted }: Word, fillers: readonly string[]) =>
  !isQuoted && fillers.includes(fold(text));

function unknownRoot(
  typed: string,
  root: string,
  rest: readonly Word[],
  commands: readonly Command[],
): UserError {
  const roots = [...new Set(commands.map(({ name }) => name.split(" ")[0] ?? ""))];
  const all = `The commands are ${roots.map((slashCommand) => `\`/${slashCommand}\``).join(", ")}.`;
  if (root === "") return new Unclear("There is no command in that text.", [], { hint: all });
  const text = `There is no command ${cut(typed)}.`;
  const near = nearest(root, roots);
  if (near !== undefined) {
    const ofRoot = under(near, commands);
    const [command] = answering(fold(rest[0]?.text ?? ""), ofRoot);
    const otherwise = `Did you mean \`/${near}\`?`;
    const guesses = command ? [{ command, rest: rest.slice(1) }] : [];
    return new Unclear(text, guesses, { otherwise, isLikeOne: true });
  }
  const [last] = rest.length === 1 ? rest : [];
  // `web-1 restart` has the name in place of the verb.
  const turned = last ? foundAs(answering(fold(last.text), commands), [plainWord(typed)]) : [];
  const guesses = turned.length > 0 ? turned : namedLike(root, rest, commands);
  return new Unclear(text, guesses, { otherwise: all });
}

function unknownVerb(
  root: string,
  typed: string,
  rest: readonly Word[],
  ofRoot: readonly Command[],
  commands: readonly Command[],
): UserError {
  const verb = fold(typed);
  const suggested = suggestion(verb, `/${root} has no`, rest, ofRoot);
  if (suggested) return suggested;
  const text = `/${root} has no ${cut(typed)}.`;
  const elsewhere = foundAs(answering(verb, commands), rest, verb);
  const meant = elsewhere.length > 0 ? elsewhere : namedLike(typed, rest, ofRoot);
  const list = `\`/${root} help\` lists its commands.`;
  if (meant.length > 0) return new Unclear(text, meant, { otherwise: list, isLikeOne: true });
  // `/vm web-1 restart` and `/vm web-1` have a name in place of the verb.
  const [next] = answering(fold(rest[0]?.text ?? "show"), ofRoot);
  const turned = next ? [{ command: next, rest: [plainWord(typed), ...rest.slice(1)] }] : [];
  return new Unclear(text, turned, { hint: list });
}

/** A word that has no command, but suggests one: why it isn't the same, and the button. */
function suggestion(
  verb: string,
  start: string,
  rest: readonly Word[],
  commands: readonly Command[],
): Unclear | undefined {
  const command = commands.find(({ suggestFor = {} }) => Object.hasOwn(suggestFor, verb));
  return (
    command &&
    new Unclear(`${start} ${verb}: ${command.suggestFor?.[verb]}.`, foundAs([command], rest), {
      isLikeOne: true,
    })
  );
}

/** `vm restart web-1`, shortened for a code span. */
function asTyped({ command, rest }: FoundCommand): string {
  return cut([command.name, ...rest.map(quotable)].join(" "), 130);
}

function quotable({ text, isQuoted }: Word): string {
  const shown = cut(text).replaceAll(/[`"]/g, "");
  return isQuoted || /\s/.test(shown) ? `"${shown}"` : shown;
}

function cut(text: string, most = 60): string {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}

/**
 * `--break-glass "reason"`, for commands that disrupt or destroy. The policy says who may use it.
 */
const emergencyArguments = argumentsOf({
  args: z.object({ breakGlass: z.string().optional().meta({ isFlag: true }) }),
});

function reasonIn(command: Command, written = ""): string {
  const reason = written.trim();
  if (reason.length >= 3) return reason.slice(0, 300);
  throw new UserError(
    "--break-glass needs a reason.",
    `Like \`${command.example} --break-glass "why it can't wait"\`.`,
  );
}

/**
 * Reads the words after the command into arguments, by `--key value` or by position. Throws
 * UserError, also for unknown flags.
 */
function readArguments(command: Command, words: readonly Word[]): Input {
  const own = argumentsOf(command);
  const all = takesBreakGlass(command) ? [...own, ...emergencyArguments] : own;
  const input: Input = {};
  const positional: Word[] = [];
  // A text takes flags that aren't the command's own: `/gatehouse can-i vm list --status ERROR`.
  const positions = all.filter(({ isFlag }) => !isFlag);
  const restAt = positions.findIndex(({ isRest }) => isRest);
  const hasFlags = all.some(({ isFlag }) => isFlag);
  // What a change is told, as a reason, may be any text.
  const refusesFlags = hasFlags && command.kind === "read";
  const waiting = words.values();
  for (const word of waiting) {
    const isRest = restAt >= 0 && positional.length > restAt;
    const flag = word.isQuoted ? undefined : flagIn(word.text);
    const argument = flag && all.find(({ key }) => flagName(key) === `--${fold(flag.name)}`);
    // Flags of the command stand anywhere around a text, whose own words may have dashes.
    const isOfText = isRest
      ? !argument?.isFlag && !refusesFlags
      : restAt === 0 && !argument && !hasFlags;
    if (!flag || isOfText) {
      positional.push(word);
      continue;
    }
    if (!argument) throw unknownFlag(command, all, flag.name);
    const shown = flagName(argument.key);
    if (Object.hasOwn(input, argument.key)) throw wrong(command, `${shown} is given twice.`);
    if (argument.isSwitch) {
      if (flag.value !== undefined) throw wrong(command, `${shown} takes no value.`);
      input[argument.key] = true;
      continue;
    }
    const value = flag.value ?? takeValue(waiting.next().value);
    if (emergencyArguments.includes(argument)) {
      input[argument.key] = reasonIn(command, value);
      continue;
    }
    const needed = argument.choices ? `one of ${argument.choices.join(", ")}` : "a value";
    if (value === undefined) throw wrong(command, `${shown} needs ${needed}.`);
    input[argument.key] = argument.isList
      ? value.split(",").filter(Boolean)
      : readValue(argument, value);
  }
  place(command, positions, positional, input);
  return input;
}

/** A choice may be written in any case and width. Everything else stays as it was typed. */
const readValue = ({ choices }: Argument, text: string): string =>
  choices?.find((choice) => fold(choice) === fold(text)) ?? text;

function flagIn(text: string): { name: string; value: string | undefined } | undefined {
  const match = /^--(\p{L}[\p{L}\p{N}\p{Pd}]*)(?:[=＝]([\s\S]*))?$/u.exec(text);
  return match?.[1] === undefined ? undefined : { name: match[1], value: match[2] };
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
  if (isForLater(command)) refuseTime(command, positions, waiting);
  for (const argument of positions) {
    const { key, isList, isRest, target } = argument;
    if (waiting.length === 0) return;
    if (Object.hasOwn(input, key)) continue;
    if (isRest) input[key] = asWritten(waiting.splice(0));
    else if (isList || target) {
      const before = [...waiting];
      const names = isList ? namesIn(waiting.splice(0)) : nameIn(argument, waiting);
      // Without a name, as in `restart it`, the target is asked for.
      if (typeof names === "string" || (names && names.length > 0)) input[key] = names;
      const last = before.at(-waiting.length - 1);
      if (target && !isList) refuseOthers(command, argument, last, waiting);
    } else input[key] = readValue(argument, waiting.shift()?.text ?? "");
  }
  if (waiting.length > 0) {
    const count = waiting.length === 1 ? "one word" : `${waiting.length} words`;
    throw wrong(command, `That is ${count} too many: ${waiting[0]?.text.slice(0, 60)}.`);
  }
}

/** Whether it runs something that people ask for at a time: a change, or what is requested like one. */
const isForLater = (command: Command) =>
  command.kind === "change" || command.asRequest !== undefined;

/** A change that is to run later must not run now. Throws UserError. */
function refuseTime(
  command: Command,
  positions: readonly Argument[],
  words: readonly Word[],
): void {
  const restAt = positions.findIndex(({ isRest }) => isRest);
  const onlyNames = positions.every(({ isList }) => isList);
  const read = words.map(({ text, isQuoted }) => (isQuoted ? '""' : text));
  const spoken = (restAt < 0 ? read : read.slice(0, restAt)).join(" ");
  const time = timeNamedIn(spoken, { onlyNames });
  if (time === undefined) return;
  const [before = "", after = ""] = plainForm(spoken).replaceAll(/\s+/g, " ").split(time);
  const rest = cut(`${before}${after}`.replaceAll(/[`"]|\s[.,!?]+$/g, "").trim(), 200);
  const later = `${verbsOf(command)[0]} ${rest}`.trim();
  throw new UserError(
    `Gatehouse doesn't schedule changes, so nothing was done: that names a time (${cut(time)}).`,
    `Type \`/${`${command.name} ${rest}`.trim()}\` when it is to run. \`/remind me to ${later} ${time}\` has Slack remind you.`,
  );
}

/** Throws UserError where several are named, and the command takes one. */
function refuseOthers(
  command: Command,
  { target, isSeveral }: Argument,
  last: Word | undefined,
  waiting: readonly Word[],
): void {
  const kind = target === "vm" ? "VM" : "project";
  if (isSeveral || !last || !isOpen(last, waiting)) return;
  const names = namesIn([last, ...waiting]).slice(0, 5);
  const each = names.map((named) => `\`/${command.name} ${cut(named)}\``).join(", ");
  throw new UserError(
    `/${command.name} takes one ${kind}, not several.`,
    `Run it for each: ${each}.`,
  );
}

/** Words as one text, quoted where needed, but not as a whole. */
function asWritten(words: readonly Word[]): string {
  if (words.length === 1) return words[0]?.text ?? "";
  return words
    .map(({ text, isQuoted }) => (isQuoted && /\s|^$/.test(text) ? `"${text}"` : text))
    .join(" ");
}

function unknownFlag(command: Command, all: readonly Argument[], flag: string): UserError {
  const names = all.map(({ key }) => flagName(key).slice(2));
  const near = nearest(flag, names);
  return new UserError(
    `/${command.name} has no --${flag.slice(0, 40)}. Nothing was done.`,
    near ? `Did you mean \`--${near}\`?` : `Usage: \`${usageOf(command)}\`.`,
  );
}

/**
 * Parses the input of words, a button, or a card. A form will ask for what is missing, except for
 * the target. Throws UserError and LacksTarget.
 */
export function parseInvocation(
  command: Command,
  input: Input,
  { mayBeShort = hasForm(command) }: { mayBeShort?: boolean } = {},
): Invocation {
  const checked = checkInput(command, input);
  if ("args" in checked) return { command, input, args: checked.args } as Invocation;
  const target = targetArgument(command)?.key;
  const problems = checked.problems.filter(
    ({ key }) => !mayBeShort || Object.hasOwn(input, key) || key === target,
  );
  // An invalid value comes first, because asking for the target wouldn't fix it.
  const problem = problems.find(({ key }) => Object.hasOwn(input, key)) ?? problems[0];
  if (problem?.key === target && target !== undefined && input[target] === undefined)
    throw new LacksTarget(wrong(command, problem?.text ?? ""), { command, input });
  if (problem) throw wrong(command, problem.text);
  return { command, input, args: undefined } as Invocation;
}

/** Parses complete arguments from the journal or a button. Throws UserError. */
export function parseInput(command: Command, input: Input): Args {
  const checked = checkInput(command, input);
  if ("args" in checked) return checked.args;
  throw wrong(command, checked.problems[0]?.text ?? "That can't be read.");
}

/** Like `parseInput`, but returns every problem by argument, for a form's fields. */
export function checkInput(
  command: Command,
  input: Input,
): { args: Args } | { problems: { key: string; text: string }[] } {
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
    const argument = all.find((candidate) => candidate.key === key);
    const text = argument && problemText(command, argument, own, wordsOf(issue));
    return { key, text: text ?? issue.message };
  });
  return { problems };
}

function problemText(command: Command, argument: Argument, own: Input, message: string): string {
  const { key, choices } = argument;
  const shown = argument.isFlag ? flagName(key) : argument.isList ? key.replace(/s$/, "") : key;
  const oneOf = choices ? `one of ${choices.join(", ")}` : undefined;
  if (own[key] === undefined) {
    // A rule over several arguments.
    if (argument.isOptional) return `${shown} ${sentenceOf(message)}`;
    const kind = argument.isGlobs ? "name or glob" : argument.target === "vm" ? "VM" : shown;
    const positional = `${article(kind)} ${kind}`;
    const missing = argument.isFlag ? shown : positional;
    return `/${command.name} needs ${missing}${oneOf ? `: ${oneOf}` : ""}.`;
  }
  return `${shown} ${oneOf ? `must be ${oneOf}.` : sentenceOf(message)}`;
}

/** Replaces zod's own messages about lengths. */
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

/** A refusal with the usage. */
function wrong(command: Command, text: string): UserError {
  return new UserError(text, `Usage: \`${usageOf(command)}\`. Example: \`${command.example}\`.`);
}
