import * as z from "zod";
import type { Appraiser } from "../attestation/appraiser.ts";
import type { Accepted, Compute, Project, Vm } from "../fleet/compute/compute.ts";
import type { KnownSnapshot, Snapshots } from "../fleet/inventory/snapshots.ts";
import type { Markdown, ButtonSpec, Message } from "../messages/message.ts";

/** As seen at the request. Only `id` decides: a name reused since must not redirect the request. */
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
  /** Another VM had the same name: people read `project/name`. */
  sharesName?: boolean;
}

/** The name that tells it from others: `web-2`, or `payments/web-1` where another VM has that name. */
export function calledName({ kind, name, projectName, projectId, sharesName }: Target): string {
  return kind === "vm" && sharesName ? `${projectName ?? projectId}/${name}` : name;
}

/** Of a VM, unless its name is said with its project anyway. */
export function projectOf({ kind, projectName, sharesName }: Target): string | undefined {
  return kind === "vm" && !sharesName ? projectName || undefined : undefined;
}

/** "The restart of db-1". */
export const nounOf = ({ say }: Pick<ChangeCommand, "say">) => say.noun ?? say.verb.toLowerCase();

/**
 * A command is one plain object in one file. Help, pick-lists, manifest, permissions, and README table are computed from
 * it; other code may offer a command as a button, and decides nothing by its name.
 */
export type Command<Context = never> = ReadCommand<ArgsSchema, Context> | ChangeCommand;
export type ChangeCommand = VmCommand | ProjectCommand | CreateCommand;

/**
 * `read` answers only the requester; `change` runs at once; `disrupt` runs at once for one VM named exactly, else asks to
 * confirm; `destroy` asks for the typed name, a reason, and approvals; `secret` is shown only to the requester;
 * `administer` is for administrators.
 */
export type CommandClass = "read" | "change" | "disrupt" | "destroy" | "secret" | "administer";

/** Whether `--break-glass` is for it: what neither interrupts nor destroys can wait. */
export const takesBreakGlass = ({ class: is }: { class: CommandClass }): boolean =>
  is === "disrupt" || is === "destroy";

export type ArgsSchema = z.ZodObject<z.ZodRawShape>;

/** As the app's manifest has it. */
export interface Shortcut {
  callback: string;
  type: "global" | "message";
  name: string;
  description: string;
}

interface Words<Schema extends ArgsSchema> {
  /** Two words or three: `vm restart`, `gatehouse pins drop`. The first is the slash command. */
  name: `${"vm" | "project" | "gatehouse"} ${string}`;
  /** Other words for the second one: `reboot` for `vm restart`. */
  aliases?: readonly string[];
  /** Words without a command, answered with “did you mean” this one; each with why it isn't the same. */
  suggestFor?: Readonly<Record<string, string>>;
  /** Among the first in help. */
  everyday?: true;
  /** In a menu of Slack's: opens its picker, or, in the menu of a message, looks up what that names. */
  shortcut?: Shortcut;
  /** One line for help, imperative, no period. */
  summary: string;
  example: string;
  /**
   * What it does for a VM in ERROR, like “open a console”: the card of a request that the compute service refused because of that offers it,
   * and all that tells of the refusal says so.
   */
  helpsInError?: string;
  /** It takes a VM alone, and stands beside one that is in ERROR or fails attestation; a change only where it is in ERROR. */
  inTrouble?: true;
  /** Positional in the order of the keys, or `--key value`. Kinds: below. */
  args: Schema;
}

/** Answers at once, without a request. `Context` is declared beside the commands. */
export interface ReadCommand<
  Schema extends ArgsSchema = ArgsSchema,
  Context = never,
