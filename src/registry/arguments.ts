import * as z from "zod";
import type { Command } from "./define.ts";

/** What an argument's schema can't say: zod metadata for the parser, help, and forms. */
const metaSchema = z.object({
  /** Resolved by the inventory. */
  target: z.enum(["vm", "project"]).exactOptional(),
  /** Only as `--key value`. */
  flagOnly: z.boolean().exactOptional(),
  /** An option of the rollout, not of its requests. */
  rolling: z.boolean().exactOptional(),
  /** One word that can name several: with commas, or a glob. */
  several: z.boolean().exactOptional(),
  /** Takes all remaining words, joined by a space. */
  rest: z.boolean().exactOptional(),
  /** Chosen with type-ahead in a form. */
  picker: z.enum(["snapshot", "region"]).exactOptional(),
  /** In the form, instead of the key. */
  label: z.string().exactOptional(),
  placeholder: z.string().exactOptional(),
  description: z.string().exactOptional(),
});

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
    .meta({ target: kind, several: true });
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

function metaOf(schema: z.ZodType): z.output<typeof metaSchema> {
  return metaSchema.parse(schema.meta() ?? {});
}

/** One argument, for the parser, help, and forms. */
export interface Argument {
  key: string;
  schema: z.ZodType;
  isOptional: boolean;
  isList: boolean;
  /** One word for one or several, with commas. */
  isSeveral: boolean;
  isFlag: boolean;
  /** An option of the rollout: shown in help, not in the usage. */
  isRolling: boolean;
  /** Takes all remaining words. */
  isRest: boolean;
  /** Present or absent, without a value. */
  isSwitch: boolean;
  choices: readonly string[] | undefined;
  description: string | undefined;
  target: "vm" | "project" | undefined;
  picker: "snapshot" | "region" | undefined;
  label: string;
  placeholder: string | undefined;
}

const known = new WeakMap<Command["args"], readonly Argument[]>();

/** In the order in which they are written. Read from the schema once: every word that is typed asks for them. */
export function argumentsOf({ args }: Pick<Command, "args">): readonly Argument[] {
  const all = known.get(args) ?? readArguments(args);
  known.set(args, all);
  return all;
}

function readArguments(args: Command["args"]): readonly Argument[] {
  return Object.entries(args.shape).flatMap(([key, schema]) => {
    if (!(schema instanceof z.ZodType)) return [];
    const inner = unwrap(schema);
    const meta = { ...metaOf(inner), ...metaOf(schema) };
    return {
      key,
      schema,
      isOptional: schema.safeParse(undefined).success,
      isList: inner instanceof z.ZodArray,
      isSeveral: meta.several === true,
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
