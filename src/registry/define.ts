import * as z from "zod";
import type { Appraiser } from "../attestation/appraiser.ts";
import type { Accepted, Compute, Project, Vm } from "../fleet/compute/compute.ts";
import type { KnownSnapshot, Snapshots } from "../fleet/inventory/snapshots.ts";
import type { Message } from "../messages/blocks.ts";
import type { ButtonSpec } from "../messages/buttons.ts";
import type { Markdown } from "../messages/markdown.ts";
import { upperFirst } from "../text/letter-case.ts";
import type { ChangeRole, ReadRole } from "./command-roles.ts";

/**
 * A VM or project as it was seen at the request. Only `id` identifies it: a name that was reused
 * since must not redirect the request.
 */
export interface Target {
  kind: "vm" | "project";
  id: string;
  name: string;
  /** For a project, its own ID. */
  projectId: string;
  projectName?: string;
  status: string;
  createdAt?: string;
  specs?: { cpu?: number; memory?: number; disk?: number };
  /** True when another VM has the same name. People then read `project/name`. */
  sharesName?: boolean;
}

/**
 * The name that tells a target from others: `web-2`, or `payments/web-1` when another VM has that
 * name.
 */
export function calledName({ kind, name, projectName, projectId, sharesName }: Target): string {
  return kind === "vm" && sharesName ? `${projectName ?? projectId}/${name}` : name;
}

/** The project of a VM. Undefined when the VM's name is shown with its project anyway. */
export function projectOf({ kind, projectName, sharesName }: Target): string | undefined {
  return kind === "vm" && !sharesName ? projectName || undefined : undefined;
}

/** For "The restart of db-1". */
export const nounOf = ({ say }: Pick<ChangeCommand, "say">) => say.noun ?? say.verb.toLowerCase();

/**
 * A command is one plain object in one file. Help, pickers, manifest, permissions, and README table
 * are computed from it. Other code may offer a command as a button, and decides nothing by its
 * name.
 */
export type Command<Context = never> = ReadCommand<ArgsSchema, Context> | ChangeCommand;
export type ChangeCommand = VmCommand | ProjectCommand | CreateCommand;

/**
 * The class of a command. `read` answers only the requester. `change` runs at once. `disrupt` runs
 * at once for one VM that is named exactly, and otherwise asks to confirm. `destroy` asks for the
 * typed name, a reason, and approvals. `secret` is shown only to the requester. `administer` is for
 * administrators.
 */
export type CommandClass = "read" | "change" | "disrupt" | "destroy" | "secret" | "administer";

/**
 * Whether a command takes `--break-glass`. A command that neither interrupts nor destroys can wait.
 */
export const takesBreakGlass = ({ class: commandClass }: { class: CommandClass }): boolean =>
  commandClass === "disrupt" || commandClass === "destroy";

export type ArgsSchema = z.ZodObject<z.ZodRawShape>;

/** A shortcut, as in the app's manifest. */
export interface Shortcut {
  callback: string;
  type: "global" | "message";
  name: string;
  description: string;
}

interface Words<Schema extends ArgsSchema> {
  /** Two or three words: `vm restart`, `gatehouse pins drop`. The first is the slash command. */
  name: `${"vm" | "project" | "gatehouse"} ${string}`;
  /** Other words for what follows the first one: `reboot` for `vm restart`. */
  aliases?: readonly string[];
  /**
   * Words without a command for which “did you mean” suggests this one, each with why it isn't the
   * same.
   */
  suggestFor?: Readonly<Record<string, string>>;
  /** The label of its button for people who don't know what to type, as on the Home tab: `List VMs`. */
  startLabel?: string;
  /**
   * An entry in a menu of Slack's. It opens the command's picker or, in the menu of a message,
   * looks up what the message names.
   */
  shortcut?: Shortcut;
  /** One line for help: imperative, no period. */
  summary: string;
  example: string;
  /**
   * What it does for a VM in ERROR, like “open a console”. Messages about that VM say it and offer
   * the command.
   */
  helpsInError?: string;
  /**
   * Arguments are positional in the order of the keys, or given as `--key value`. Their kinds are
   * defined below.
   */
  args: Schema;
}

