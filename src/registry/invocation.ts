import * as z from "zod";
import {
  type ArgsSchema,
  type ChangeCommand,
  type Command,
  type ReadCommand,
  type Target,
  argumentsOf,
  targetArgument,
  type Argument,
} from "./define.ts";
import { UserError } from "../errors.ts";
import type { Snapshots } from "../fleet/inventory/snapshots.ts";
import { fold } from "../text/fold.ts";

/** Whom records and messages name. It doesn't say what they may do. */
export interface PersonIdentity {
  /** Slack user ID, `U…` or `W…`. */
  id: string;
  teamId: string;
  /** Display name, never used for decisions. */
  name: string;
}

/** By what a list in the policy names a person. */
export interface ListedPerson {
  /** Slack user ID, `U…` or `W…`. */
  id: string;
  /** The user groups (`S…`) in the policy to which this person belongs. */
  groups: readonly string[];
}

/**
 * A person as Slack describes them now. Only a `member` (full, active, human, of this team) can
 * change anything.
 */
export interface Person extends PersonIdentity, ListedPerson {
  kind: "member" | "guest" | "bot" | "external" | "deactivated";
  /**
   * Lower case, without `+tag`, so that two accounts of one person can be recognized. Undefined
   * without the scope `users:read.email`.
   */
  email?: string;
  /** As Slack knows it: `Europe/Paris`. Times that the person types are of this zone. */
  timeZone?: string;
}

/** Arguments as written, by key: text, lists of text, and `true` for switches. */
export type Input = Record<string, unknown>;

/** Arguments parsed by the command's own schema. */
export type Args = z.output<ArgsSchema>;

/**
 * A command with its arguments, parsed once from words, a button, or a form. It keeps `input`,
 * which is what buttons, forms, and the journal store.
 */
export type Invocation = ReadInvocation | ChangeInvocation;

export interface ReadInvocation {
  command: ReadCommand;
  input: Input;
  args: Args;
}

export interface ChangeInvocation {
  command: ChangeCommand;
  input: Input;
  /** Undefined when a form will ask for what is missing. What was given is valid. */
  args: Args | undefined;
}

export function asksForChange(invocation: Invocation): invocation is ChangeInvocation {
  return invocation.command.kind === "change";
}

/** Whether the command has a form to confirm. Destructive commands always have one. */
export function hasForm(command: Command): command is ChangeCommand {
  return command.kind === "change" && (command.class === "destroy" || command.dialog !== undefined);
}

/** The words that name its targets. */
export function targetWords({ command, input }: { command: Command; input: Input }): string[] {
  const key = targetArgument(command)?.key;
  return key === undefined
    ? []
    : [input[key]].flat().filter((word): word is string => typeof word === "string");
}

/**
 * The input for one target, named by ID because names can be reused, without the rollout's options.
 */
export function withTarget(command: Command, input: Input, { id }: Pick<Target, "id">): Input {
  const named = targetArgument(command);
  if (named === undefined || id === "") return input;
  return { ...withoutRolling(command, input), [named.key]: named.isList ? [id] : id };
}

/**
 * The input with names replaced by IDs, if the command can do that. Throws UserError and PickValue.
 */
export async function withIds(
  command: ChangeCommand,
  input: Input,
  target: Target,
  context: { snapshots: Pick<Snapshots, "of"> },
): Promise<Input> {
  return command.on === "vm" && command.exact ? command.exact(input, target, context) : input;
}

/**
 * Thrown when several things have the typed name, so that a person picks one. The newest comes
 * first.
 */
export class PickValue extends UserError {
  readonly choices: readonly (readonly [label: string, input: Input])[];

  constructor(message: string, choices: PickValue["choices"]) {
    super(message, `Name one by its ID: ${choices.map(([label]) => label).join(", ")}.`);
    this.choices = choices;
  }
}

/** Whether it is a change that can name several targets. */
export function mayNameSeveral(command: Command): boolean {
  const named = targetArgument(command);
  return command.kind === "change" && (named?.isList === true || named?.isSeveral === true);
}

/** The input of each request of a rollout, without the rollout's options. */
export function withoutRolling(command: Command, input: Input): Input {
  const rolling = argumentsOf(command).flatMap(({ key, isRolling }) => (isRolling ? [key] : []));
  return Object.fromEntries(Object.entries(input).filter(([key]) => !rolling.includes(key)));
}

