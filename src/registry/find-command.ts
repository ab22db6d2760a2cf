import { UserError } from "../errors.ts";
import { allNearest, nearest } from "../text/nearest.ts";
import { type Command, verbsOf } from "./define.ts";
import { isPolite, type Word } from "./tokenize.ts";

/** A command and the words after it. */
export interface Found {
  command: Command;
  rest: readonly Word[];
}

const each = (commands: readonly Command[], rest: readonly Word[]): Found[] =>
  commands.map((command) => ({ command, rest }));

/** Words that are no command, with what they probably mean: a guess, which isn't run. */
export class Unclear extends UserError {
  readonly near: readonly Found[];

  constructor(message: string, near: readonly Found[], hint?: string) {
    const meant =
      near.length > 0
        ? `Did you mean ${near.map((one) => `\`/${asTyped(one)}\``).join(" or ")}?`
        : undefined;
    super(message, [meant, hint].filter(Boolean).join(" "));
    this.near = near;
  }
}

/**
 * `vm restart web-1`, by the command's name or an alias; without `vm` where only one command can be meant. Throws
 * Unclear. `isReadable` tells whether a command can take the words after it.
 */
export function findCommand(
  typed: readonly Word[],
  commands: readonly Command[],
  isReadable: (found: Found) => boolean,
): Found {
  const words = typed.filter((word, index) => index > 1 || !isPolite(word));
  const root = rootOf(words[0]?.text ?? "");
  const help = commands.find((command) => command.kind === "read" && command.isHelp);
  const ofRoot = commands.filter(({ name }) => name.startsWith(`${root} `));
  if (ofRoot.length === 0) {
    if (help && (root === "" || root === "--help")) return { command: help, rest: [] };
    return withoutRoot(words, root, commands, isReadable);
  }
  const { verb, rest } = verbIn(words.slice(1), ofRoot);
  const [command] = named(verb, ofRoot);
  if (help && command && rest.some(isHelpFlag))
    return { command: help, rest: command.name.split(" ").map(plainWord) };
  if (command) return { command, rest };
  if (help && (verb === "" || verb === "help" || verb === "--help")) {
    const topic = root === "gatehouse" ? [] : [plainWord(root)];
    return { command: help, rest: [...topic, ...rest] };
  }
  throw unknownVerb(root, words[1]?.text ?? "", rest, ofRoot, commands);
}

const rootOf = (text: string) => text.replace(/^\/+/, "").toLowerCase();

const isHelpFlag = ({ text, isQuoted }: Word) => text === "--help" && !isQuoted;

const plainWord = (text: string): Word => ({ text, isQuoted: false });

/** Two words where they are a command (`pins drop`), else one. */
function verbIn(words: readonly Word[], commands: readonly Command[]) {
  const [first = "", second = ""] = words.map(({ text }) => text.toLowerCase());
  const both = `${first} ${second}`;
  return named(both, commands).length > 0
    ? { verb: both, rest: words.slice(2) }
    : { verb: first, rest: words.slice(1) };
}

/** The commands that answer to this verb, by their own names before aliases. */
function named(verb: string, commands: readonly Command[]): Command[] {
  return commands
    .filter((command) => verbsOf(command).includes(verb))
    .toSorted((a, b) => verbsOf(a).indexOf(verb) - verbsOf(b).indexOf(verb));
}

/** The commands that answer to the words nearest to this one. */
function namedLike(typed: string, commands: readonly Command[]): Command[] {
  const words = allNearest(typed, commands.flatMap(verbsOf));
  return [...new Set(words.flatMap((word) => named(word, commands)))].slice(0, 3);
}

/** `restart web-1`: a mention needs no `vm`. */
function withoutRoot(
  words: readonly Word[],
  root: string,
  commands: readonly Command[],
  isReadable: (found: Found) => boolean,
): Found {
  const { verb, rest } = verbIn([plainWord(root), ...words.slice(1)], commands);
  const meant = each(named(verb, commands), rest);
  const readable = meant.filter(isReadable);
  const likely = readable.length > 0 ? readable : meant;
  const own = likely.filter(({ command }) => verbsOf(command)[0] === verb);
  const [only] = own.length === 1 ? own : likely.length === 1 ? likely : [];
  if (only) return only;
  if (likely.length > 1) throw new Unclear(`${cut(root)} can be several commands.`, likely);
  const suggested = commands.filter(({ suggestFor = {} }) => Object.hasOwn(suggestFor, root));
  if (suggested.length > 0) throw suggestion(root, "There is nothing called", rest, suggested);
  throw unknownRoot(words[0]?.text ?? "", root, rest, commands);
}

function unknownRoot(
  typed: string,
  root: string,
  rest: readonly Word[],
  commands: readonly Command[],
): UserError {
  const roots = [...new Set(commands.map(({ name }) => name.split(" ")[0] ?? ""))];
  const all = `The commands are ${roots.map((one) => `\`/${one}\``).join(", ")}.`;
  if (root === "") return new UserError("There is no command in that text.", all);
  const text = `There is no command ${cut(typed)}.`;
  const near = nearest(root, roots);
  if (near !== undefined) {
    const ofRoot = commands.filter(({ name }) => name.startsWith(`${near} `));
    const [command] = named(rest[0]?.text.toLowerCase() ?? "", ofRoot);
    if (command) return new Unclear(text, [{ command, rest: rest.slice(1) }]);
    return new UserError(text, `Did you mean \`/${near}\`?`);
  }
  const meant = namedLike(root, commands);
  if (meant.length === 0) return new UserError(text, all);
  return new Unclear(text, each(meant, rest));
}

function unknownVerb(
  root: string,
  typed: string,
  rest: readonly Word[],
  ofRoot: readonly Command[],
  commands: readonly Command[],
): UserError {
  const verb = typed.toLowerCase();
  const suggested = ofRoot.filter(({ suggestFor = {} }) => Object.hasOwn(suggestFor, verb));
  if (suggested.length > 0) return suggestion(verb, `/${root} has no`, rest, suggested);
  const text = `/${root} has no ${cut(typed)}.`;
  const elsewhere = named(verb, commands);
  const meant = elsewhere.length > 0 ? elsewhere : namedLike(typed, ofRoot);
  if (meant.length > 0) return new Unclear(text, each(meant, rest));
  // `/vm web-1 restart` and `/vm web-1`: a name in place of the verb
  const [next] = named(rest[0]?.text.toLowerCase() ?? "show", ofRoot);
  const list = `\`/${root} help\` lists its commands.`;
  if (!next) return new UserError(text, list);
  return new Unclear(text, [{ command: next, rest: [plainWord(typed), ...rest.slice(1)] }], list);
}

/** A word that has no command, but one that may do: why it isn't the same, and the button. */
function suggestion(
  verb: string,
  start: string,
  rest: readonly Word[],
  suggested: readonly Command[],
): Unclear {
  const why = suggested.map(({ suggestFor = {} }) => suggestFor[verb])[0] ?? "";
  return new Unclear(`${start} ${verb}: ${why}.`, each(suggested, rest));
}

/** `vm restart web-1`, fit for a code span. */
export function asTyped({ command, rest }: Found): string {
  return cut([command.name, ...rest.map(quotable)].join(" "), 130);
}

function quotable({ text, isQuoted }: Word): string {
  const shown = cut(text).replaceAll(/[`"]/g, "");
  return isQuoted || /\s/.test(shown) ? `"${shown}"` : shown;
}

function cut(text: string, most = 60): string {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}