> extends Words<Schema> {
  kind: "read";
  /** `change`: it changes Gatehouse itself, under the rules for changes. */
  class: "read" | "change" | "administer" | "secret";
  /** For `administer`: approvers may run it too. */
  approversToo?: true;
  /** Whoever a rule of `approvals` asks for a vote may run it; it shows them what they vote on. */
  votersToo?: true;
  /** Its answer is about one request: whoever may run it may see that from a button of the request. */
  readsRequests?: true;
  /** Whoever may run it may read of all requests that they see. */
  listsRequests?: true;
  /** Whether, with these words, it decides what a channel is told: only for those who see all that the channel may be told. */
  speaksFor?: (input: Readonly<Record<string, unknown>>) => boolean;
  /** Default: to the requester, who may share it. `asker`: to no one else. `channel`: to everyone there. */
  audience?: "asker" | "channel";
  /** The label of its button on the card of a VM, which is its only argument. */
  onCard?: string;
  /** The request that waits where policy wants approvals first. Its requester ends it with a button; no worker sends it. */
  asRequest?: VmCommand;
  /** It shows what a VM's evidence says: where that couldn't be read, it is named. */
  attests?: true;
  /** Its answer lists the snapshots of the VM that is its argument: it is named where another one must be chosen. */
  listsSnapshots?: true;
  /** It allows changes again: news of a freeze name it. */
  endsFreeze?: true;
  /** Runs for `--help` and for a slash command alone. Its argument is the topic. */
  isHelp?: true;
  answer(args: z.output<Schema>, context: Context): Promise<Message | Answer>;
  /** For programs. */
  data?: Data<Schema, Context>;
}

/** A read as JSON, with what is in the answer's words. */
interface Data<Schema extends ArgsSchema, Context> {
  /** Its address behind the API, with the target in braces by its argument's key. Other arguments are its query. */
  at: string;
  /** What it does for a program, where the command's summary speaks of buttons or charts. */
  summary?: string;
  /** The fields of `readData` that programs get, with their descriptions. Times are ISO 8601. */
  shape: z.ZodObject;
  readData(args: z.output<Schema>, context: Context): Promise<object>;
}

export interface Answer {
  message: Message;
  /** Offered to the channel, though the command isn't a plain read. */
  isSharable?: boolean;
  /** Sent to the requester's direct messages: a file can't be ephemeral. */
  file?: { name: string; title: string; content: string };
}

/** Changes what `S` is a read of. */
interface Changing<
  On extends string,
  S extends Seen,
  Schema extends ArgsSchema,
> extends Words<Schema> {
  kind: "change";
  on: On;
  class: "change" | "disrupt" | "destroy" | "secret";
  /** Whether `protect` in gatehouse.yml forbids it. */
  protect: boolean;
  /** Others who must approve it, whatever gatehouse.yml says. */
  minApprovals?: number;
  say: {
    /** On the button and in titles: "Restart". */
    verb: string;
    /** "Restarting". */
    doing: string;
    /** "Restarted". */
    done: string;
    /** What it waits for once it was sent: "it runs". */
    until?: string;
    /** In "the creation of pay", where that isn't the verb. */
    noun?: string;
    /** Ends the sentence "Restore db-1": "from nightly". */
    detail?(input: Record<string, unknown>, labels: Labels): string | undefined;
  };
  /** Offered once it is done, on the same target: commands with a dot. */
  next?: readonly { label: string; command: string; interrupts?: true }[];
  /** What is lost or interrupted: said in the form, and to approvers in the same words. */
  risk?(what: Risked): readonly Markdown[];
  /** Opened before the request; destructive commands always have one. */
  dialog?: Dialog;
  /** Fills in defaults at the request, for the journal. */
  fillIn?(input: Record<string, unknown>, target: Target, at: Date): Record<string, unknown>;
  /** Whether a safety snapshot is taken right before. */
  safetyFirst?(args: z.output<Schema>): boolean;
  effect: Effect<S, z.output<Schema>>;
  perform(target: Target, args: z.output<Schema>, context: { compute: Compute }): Promise<Accepted>;
  /** What changed, instead of "Restarted web-1 in 34 s": "Renamed pay to payments". */
  told?(
    what: Markdown,
    before: S | undefined,
    after: S | undefined,
    args: z.output<Schema>,
  ): Markdown | undefined;
  /** Added to the result, on a line of its own. */
  tell?(
    before: S | undefined,
    after: S | undefined,
    args: z.output<Schema>,
    answer: Pick<Accepted, "snapshotId"> & { claimed?: { id: string; by: string } },
  ): Markdown | undefined;
}