/** A quoted word is never a flag: `"--yes"` is text. */
export interface Word {
  text: string;
  isQuoted: boolean;
}

const longest = 4000;

/**
 * Opening quotes with the quotes that close them, including those that phones and word processors
 * insert.
 */
const openers: Readonly<Record<string, string>> = {
  '"': '"',
  "'": "'",
  "“": "”",
  "„": "“”",
  "«": "»",
  "‘": "’",
  "‚": "‘’",
  "”": "”",
  "’": "’",
};

/** Invisible characters that occur in no name: zero-width spaces, joiners, direction marks. */
const unseen = /[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069]/g;

/** A hyphen, and what phones replace one or two with. */
const dash = "[-‐‑‒–—―−－﹣]";
const flagStart = new RegExp(`^${dash}{1,3}(?=\\p{L})`, "u");
const flagBeforeQuote = new RegExp(`^${dash}{1,3}\\p{L}[\\p{L}\\p{N}\\p{Pd}]*[=＝]$`, "u");

/**
 * Splits command text into words. Quotes of every kind group words, but inside a word they are
 * letters (it's). `—status` and `-status` mean `--status`. Slack's escapes and links become what
 * was typed. Linear in time. Throws UserError.
 */
export function tokenize(text: string): Word[] {
  if (text.length > longest) {
    throw new UserError(
      `That is too long: the limit is ${longest.toLocaleString("en-US")} characters.`,
      "Split it into shorter commands.",
    );
  }
  const clean = typedOf(text).replaceAll(unseen, "");
  const words: Word[] = [];
  let word = "";
  let closers: string | undefined;
  let isQuoted = false;
  const end = () => {
    // `—status` and `-status` become `--status`; a lone dash and numbers stay.
    const written = isQuoted ? word : unticked(word).replace(flagStart, "--");
    if (written !== "" || isQuoted) words.push({ text: written, isQuoted });
    word = "";
    isQuoted = false;
  };
  for (const char of clean) {
    if (closers !== undefined) {
      if (closers.includes(char)) closers = undefined;
      else word += char;
    } else if (/\s/.test(char)) end();
    else if (openers[char] !== undefined && (word === "" || flagBeforeQuote.test(word))) {
      closers = openers[char];
      // `--name="two words"` stays a flag.
      if (word === "") isQuoted = true;
    } else word += char;
  }
  if (closers !== undefined) {
    throw new UserError(
      "A quote is not closed.",
      `Close it with ${closers.slice(-1)}, or omit the quotes.`,
    );
  }
  end();
  return words;
}

/** Removes backticks around a word that was copied from a message. */
function unticked(word: string): string {
  let [from, to] = [0, word.length];
  while (from < to && word[from] === "`") from++;
  while (to > from && word[to - 1] === "`") to--;
  return word.slice(from, to);
}

/**
 * Restores what was typed from what Slack makes of it: `<http://web-1.example|web-1.example>` →
 * `web-1.example`, `<@U123|ann>` → `@ann`, `<#C1|ops>` → `#ops`, and `&lt;` → `<`.
 */