/** A command that answers at once, without a request. `Context` is declared with the commands. */
export interface ReadCommand<
  Schema extends ArgsSchema = ArgsSchema,
  Context = never,
> extends Words<Schema> {
  kind: "read";
  roles?: readonly ReadRole[];
  /** `change` means that it changes Gatehouse itself, under the rules for changes. */
  class: "read" | "change" | "administer" | "secret";
  /** With `administer`: approvers may run it, too. */
  approversToo?: true;
  /**
   * Everyone whose vote a rule of `approvals` requires may run it, because it shows what they vote
   * on.
   */
  votersToo?: true;
  /**
   * Whether, with this input, it decides what a channel is told. Then only people may run it who
   * see everything that the channel may be told.
   */
  speaksFor?: (input: Readonly<Record<string, unknown>>) => boolean;
  /**
   * The audience of the answer. By default the requester, who may share it. `asker`: only the
   * requester. `channel`: everyone in the channel.
   */
  audience?: "asker" | "channel";
  /** The label of its button on the card of a VM, which is its only argument. */
  onCard?: string;
  /**
   * The command of the request that waits when the policy requires approvals first. Its requester
   * completes it with a button; no worker sends it.
   */
  asRequest?: VmCommand;
  /**
   * Questions about a VM that it answers, by their first words: `who`. They are asked in a text that
   * is no command and names the VM.
   */
  answersQuestions?: readonly string[];
  /**
   * The input by which it answers a text in people's own words that names no VM, like `what is
   * broken`. Undefined for every other text. The text is folded, and has no punctuation at its end.
   */
  inOwnWords?: (text: string) => Readonly<Record<string, unknown>> | undefined;
  answer(args: z.output<Schema>, context: Context): Promise<Message | Answer>;
  /** The JSON form of the answer, for programs. */
  data?: Data<Schema, Context>;
}

/** A read as JSON, with the same facts as the answer's text. */
interface Data<Schema extends ArgsSchema, Context> {
  /**
   * The path in the API, with the target in braces by its argument's key. Other arguments become
   * the query.
   */
  at: string;
  /** The summary for programs, if the command's own summary mentions buttons or charts. */
  summary?: string;
  /** The fields of `readData` that programs get, with their descriptions. Times are ISO 8601. */
  shape: z.ZodObject;
  readData(args: z.output<Schema>, context: Context): Promise<object>;
}

export interface Answer {
  message: Message;
  /** The requester may share it with the channel, although the command isn't a plain read. */
  isSharable?: boolean;
  /** Sent to the requester's direct messages, because a file can't be ephemeral. */
  file?: { name: string; title: string; content: string };
}

/** A command that changes something; `S` is what a read of it returns. */
interface Changing<
  On extends string,
  S extends Seen,
  Schema extends ArgsSchema,
