import type { z } from "zod";
import type { Chart } from "../charts/chart.ts";
import type { Accepted, Compute, Project, Vm } from "../compute/compute.ts";
import type { Inventory } from "../inventory/inventory.ts";
import type { KnownSnapshot, Snapshots } from "../inventory/snapshots.ts";
import type { Message } from "../messages/message.ts";
import type { Markdown } from "../messages/text.ts";
import type { Pin } from "../policy-file.ts";
import type { Control } from "./control.ts";
import type { Person } from "./person.ts";
import type { Target } from "./target.ts";

/**
 * A command is one plain object in one file: its words, its arguments, its class, how it runs, when it has settled and
 * what it says. Everything else (help, pick-lists, manifest, permissions, README table) is computed from it.
 *
 * Classes (design.md section 4): `read` answers only the asker; `change` runs at once; `disrupt` runs at once for one VM
 * named exactly, else asks to confirm; `destroy` asks to type the name and a reason, then for approvals; `secret` is shown
 * only to the asker; `administer` is for administrators.
 */
export type CommandClass = "read" | "change" | "disrupt" | "destroy" | "secret" | "administer";

export type ArgsSchema = z.ZodObject<z.ZodRawShape>;

interface Words<Schema extends ArgsSchema> {
  /** Two words: `vm restart`. The first is the slash command. */
  name: `${"vm" | "project" | "gatehouse"} ${string}`;
  /** One line for help, imperative, no full stop. */
  summary: string;
  example: string;
  /** Positional in the order of the keys, or `--key value`. See `arguments.ts` for the kinds. */
  args: Schema;
}

/** Answers at once from what can be read: no journal, no queue. */
export interface ReadCommand<Schema extends ArgsSchema = ArgsSchema> extends Words<Schema> {
  kind: "read";
  /** `change`: it changes something of Gatehouse itself, by the rules of what changes. */
  class: "read" | "change" | "administer" | "secret";
  /** Where the answer goes: only the asker (default), or the channel. */
  audience?: "asker" | "channel";
  answer(args: z.output<Schema>, context: ReadContext): Promise<Message | Answer>;
}

/** An answer that is more than a message. */
export interface Answer {
  message: Message;
  /** Shown under the message, as well as Slack lets us: a picture, Slack's own chart, or text. */
  chart?: { chart: Chart; altText: string };
  /** Goes to the asker's direct messages: a file can't be ephemeral. */
  file?: { name: string; title: string; content: string };
}

/** What a read command may use. `requests` and `status` look rightwards, so they come in as functions. */
export interface ReadContext {
  person: Person;
  channelId: string;
  compute: Compute;
  inventory: Inventory;
  snapshots: Snapshots;
  /** Resolves words to exactly one target, or throws UserError or PickOne. */
  resolve: (kind: "vm" | "project", words: string) => Promise<Target>;
  /** Whether this person may run that command at all. */
  mayRun: (command: Command) => boolean;
  commands: readonly Command[];
  recentRequests: (filter: RequestFilter) => Promise<readonly RequestSummary[]>;
  status: () => Promise<readonly StatusLine[]>;
  /** The measurements that policy allows, by target. */
  pins: readonly Pin[];
  control: Control;
  now: () => number;
}

export type { Control } from "./control.ts";

export interface RequestFilter {
  open?: boolean;
  requesterId?: string;
  targetId?: string;
  most?: number;
}

/** A request as lists show it. `state` is a state of the journal. */
export interface RequestSummary {
  id: string;
  command: string;
  target: Target;
  requesterId: string;
  channelId: string;
  state: string;
  createdAt: number;
  changedAt: number;
  messageTs?: string;
}

/** One line of `/gatehouse status`: what, whether it is well, and what to do when it isn't. */
export interface StatusLine {
  name: string;
  ok: boolean;
  detail: string;
}

/** What was read of a target: undefined means it is proven absent (404 while a control read succeeded). */
export type Seen = Vm | Project | readonly Project[];

/**
 * How the outcome is known, from reads alone (reliability.md section 2, the table "Sending again"). All pure.
 * `before` is the read made right before the send.
 */
export interface Effect<S extends Seen, Args> {
  /** The wanted state stands already: nothing is sent, "already …" is said. */
  already?(now: S, args: Args): boolean;
  /** Why this can't be sent in the state it is in: a sentence for the person, or undefined. */
  notNow?(now: S, args: Args): Refusal | undefined;
  /** The state that was asked for, settled. */
  wanted(now: S | undefined, before: S | undefined, args: Args): boolean;
  /** Proof that it began: a transitional state seen since the send, or a mark that moved. */
  mark?(now: S | undefined, before: S | undefined): boolean;
  /** The end state equals the start state, so `wanted` alone proves nothing (restart, restore). */
  needsMark?: boolean;
  /** Nothing happened, when two stable reads say so. Absent: absence can't be proven. */
  untouched?(now: S | undefined, before: S | undefined, args: Args): boolean;
  /** May it be sent once more after proof that nothing happened? */
  again: "once" | "never";
  /** The answer itself is the proof (a snapshot's id): no reads needed. */
  provenBy?(answer: Accepted): boolean;
}