export function typedOf(text: string): string {
  const link = /<([^<>\s|]{1,500})(?:\|([^<>]{0,500}))?>/g;
  return text
    .replaceAll(link, (whole, target: string, label?: string) => {
      if (/^[@#]/.test(target)) return label ? target.slice(0, 1) + label : target;
      return /^(https?|mailto|tel):/.test(target) ? label || target : whole;
    })
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&amp;", "&");
}

/**
 * Names as people write them in a sentence: `web-2, web-1 and db-1, please.` Only for words outside
 * flags. A quoted word is the name itself, whatever it contains.
 */
export function namesIn(words: readonly Word[]): string[] {
  const spoken = inProjects(words.filter((word) => !isFiller(word)));
  const named = spoken.filter((word, index) => index === 0 || !isKind(word));
  return named.flatMap(({ text, isQuoted }) => {
    if (isQuoted) return text;
    if (and.test(fold(text))) return [];
    if (!anyComma.test(text)) return bare(text);
    return text.split(anyComma).flatMap((part) => (part === "" ? [] : [bare(part)]));
  });
}

/** Takes the words of one target, or of several with commas between them, from `waiting`. */
export function nameIn(
  { isSeveral }: Pick<Argument, "isSeveral">,
  waiting: Word[],
): string | undefined {
  while (waiting[0] && isFiller(waiting[0])) waiting.shift();
  waiting.splice(0, 4, ...inProjects(waiting.slice(0, 4)));
  const first = waiting.shift();
  if (waiting[0] && !isSeveral && isKind(waiting[0])) waiting.shift();
  if (first === undefined || first.isQuoted) return first?.text;
  // Where several can be named, glob characters stay part of the name.
  if (!isSeveral) return bare(first.text, `${endings}?`, /^([*_~]{1,3})([^*]+)\1$/);
  const words = [first];
  while (waiting[0] && !waiting[0].isQuoted && isOpen(words.at(-1), waiting))
    words.push(...waiting.splice(0, 1));
  return namesIn(words).join(",") || first.text;
}

/** The commas of keyboards all over the world. */
const comma = "[,，﹐､、]";
const anyComma = new RegExp(comma);
const endsOpen = new RegExp(`${comma}$`);
const beginsOpen = new RegExp(`^${comma}`);

const and = /^(?:and|&|plus|then)$/;

/** Whether a list continues: `web-1, web-2`, `web-1 ,web-2`, and `web-1 and web-2`. */
export function isOpen(last: Word | undefined, [next, after]: readonly Word[]): boolean {
  if (!last || !next) return false;
  const isAfterAnd = !last.isQuoted && and.test(fold(last.text));
  const isAnd = and.test(fold(next.text)) && after !== undefined;
  return isAfterAnd || isAnd || endsOpen.test(last.text) || beginsOpen.test(next.text);
}

/** Words around names in a sentence: `restart the db now`. A VM with such a name must be quoted. */
const filler = /^(?:the|my|our|this|that|these|those|it|them|both|now|immediately|asap)[.,!]*$/;

function isFiller({ text, isQuoted }: Word): boolean {
  return !isQuoted && text.length < 16 && filler.test(fold(text));
}

/** What kind of thing is meant, after its name: `the web-2 vm`. */
const isKind = ({ text, isQuoted }: Word) =>
  !isQuoted && /^(?:vms?|project)[.,!]*$/.test(fold(text));

/** `web-1 in payments`, as Gatehouse itself writes it, becomes `payments/web-1`. */
function inProjects(words: readonly Word[]): Word[] {
  const joined: Word[] = [];
  const waiting = [...words];
  for (let word = waiting.shift(); word; word = waiting.shift()) {
    const [preposition, ...following] = waiting;
    const project = following.find((candidate) => !isFiller(candidate));
    const isPlaced = preposition && !preposition.isQuoted && fold(preposition.text) === "in";
    if (!isPlaced || !project || word.text.includes("/") || and.test(fold(word.text))) {
      joined.push(word);
      continue;
    }
    joined.push({ text: `${bare(project.text)}/${bare(word.text)}`, isQuoted: word.isQuoted });
    waiting.splice(0, waiting.indexOf(project) + 1);
  }
  return joined;
}

/** Polite words that ask for nothing. A VM with such a name must be quoted. */
export function isPolite({ text, isQuoted }: Word): boolean {
  return !isQuoted && text.length < 12 && /^(please|pls|plz|thanks|thx)[.,!]*$/.test(fold(text));
}

/** Punctuation after a name. A wide question mark is rather that than a glob's. */
const endings = ".,!:`。．，、！：？";

/**
 * Removes what surrounds a name: `db-1.`, `_db-1_`, and `http://db-1/`, which is how Slack links a
 * pasted name, become `db-1`. A pair of `*` is formatting only where a name can't be a glob.
 */
function bare(text: string, signs = endings, marks = /^([_~]{1,3})([^*]+)\1$/): string {
  const host = /^https?:\/\/([^/?#]+)\/?$/i.exec(text)?.[1] ?? text;
  let to = host.length;
  while (to > 0 && signs.includes(host.charAt(to - 1))) to -= 1;
  if (to === 0) return text;
  const named = host.slice(0, to);
  return marks.exec(named)?.[2] ?? named;
}