> extends Words<Schema> {
  kind: "change";
  on: On;
  roles?: readonly ChangeRole[];
  class: "change" | "disrupt" | "destroy" | "secret";
  /** Whether `protect` in gatehouse.yml forbids it. */
  protect: boolean;
  /** The least number of other people who must approve it, whatever gatehouse.yml says. */
  minApprovals?: number;
  say: {
    /** The verb on the button and in titles: "Restart". */
    verb: string;
    /** "Restarting". */
    doing: string;
    /** "Restarted". */
    done: string;
    /** The state that it waits for after it was sent: "it runs". */
    until?: string;
    /** For "the creation of pay", if the noun isn't the verb. */
    noun?: string;
    /** For "olivia asks to …" in a notification: "pin db-1 to what it measures now". */
    infinitive?(target: string): string;
    /** The end of the sentence "Restore db-1": "from nightly". */
    detail?(input: Record<string, unknown>, labels: Labels): string | undefined;
  };
  /** Commands (with a dot) that are offered on the same target once it is done. */
  next?: readonly { label: string; command: string; interrupts?: true }[];
  /**
   * The data that is lost, or the work that is interrupted. The form and approvers get the same
   * words.
   */
  risk?(risked: Risked): readonly Markdown[];
  /**
   * The same in plain words, for notifications and confirmations, where Slack shows no time in the
   * reader's zone. By default the words of `risk`.
   */
  plainRisk?(risked: Risked): string;
  /** The form that is opened before the request. Destructive commands always have one. */
  dialog?: Dialog;
  /** Fills in defaults at the request, for the journal. */
  fillIn?(input: Record<string, unknown>, target: Target, at: Date): Record<string, unknown>;
  /** Whether a safety snapshot is taken right before it. */
  safetyFirst?(args: z.output<Schema>): boolean;
  effect: Effect<S, z.output<Schema>>;
  perform(target: Target, args: z.output<Schema>, context: { compute: Compute }): Promise<Accepted>;
  /** The result, if "Restarted web-1 in 34 s" doesn't fit: "Renamed pay to payments". */
  describeResult?(
    targetName: Markdown,
    before: S | undefined,
    after: S | undefined,
    args: z.output<Schema>,
  ): Markdown | undefined;
  /** Text that is added to the result, on a line of its own. */
  addToResult?(
    before: S | undefined,
    after: S | undefined,
    args: z.output<Schema>,
    answer: Pick<Accepted, "snapshotId"> & Pick<KnownSnapshot, "claimed">,
  ): Markdown | undefined;
}

/** A command that changes one VM per request. The argument that names it is `vm` or `vms`. */
export interface VmCommand<Schema extends ArgsSchema = ArgsSchema> extends Changing<
  "vm",
  Vm,
  Schema
> {
  /** Whether the VM boots. Then it is attested, and the result shows the appraisal. */
  attestAfter: boolean;
  /** It can change what the VM measures. Attestation of a pinned VM then fails. */
  changesMeasurement?: true;
  /**
   * `takes` a snapshot with the name in its argument `name`; `restores` the one in its argument
   * `snapshot`, under the rollback guard.
   */
  snapshot?: "takes" | "restores";
  /**
   * The input with names replaced by IDs, like that of a snapshot. Throws PickValue when several
   * have the name, and UserError when it can't be resolved.
   */
  exact?(input: Input, vm: Target, context: WithSnapshots): Promise<Input>;
  /**
   * A caution about the state before the change, which the requester reads after the request was
   * made.
   */
  caution?(input: Input, vm: Target, context: WithSnapshots): Promise<Markdown | undefined>;
  /**
   * For a command that changes only Gatehouse's own data. It is written in the step that ends the
   * request, without a call.
   */
  keeps?: Keeping<z.output<Schema>>;
  /**
   * The label of the button by which the requester performs the command once it is approved. No
   * worker performs it.
   */
  openedBy?: string;
  /** The statuses in which a VM's card has a button for it. */
  offeredIn?: readonly string[];
  /**
   * The way back to how the VM was before. A command has it that can change what the VM measures:
   * where its pin no longer matches, the request explains that, and the way back is offered.
   */
  back?: { label: string; input(before: Vm): Input | undefined };
}

type Input = Record<string, unknown>;

interface WithSnapshots {
  snapshots: Pick<Snapshots, "of">;
}

/** A command that changes one project. The argument that names it is `project`. */
export interface ProjectCommand<Schema extends ArgsSchema = ArgsSchema> extends Changing<
  "project",
  Project,
  Schema
> {
  /** True when its VMs are deleted with it. Approvals then cover them, too. */
  deletes?: true;
  /** True when its argument `name` is a new name. Rules then apply to both names. */
  renames?: true;
}

/**
 * A command that creates a project with the name in its argument `name`. Reads return the projects
 * with that name that didn't exist before.
 */
