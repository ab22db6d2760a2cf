import * as z from "zod";
import type {
  ArgsSchema,
  ChangeCommand,
  Command,
  CommandClass,
  ReadCommand,
  Target,
} from "./define.ts";
import { argumentsOf, targetArgument, wholeNumber } from "./arguments.ts";

/** A person as Slack describes them now. Only a `member` (full, active, human, of this team) can change anything. */
export interface Person {
  /** Slack user ID, `U…` or `W…`. */
  id: string;
  teamId: string;
  /** Display name, never used for decisions. */
  name: string;
  kind: "member" | "guest" | "bot" | "external" | "deactivated";
  /** Lower case, without `+tag`: it shows two accounts of one person. Undefined without the scope `users:read.email`. */
  email?: string;
  /** The policy's user groups (`S…`) that this person is in. */
  groups: readonly string[];
}

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

/** Options of a rollout, as in Kubernetes. */
export interface Rolling {
  /** How many VMs can be in progress at once. */
  maxUnavailable: number;
  /** Start with one VM; continue only if it succeeds. */
  canary: boolean;
  /** After this many failures no other VM starts. */
  stopOnFailure: number;
}

const flags = { isFlag: true, isRolling: true };

/** The flags of every command that takes several VMs. */
export const rollingArgs = {
  maxUnavailable: z
    .string()
    .regex(/^(?:[1-9]\d{0,3}|(?:[1-9]\d?|100)%)$/, {
      error: "must be a whole number from 1, or a percentage like 10%",
    })
    .optional()
    .meta({ ...flags, description: "how many VMs can be in progress: a number or a percentage" }),
  canary: z
    .boolean()
    .optional()
    .meta({ ...flags, description: "start with one VM; continue only if it succeeds" }),
  stopOnFailure: wholeNumber(1000)
    .optional()
    .meta({ ...flags, description: "stop after this many failures; by default after the first" }),
};

/** The options for `count` targets, from arguments or a form; invalid ones get their default. */
export function rollingOf(
  command: { class: CommandClass },
  args: { maxUnavailable?: unknown; canary?: unknown; stopOnFailure?: unknown },
  count: number,
): Rolling {
  return {
    maxUnavailable: maxAtOnce(command, args.maxUnavailable, count),
    canary: args.canary === true,
    stopOnFailure: Math.max(1, Math.trunc(Number(args.stopOnFailure ?? 1)) || 1),
  };
}

/** What interrupts goes one by one unless the requester says otherwise. A percentage is rounded down, to at least one. */
function maxAtOnce(command: { class: CommandClass }, wanted: unknown, count: number): number {
  if (typeof wanted !== "string") return command.class === "disrupt" ? 1 : count;
  const number = Number.parseInt(wanted, 10);
  const most = wanted.endsWith("%") ? Math.floor((count * number) / 100) : number;
  return Math.min(Math.max(1, most), count);
}

export function isRollable(command: Command): boolean {
  return command.kind === "change" && argumentsOf(command).some(({ isRolling }) => isRolling);
}

/** The input of each request: without the rollout's options. */
export function withoutRolling(
  command: Command,
  input: Record<string, unknown>,
): Record<string, unknown> {
  const rolling = new Set(
    argumentsOf(command).flatMap(({ key, isRolling }) => (isRolling ? [key] : [])),
  );
  return Object.fromEntries(Object.entries(input).filter(([key]) => !rolling.has(key)));
}