/** Changes one VM per request. The argument that names it is `vm` or `vms`. */
export interface VmCommand<Schema extends ArgsSchema = ArgsSchema> extends Changing<
  "vm",
  Vm,
  Schema
> {
  /** Whether the VM boots: then it is attested, and the result shows the appraisal. */
  attestAfter: boolean;
  /** `takes` one called by its argument `name`; `restores` its argument `snapshot`, under the rollback guard. */
  snapshot?: "takes" | "restores";
  /**
   * The input with what it names as its ID: a snapshot by its name. Throws PickValue where several have the name, and UserError where it
   * can't be meant.
   */
  exact?(input: Input, vm: Target, by: WithSnapshots): Promise<Input>;
  /** What whoever asks for it should know, as things were before; told once it is requested. */
  caution?(input: Input, vm: Target, by: WithSnapshots): Promise<Markdown | undefined>;
  /** Changes what Gatehouse keeps, and nothing else: kept in the step that ends the request, without a call. */
  keeps?: Keeping<z.output<Schema>>;
  /** No worker performs it: once it is approved its requester does, by a button with this label on its card. */
  openedBy?: string;
  /** Statuses in which a VM's card has a button for it. */
  offeredIn?: readonly string[];
}

type Input = Record<string, unknown>;

interface WithSnapshots {
  snapshots: Pick<Snapshots, "of">;
}

/** Changes one project. The argument that names it is `project`. */
export interface ProjectCommand<Schema extends ArgsSchema = ArgsSchema> extends Changing<
  "project",
  Project,
  Schema
> {
  /** Its VMs are deleted with it: approvals cover them too. */
  deletes?: true;
  /** Its argument `name` is a new name: rules hold for both. */
  renames?: true;
}

/** Creates a project called by its argument `name`. Reads return the projects of that name that weren't there before. */
export type CreateCommand<Schema extends ArgsSchema = ArgsSchema> = Changing<
  "new-project",
  readonly Project[],
  Schema
>;

/** Names of what arguments name by ID, by the argument's key: `{ snapshot: "nightly" }`. */
export type Labels = Readonly<Record<string, string>>;

interface Risked {
  target: Target;
  input: Record<string, unknown>;
  /** The VMs of a project. */
  vms: readonly { name: string; status: string }[];
  /** What a restore loses: all that was written since, and how long that was at the request (ms). */
  lost?: { since: number; forMs: number } | undefined;
}

/** A pin that people approve. */
export interface Keeping<Args> {
  /** At the request, and again right before it is kept. The values become the argument `values`. */
  prepare(vm: Target, args: Args, by: { appraiser: Appraiser }): Promise<Prepared>;
  /** The VM's pin from then on, of what was prepared; undefined: none. */
  pin(values: string): string | undefined;
}

export type Prepared =
  | { is: "ready"; values: string; facts: readonly (readonly [label: string, text: string])[] }
  | { is: "no"; why: Refusal }
  /** Not now: it may be otherwise soon. */
  | { is: "later"; why: Refusal };

/** A read of a target; undefined: proven absent (404 while a control read succeeded). */
export type Seen = Vm | Project | readonly Project[];

/** How the outcome is known, from reads alone. All pure. `before` is the read right before the send. */
export interface Effect<S extends Seen, Args> {
  /** Already in the wanted state: nothing is sent, and the result says "already …". */
  already?(now: S, args: Args): boolean;
  /** Why this can't be sent in its current status. */
  notNow?(now: S): Refusal | undefined;
  /** Settled in the requested state. */
  wanted(now: S | undefined, before: S | undefined, args: Args): boolean;
  /** Proof that it began: a transitional status seen since the send, or a newer timestamp. */
  mark?(now: S | undefined, before: S | undefined): boolean;
  /** The end state equals the start state, so `wanted` alone proves nothing (restart, restore). */
  needsMark?: boolean;
  /** No effect, when two stable reads agree. Absent: it can't be proven. */
  untouched?(now: S | undefined, before: S | undefined, args: Args): boolean;
  /** The answer itself is proof, as a snapshot's ID is: no reads needed. */
  provenBy?(answer: Accepted): boolean;
}