export type CreateCommand<Schema extends ArgsSchema = ArgsSchema> = Changing<
  "new-project",
  readonly Project[],
  Schema
>;

/** Names for what arguments name by ID, by the argument's key: `{ snapshot: "nightly" }`. */
export type Labels = Readonly<Record<string, string>>;

interface Risked {
  target: Target;
  input: Record<string, unknown>;
  /** The VMs of a project. */
  vms: readonly { name: string; status: string }[];
  /**
   * The data that a restore loses: everything written since a time, and how long that was at the
   * request (ms).
   */
  lost?: { since: number; forMs: number } | undefined;
}

/** A pin that people approve. */
export interface Keeping<Args> {
  /**
   * Called at the request, and again right before the pin is stored. The values become the argument
   * `values`.
   */
  prepare(vm: Target, args: Args, context: { appraiser: Appraiser }): Promise<Prepared>;
  /** The VM's new pin, made from the prepared values. Undefined removes the pin. */
  pin(values: string): string | undefined;
}

export type Prepared =
  | { kind: "ready"; values: string; facts: readonly (readonly [label: string, text: string])[] }
  | { kind: "no"; why: Refusal }
  /** Not now, but perhaps soon. */
  | { kind: "later"; why: Refusal };

/**
 * A read of a target. Undefined means that it is proven absent: 404, while a control read
 * succeeded.
 */
export type Seen = Vm | Project | readonly Project[];

/**
 * How the outcome is derived from reads alone. All members are pure. `before` is the read right
 * before the send.
 */
export interface Effect<S extends Seen, Args> {
  /** It is in the wanted state already: nothing is sent, and the result says "already …". */
  already?(now: S, args: Args): boolean;
  /** Why this can't be sent in the current status. */
  notNow?(now: S): Refusal | undefined;
  /** It has settled in the requested state. */
  wanted(now: S | undefined, before: S | undefined, args: Args): boolean;
  /** The service doesn't return what was asked for. `wanted` then counts only after an accepted call, because reads can't prove it. */
  hides?(now: S | undefined, args: Args): boolean;
  /** Proof that the change began: another status since the send. A time that others move as well is none. */
  mark?(now: S | undefined, before: S | undefined): boolean;
  /** The end state equals the start state, so `wanted` alone proves nothing (restart, restore). */
  needsMark?: boolean;
  /** There was no effect, if two stable reads agree. Absent when that can't be proven. */
  untouched?(now: S | undefined, before: S | undefined, args: Args): boolean;
  /** The answer itself is proof, as a snapshot's ID is, so no reads are needed. */
  provenBy?(answer: Accepted): boolean;
}

export interface Refusal {
  text: string;
  hint?: string;
  /** When there is nothing to do, this command (with a dot) is offered instead. */
  instead?: { label: string; command: string };
}

/** A modal whose inputs are the command's arguments. */
interface Dialog {
  /** A warning about what will happen or be lost. */
  warn?(facts: DialogFacts): readonly Markdown[];
  /** The initial values of inputs that weren't given: the current values. */
  fill?(facts: DialogFacts): Readonly<Record<string, string>>;
  /** Inputs that are shown only while another one has this value. */
  showWhen?: Readonly<Record<string, readonly [key: string, value: string]>>;
  /** Inputs whose value affects a warning. Choosing one updates the form. */
  watches?: readonly string[];
  /** Optional arguments that the form requires whenever it shows them. */
  needed?: readonly string[];
}

export interface DialogFacts {
  target: Target;
  /** Just read. Undefined for a new project. */
  seen: Vm | Project | undefined;
  /** The VMs of a project. */
  vms: readonly Vm[];
  /** Known snapshots of the VM, or of the project's VMs. */
  snapshots: readonly KnownSnapshot[];
  /** Names of those who took the snapshots, by user ID. */
  takenBy?: ReadonlyMap<string, string>;
  /** When this was read (ms). */
  now?: number;
  /** The other VM to which the chosen snapshot is known to belong. */
  foreignSnapshotOf?: string | undefined;
  input: Record<string, unknown>;
  /** True when what the VM measures is pinned. */
  isPinned?: boolean;
  /** The last request of this command, if this one leads back to how the VM was before it. */
  undoes?: Markdown | undefined;
  /** The regions where projects and VMs are known to be, the most used first. For a new project. */
  regions?: readonly string[];
}

