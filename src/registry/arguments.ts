import * as z from "zod";
import type { Command } from "./define.ts";

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
  /** Chosen with type-ahead in a form. */
  picker?: "snapshot" | "region";
  /** In the form, instead of the key. */
  label?: string;
  placeholder?: string;
}

declare module "zod/v4/core" {
  interface GlobalMeta extends ArgumentMeta {}
}

const named = z
  .string()
  .min(1, { error: "must not be empty" })
  .max(300, { error: "must be at most 300 characters" });

/** One VM or project, by id, name or `project/name`. */
export function target(kind: "vm" | "project"): z.ZodString {
  return named.meta({ target: kind });
}

/** One word for one or several: a name, a glob, or names with commas. For use before another positional. */
export function targetOrSeveral(kind: "vm"): z.ZodString {
  return z
    .string()
    .min(1, { error: "must not be empty" })
    .max(2000, { error: "must be at most 2000 characters" })
    .meta({ target: kind, isSeveral: true });
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

/** In the order in which they are written. */
export function argumentsOf({ args }: Pick<Command, "args">): readonly Argument[] {
  return Object.entries(args.shape).flatMap(([key, schema]) => {
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