export interface Refusal {
  text: string;
  hint?: string;
  /** There is nothing to do, and this is offered: a command with a dot. */
  instead?: { label: string; command: string };
}

/** A modal whose inputs are the command's arguments. */
interface Dialog {
  /** What will happen or be lost. */
  warn?(what: DialogFacts): readonly Markdown[];
  /** What stands in its inputs where nothing was given: the values of now. */
  fill?(what: DialogFacts): Readonly<Record<string, string>>;
  /** Inputs shown only while another one has this value. */
  showWhen?: Readonly<Record<string, readonly [key: string, value: string]>>;
  /** Inputs on whose value a warning depends: chosen, they are looked at again. */
  watches?: readonly string[];
  /** Optional arguments that are required in the form whenever they are shown. */
  needed?: readonly string[];
}

export interface DialogFacts {
  target: Target;
  /** Just read; undefined for a new project. */
  seen: Vm | Project | undefined;
  /** The VMs of a project. */
  vms: readonly Vm[];
  /** Known snapshots of the VM, or of the project's VMs. */
  snapshots: readonly KnownSnapshot[];
  /** The other VM that the chosen snapshot is known to be of. */
  foreignSnapshotOf?: string | undefined;
  input: Record<string, unknown>;
  /** What it measures is pinned. */
  isPinned?: boolean;
  /** Where projects and VMs are known to be, the most used first. For a new project. */
  regions?: readonly string[];
}

/** What answers is a read. */
type Written<C extends { kind: string }> = Omit<C, "kind">;

/** Inside, `args` has the schema's type; outside, commands share one type: they only get arguments that their schema parsed. */
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
/** The compiler reports errors against the last overload: this one makes it name what is missing. */
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

/** A button that runs a command, named with dots, as if it had been typed. */
export const runButton = (label: string, command: string, input: object): ButtonSpec => ({
  label,
  action: `run:${command}`,
  value: JSON.stringify(input),
});

/** The end of the action of a button that has asked whoever presses: the press confirms. */
export const asked = ":asked";

export function isChange(command: Command): command is ChangeCommand {
  return command.kind === "change";
}

/** It replaces the VM's data by those of its argument `snapshot`. */
export const restoresSnapshot = (command: ChangeCommand) =>
  command.on === "vm" && command.snapshot === "restores";

/** Its approved request waits for its requester, and no worker sends it. */
export const isOpenedByRequester = (command: ChangeCommand) =>
  command.on === "vm" && command.openedBy !== undefined;

/** The label of its button on a card that is about a VM. */
export const labelOnCard = (command: Command): string =>
  isChange(command) ? command.say.verb : (command.onCard ?? "Show");

/** The command that allows changes again. */
export const freezeEnder = (commands: readonly Command[]): Command | undefined =>
  commands.find((command) => command.kind === "read" && command.endsFreeze);

/** The command that shows what a VM's evidence says. */
export const evidenceReader = (commands: readonly Command[]): Command | undefined =>
  commands.find((command) => command.kind === "read" && command.attests);

/** The command that lists the snapshots of a VM. */
export const snapshotLister = (commands: readonly Command[]): Command | undefined =>
  commands.find((command) => command.kind === "read" && command.listsSnapshots);

/** Those that help with a VM in ERROR; what only looks is last. */
export const helpersInError = (commands: readonly Command[]): readonly Command[] =>
  commands
    .filter(({ helpsInError }) => helpsInError !== undefined)
    .toSorted((a, b) => Number(a.class === "read") - Number(b.class === "read"));

/** It decides about a pin, and sends nothing. */
export const isPin = (command: ChangeCommand) => "keeps" in command && command.keeps !== undefined;

/** Whatever a request in the journal may be. */
export function requestable(commands: readonly Command[]): readonly ChangeCommand[] {
  return commands.flatMap((command) => {
    if (isChange(command)) return [command];
    return command.asRequest ? [command.asRequest] : [];
  });
}

/** As in gatehouse.yml and buttons: `vm.restart`. */
export function dottedName(command: Pick<Command, "name">): string {
  return command.name.replaceAll(" ", ".");
}