/** A command as its file writes it: `kind` is derived, because only a read has `answer`. */
type Written<C extends { kind: string }> = Omit<C, "kind">;

/**
 * Defines a command. Inside it, `args` has the schema's type. Outside, all commands share one type,
 * which is safe because they only get arguments that their schema parsed.
 */
export function defineCommand<Schema extends ArgsSchema, Context>(
  command: Written<ReadCommand<Schema, Context>>,
): ReadCommand<ArgsSchema, Context>;
export function defineCommand<Schema extends ArgsSchema>(
  command: Written<VmCommand<Schema>>,
): VmCommand;
export function defineCommand<Schema extends ArgsSchema>(
  command: Written<ProjectCommand<Schema>>,
): ProjectCommand;
export function defineCommand<Schema extends ArgsSchema>(
  command: Written<CreateCommand<Schema>>,
): CreateCommand;
/**
 * The compiler reports errors against the last overload. This one makes it name what is missing.
 */
export function defineCommand<Schema extends ArgsSchema, Context>(
  command:
    | Written<ReadCommand<Schema, Context>>
    | Written<VmCommand<Schema>>
    | Written<ProjectCommand<Schema>>
    | Written<CreateCommand<Schema>>,
): Command<Context>;
export function defineCommand(command: object): unknown {
  return { kind: "answer" in command ? "read" : "change", ...command };
}

/**
 * A button that runs a command, given by its dotted name, as if it had been typed. `about` says what
 * it is about, unless the label does.
 */
export const runButton = (
  label: string,
  command: string,
  input: object,
  about?: string,
): ButtonSpec => ({
  label,
  about,
  action: `run:${command}`,
  value: JSON.stringify(input),
});

/** The end of the action of a button with a confirm dialog. Pressing it confirms the command. */
export const confirmedSuffix = ":asked";

export function isChange(command: Command): command is ChangeCommand {
  return command.kind === "change";
}

/** Whether a command takes a snapshot of the VM. */
export const takesSnapshot = (command: ChangeCommand) =>
  command.on === "vm" && command.snapshot === "takes";

/** Whether a command replaces the VM's data by the snapshot in its argument `snapshot`. */
export const restoresSnapshot = (command: ChangeCommand) =>
  command.on === "vm" && command.snapshot === "restores";

/**
 * Whether an approved request of the command waits for its requester, so that no worker sends it.
 */
export const isOpenedByRequester = (command: ChangeCommand) =>
  command.on === "vm" && command.openedBy !== undefined;

/** Whether the command can change the status of a VM, and not only what is kept of it. */
export const canChangeStatus = (command: ChangeCommand): boolean =>
  command.on === "project" ||
  (command.on === "vm" &&
    command.snapshot !== "takes" &&
    command.keeps === undefined &&
    !isOpenedByRequester(command));

/** Whether a request of the command locks its target. Only what a worker sends does. */
export const locksTarget = (command: ChangeCommand) => !isOpenedByRequester(command);

/** The label of the command's button on a card about a VM. */
export const labelOnCard = (command: Command): string =>
  isChange(command) ? command.say.verb : (command.onCard ?? "Show");

/** Commands that help with a VM in ERROR, changes first. */
export const helpersInError = (commands: readonly Command[]): readonly Command[] =>
  commands
    .filter(({ helpsInError }) => helpsInError !== undefined)
    .toSorted((a, b) => Number(a.class === "read") - Number(b.class === "read"));

/** True if the command changes only a pin. */
export const isPin = (command: ChangeCommand) => "keeps" in command && command.keeps !== undefined;