export interface Refusal {
  text: string;
  hint?: string;
}

interface ChangeWords {
  /** On the button and in titles: "Restart". */
  verb: string;
  /** While it runs: "Restarting". */
  doing: string;
  /** When it is done: "Restarted". */
  done: string;
}

/** A modal that shows exactly what will happen. Its inputs are the command's arguments. */
export interface Dialog {
  /** What will happen, or be lost, in lines: read by a person before they press. */
  warn?(what: DialogFacts): readonly Markdown[];
  /** Inputs that are shown only while another one has this value. */
  showWhen?: Readonly<Record<string, readonly [key: string, value: string]>>;
}

export interface DialogFacts {
  target: Target;
  /** Just read; undefined for a project that is to be made. */
  seen: Vm | Project | undefined;
  /** The VMs of a project. */
  vms: readonly Vm[];
  /** Snapshots we know of the VM, or of the VMs of the project. */
  snapshots: readonly KnownSnapshot[];
  /** The VM whose snapshot the chosen one is known to be, when that is another one. */
  foreignSnapshotOf?: string | undefined;
  input: Record<string, unknown>;
}

interface ChangeBase<Schema extends ArgsSchema> extends Words<Schema> {
  kind: "change";
  class: "change" | "disrupt" | "destroy" | "secret";
  say: ChangeWords;
  /** Opened before anything is asked for; what destroys always has one. */
  dialog?: Dialog;
  /** Fills in what was left open when it is asked for, so that the journal knows it. */
  fillIn?(input: Record<string, unknown>, target: Target, at: Date): Record<string, unknown>;
  /** Whether a snapshot is taken right before, as the way back. */
  safetyFirst?(args: z.output<Schema>): boolean;
}

/** Changes one VM (several targets make several requests). The argument that names it is `vm` or `vms`. */
export interface VmCommand<Schema extends ArgsSchema = ArgsSchema> extends ChangeBase<Schema> {
  on: "vm";
  effect: Effect<Vm, z.output<Schema>>;
  perform(vm: Target, args: z.output<Schema>, context: PerformContext): Promise<Accepted>;
  /** Which buttons a VM's card offers: statuses in which this makes sense from a button. */
  offeredIn?: readonly string[];
  /** Result lines beyond the usual "Restarted web-1: RUNNING → RUNNING in 34 s". */
  tell?(
    before: Vm | undefined,
    after: Vm | undefined,
    args: z.output<Schema>,
    answer: { snapshotId?: string },
  ): Markdown | undefined;
}

/** Changes one project. The argument that names it is `project`. */
export interface ProjectCommand<Schema extends ArgsSchema = ArgsSchema> extends ChangeBase<Schema> {
  on: "project";
  effect: Effect<Project, z.output<Schema>>;
  perform(project: Target, args: z.output<Schema>, context: PerformContext): Promise<Accepted>;
  tell?(
    before: Project | undefined,
    after: Project | undefined,
    args: z.output<Schema>,
  ): Markdown | undefined;
}

/** Makes a project: there is no target yet, the argument `name` is what it will be called. Reads are all of that name. */
export interface CreateCommand<Schema extends ArgsSchema = ArgsSchema> extends ChangeBase<Schema> {
  on: "new-project";
  effect: Effect<readonly Project[], z.output<Schema>>;
  perform(project: Target, args: z.output<Schema>, context: PerformContext): Promise<Accepted>;
  tell?(
    before: readonly Project[] | undefined,
    after: readonly Project[] | undefined,
    args: z.output<Schema>,
  ): Markdown | undefined;
}

export interface PerformContext {
  compute: Compute;
}

export type ChangeCommand = VmCommand | ProjectCommand | CreateCommand;
export type Command = ReadCommand | ChangeCommand;

/**
 * Declares a command. Inside, `args` has the type of the schema; outside all commands are of one type, because they are
 * only ever called with arguments that their own schema has parsed.
 */
export function defineCommand<Schema extends ArgsSchema>(command: ReadCommand<Schema>): ReadCommand;
export function defineCommand<Schema extends ArgsSchema>(command: VmCommand<Schema>): VmCommand;
export function defineCommand<Schema extends ArgsSchema>(
  command: ProjectCommand<Schema>,
): ProjectCommand;
export function defineCommand<Schema extends ArgsSchema>(
  command: CreateCommand<Schema>,
): CreateCommand;
export function defineCommand(command: unknown): unknown {
  return command;
}