/** What its first word leaves: its own verb (`restart`, `pins drop`), then its aliases. */
export function verbsOf({ name, aliases = [] }: Pick<Command, "name" | "aliases">) {
  return [name.slice(name.indexOf(" ") + 1), ...aliases];
}

/** What an argument's schema can't say, for the parser, help, and forms. */
interface ArgumentMeta {
  description?: string | undefined;
  /** Resolved by the inventory. */
  target?: "vm" | "project";
  /** Only as `--key value`. */
  isFlag?: boolean;
  /** An option of the rollout, not of its requests: shown in help, not in the usage. */
  isRolling?: boolean;
  /** One word that can name several: with commas, or a glob. */
  isSeveral?: boolean;
  /** Takes all remaining words, joined by a space. */
  isRest?: boolean;
  /** Asks for a file in direct messages, which programs don't have. */
  isFile?: boolean;
  /** Chosen with type-ahead in a form, from what the picker of this name offers. */
  picker?: string;
  /** In the form, instead of the key. */
  label?: string;
  placeholder?: string;
}

declare module "zod/v4/core" {
  interface GlobalMeta extends ArgumentMeta {}
}

const notEmpty = z.string().min(1, { error: "must not be empty" });
export const mostInName = 300;
const named = notEmpty.max(mostInName, { error: "must be at most 300 characters" });

/** One VM or project, by id, name or `project/name`. */
export function target(kind: "vm" | "project"): z.ZodString {
  return named.meta({ target: kind });
}

/** One word for one or several: a name, a glob, or names with commas. For use before another positional. */
export function targetOrSeveral(kind: "vm"): z.ZodString {
  const several = notEmpty.max(2000, { error: "must be at most 2000 characters" });
  return several.meta({ target: kind, isSeveral: true });
}

/** One or several VMs, by id, name, `project/name` or glob. */
export function targets(kind: "vm"): z.ZodArray<z.ZodString> {
  return z
    .array(named)
    .min(1, { error: "must not be empty" })
    .max(1000, { error: "must be at most 1000 names" })
    .meta({ target: kind });
}

/** A whole number in ASCII digits: `1e9`, `0x10`, `-1`, `1,5`, and `٣` are refused. */
export function wholeNumber(most = 1_000_000): z.ZodType<number, string> {
  const error = `must be a whole number from 1 to ${most.toLocaleString("en-US")}`;
  return z
    .string()
    .regex(/^[0-9]{1,7}$/, { error: `${error}, in digits` })
    .transform(Number)
    .refine((value) => value >= 1 && value <= most, { error });
}

/** `--raw`: present or absent. */
export const switchFlag = (description: string) =>
  z.boolean().optional().meta({ isFlag: true, description });

/** The same, for a file in direct messages. */
export const fileFlag = (description: string) => switchFlag(description).meta({ isFile: true });

/** Whatever follows, up to `most` characters. */
export const rest = (most: number, description: string) =>
  z.string().max(most).meta({ isRest: true, description });

/** One argument, as its schema tells. */
export interface Argument extends ArgumentMeta {
  key: string;
  schema: z.ZodType;
  isOptional: boolean;
  isList: boolean;
  /** Present or absent, without a value. */
  isSwitch: boolean;
  choices: readonly string[] | undefined;
  label: string;
}

/** By schema: each answer asks for those of many commands, and a schema never changes. */
const argumentsRead = new WeakMap<Command["args"], readonly Argument[]>();

/** In the order in which they are written. */
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

/** What people may write: they may name several where programs name one. */
export const describedForPeople = ({ description, isSeveral }: Argument): string | undefined =>
  isSeveral ? `${description ?? ""}; several with commas or as a glob` : description;

/** The argument that names the target. */
export function targetArgument(command: Pick<Command, "args">): Argument | undefined {
  return argumentsOf(command).find((argument) => argument.target !== undefined);
}

/** `buildCommand` → "Build command". */
function labelOf(key: string): string {
  const words = key.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  return words.slice(0, 1).toUpperCase() + words.slice(1);
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

/** `gitUrl` is written `--git-url`. */
export function flagName(key: string): string {
  return `--${key.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/** `/vm list [project] [--status STATUS]`, with an ellipsis for arguments beyond `most` characters. */
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