/** All commands that a request in the journal may have. */
export function requestable(commands: readonly Command[]): readonly ChangeCommand[] {
  return commands.flatMap((command) => {
    if (isChange(command)) return [command];
    return command.asRequest ? [command.asRequest] : [];
  });
}

/** The name as in gatehouse.yml and buttons: `vm.restart`. */
export function dottedName(command: Pick<Command, "name">): string {
  return command.name.replaceAll(" ", ".");
}

/** The command's name without its first word (`restart`, `pins drop`), then its aliases. */
export function verbsOf({ name, aliases = [] }: Pick<Command, "name" | "aliases">) {
  return [name.slice(name.indexOf(" ") + 1), ...aliases];
}

/** Facts about an argument that its schema can't express, for the parser, help, and forms. */
interface ArgumentMeta {
  description?: string | undefined;
  /** Resolved by the inventory. */
  target?: "vm" | "project";
  /** Given only as `--key value`. */
  isFlag?: boolean;
  /** An option of the rollout, not of its requests. It is shown in help, but not in the usage. */
  isRolling?: boolean;
  /** One word that can name several, with commas or as a glob. */
  isSeveral?: boolean;
  /** One word of names or globs of VMs and projects, which may match what comes later. */
  isGlobs?: boolean;
  /** Takes all remaining words, joined by spaces. */
  isRest?: boolean;
  /** Asks for a file in direct messages, which programs don't have. */
  isFile?: boolean;
  /** Chosen with type-ahead in a form, from the options of the picker with this name. */
  picker?: string;
  /** Shown in the form instead of the key. */
  label?: string;
  placeholder?: string;
}

declare module "zod/v4/core" {
  interface GlobalMeta extends ArgumentMeta {}
}

const notEmpty = z.string().min(1, { error: "must not be empty" });
export const mostInName = 300;
const named = notEmpty.max(mostInName, { error: "must be at most 300 characters" });

/** One VM or project, by ID, name, or `project/name`. */
export function target(kind: "vm" | "project"): z.ZodString {
  return named.meta({ target: kind });
}

/**
 * One word for one or several VMs: a name, a glob, or names with commas. It may be followed by
 * another positional argument.
 */
export function targetOrSeveral(kind: "vm"): z.ZodString {
  const several = notEmpty.max(2000, { error: "must be at most 2000 characters" });
  return several.meta({ target: kind, isSeveral: true });
}

/** One or several VMs, by ID, name, `project/name`, or glob. */
export function targets(kind: "vm"): z.ZodArray<z.ZodString> {
  return z
    .array(named)
    .min(1, { error: "must not be empty" })
    .max(1000, { error: "must be at most 1000 names" })
    .meta({ target: kind });
}

/** A whole number in ASCII digits. `1e9`, `0x10`, `-1`, `1,5`, and `٣` are refused. */
export function wholeNumber(most = 1_000_000): z.ZodType<number, string> {
  const error = `must be a whole number from 1 to ${most.toLocaleString("en-US")}`;
  return z
    .string()
    .regex(/^[0-9]{1,7}$/, { error: `${error}, in digits` })
    .transform(Number)
    .refine((value) => value >= 1 && value <= most, { error });
}

/** A flag without a value, like `--raw`. */
export const switchFlag = (description: string) =>
  z.boolean().optional().meta({ isFlag: true, description });

/** A flag without a value that asks for a file in direct messages. */
export const fileFlag = (description: string) => switchFlag(description).meta({ isFile: true });

/** All remaining words, up to `most` characters. */
export const rest = (most: number, description: string) =>
  z.string().max(most).meta({ isRest: true, description });

/** One argument, as described by its schema. */
export interface Argument extends ArgumentMeta {
  key: string;
  schema: z.ZodType;
  isOptional: boolean;
  isList: boolean;
  /** True for a flag without a value. */
  isSwitch: boolean;
  choices: readonly string[] | undefined;
  label: string;
}

