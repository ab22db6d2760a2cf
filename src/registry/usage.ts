import * as z from "zod";
import { metaOf } from "./arguments.ts";
import type { Command } from "./define.ts";

/** One argument of a command as the parser, help and forms see it. */
export interface Argument {
  key: string;
  schema: z.ZodType;
  isOptional: boolean;
  isList: boolean;
  isFlag: boolean;
  /** Says how to go over several targets: shown in help, not in the usage. */
  isRolling: boolean;
  /** Takes the rest of the words. */
  isRest: boolean;
  /** Present or absent, without a value. */
  isSwitch: boolean;
  /** What may be chosen, where that is fixed. */
  choices: readonly string[] | undefined;
  description: string | undefined;
  target: "vm" | "project" | undefined;
  picker: "snapshot" | undefined;
  label: string;
  placeholder: string | undefined;
}

/** The arguments in the order in which they are written. */
export function argumentsOf(command: Pick<Command, "args">): Argument[] {
  return Object.entries(command.args.shape).flatMap(([key, schema]) => {
    if (!(schema instanceof z.ZodType)) return [];
    const inner = unwrap(schema);
    const meta = { ...metaOf(inner), ...metaOf(schema) };
    return {
      key,
      schema,
      isOptional: schema.safeParse(undefined).success,
      isList: inner instanceof z.ZodArray,
      isFlag: meta.flagOnly === true,
      isRolling: meta.rolling === true,
      isRest: meta.rest === true,
      isSwitch: inner instanceof z.ZodBoolean,
      choices: inner instanceof z.ZodEnum ? inner.options.map(String) : undefined,
      description: meta.description,
      target: meta.target,
      picker: meta.picker,
      label: meta.label ?? labelOf(key),
      placeholder: meta.placeholder,
    };
  });
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

/** `/vm list [project] [--status STATUS]`; where that is longer than `most`, whole arguments are left out for an ellipsis. */
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
