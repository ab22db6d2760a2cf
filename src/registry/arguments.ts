import * as z from "zod";

/**
 * The kinds of arguments a command can take. What a kind needs beyond its schema (that it names a VM, that it has no
 * place among the positionals) is zod metadata, read by the parser, the help and the pickers.
 */
const metaSchema = z.object({
  /** Names something that the inventory resolves. */
  target: z.enum(["vm", "project"]).exactOptional(),
  /** Only as `--key value`. */
  flagOnly: z.boolean().exactOptional(),
  /** Says how to go over several targets; no part of what is done with each. */
  rolling: z.boolean().exactOptional(),
  /** One word that may name several, with commas between them or as a glob. */
  several: z.boolean().exactOptional(),
  /** Takes all remaining words, joined by a space. */
  rest: z.boolean().exactOptional(),
  /** Chosen with type-ahead in a form. */
  picker: z.literal("snapshot").exactOptional(),
  /** On the form, instead of the key. */
  label: z.string().exactOptional(),
  /** In the empty field of a form. */
  placeholder: z.string().exactOptional(),
  description: z.string().exactOptional(),
});
export type ArgumentMeta = z.output<typeof metaSchema>;

const named = z
  .string()
  .min(1, { error: "must not be empty" })
  .max(300, { error: "must be at most 300 characters" });

/** One VM or project, by id, name or `project/name`. */
export function target(kind: "vm" | "project"): z.ZodString {
  return named.meta({ target: kind });
}

/** The same in one word for several: a glob, or names with commas between them. For where another word follows. */
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

/** A whole number written with digits only: `1e9`, `0x10`, `-1`, `1,5` and `٣` are refused, never guessed at. */
export function wholeNumber(most = 1_000_000): z.ZodType<number, string> {
  return z
    .string()
    .regex(/^[0-9]{1,7}$/, { error: `must be a whole number from 1 to ${most}, in digits` })
    .transform(Number)
    .refine((value) => value >= 1 && value <= most, {
      error: `must be a whole number from 1 to ${most}`,
    });
}

/** Only as `--key value`, never by position. */
export function flagOnly<T extends z.ZodType>(schema: T): T {
  return schema.meta({ flagOnly: true });
}

/** How to go over several targets (`rolling.ts`). */
export function rollingOnly<T extends z.ZodType>(schema: T): T {
  return schema.meta({ rolling: true });
}

export function metaOf(schema: z.ZodType): ArgumentMeta {
  return metaSchema.parse(schema.meta() ?? {});
}