/**
 * Cached by schema, because each answer needs the arguments of many commands, and a schema never
 * changes.
 */
const argumentsRead = new WeakMap<Command["args"], readonly Argument[]>();

/** The arguments in the order in which they are written. */
export function argumentsOf({ args }: Pick<Command, "args">): readonly Argument[] {
  const before = argumentsRead.get(args);
  if (before) return before;
  const all = describeArguments(args);
  argumentsRead.set(args, all);
  return all;
}

function describeArguments({ shape }: Command["args"]): readonly Argument[] {
  return Object.entries(shape).flatMap(([key, schema]) => {
    if (!(schema instanceof z.ZodType)) return [];
    const inner = unwrap(schema);
    return {
      label: labelOf(key),
      ...inner.meta(),
      ...schema.meta(),
      key,
      schema,
      isOptional: schema.safeParse(undefined).success,
      isList: inner instanceof z.ZodArray,
      isSwitch: inner instanceof z.ZodBoolean,
      choices: inner instanceof z.ZodEnum ? inner.options.map(String) : undefined,
    };
  });
}

/** The description for people, who may name several targets where programs name one. */
export const describedForPeople = ({ description, isSeveral }: Argument): string | undefined =>
  isSeveral ? `${description ?? ""}; several with commas or as a glob` : description;

/** The argument that names the target. */
export function targetArgument(command: Pick<Command, "args">): Argument | undefined {
  return argumentsOf(command).find((argument) => argument.target !== undefined);
}

/** `buildCommand` becomes "Build command". */
function labelOf(key: string): string {
  const words = key.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  return upperFirst(words);
}

function unwrap(schema: z.ZodType): z.ZodType {
  let inner = schema;
  while (
    inner instanceof z.ZodOptional ||
    inner instanceof z.ZodDefault ||
    inner instanceof z.ZodPrefault
  ) {
    const wrapped = inner.unwrap();
    if (!(wrapped instanceof z.ZodType)) return inner;
    inner = wrapped;
  }
  return inner;
}

/** `gitUrl` becomes `--git-url`. */
export function flagName(key: string): string {
  return `--${key.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/** The command as somebody types it: `vm resize payments/web-2 --cpu 4 --memory 8`. */
export function wordsFor(
  command: Command,
  input: Readonly<Record<string, unknown>>,
  { kind, name: called, projectName }: Pick<Target, "kind" | "name" | "projectName">,
): string {
  const whole = kind === "vm" && projectName ? `${projectName}/${called}` : called;
  const words = argumentsOf(command).flatMap(({ key, isFlag, isSwitch, ...argument }) => {
    const value = argument.target === undefined ? input[key] : whole;
    if (value === undefined || value === false) return [];
    if (isSwitch) return [flagName(key)];
    const word = [value].flat().map(String).join(" ");
    const typed = /\s/.test(word) ? `"${word}"` : word;
    return isFlag ? [flagName(key), typed] : [typed];
  });
  return [command.name, ...words].join(" ");
}

/**
 * `/vm list [project] [--status STATUS]`, with an ellipsis in place of arguments beyond `most`
 * characters.
 */
export function usageOf(command: Pick<Command, "name" | "args">, most = 1000): string {
  let usage = `/${command.name}`;
  for (const argument of argumentsOf(command)) {
    if (argument.isRolling) continue;
    const longer = `${usage} ${argumentUsage(argument)}`;
    if (longer.length > most) return `${usage} …`;
    usage = longer;
  }
  return usage;
}

function argumentUsage({ key, isFlag, isList, isOptional, isSwitch }: Argument): string {
  const value = isSwitch ? "" : ` ${key.replace(/^.*(?=[A-Z])/, "").toUpperCase()}`;
  const written = isFlag ? `${flagName(key)}${value}` : isList ? `${key.replace(/s$/, "")}…` : key;
  if (isOptional) return `[${written}]`;
  return isFlag ? written : `<${written}>`;
}
