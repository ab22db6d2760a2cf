import * as z from "zod";
import {
  type Argument,
  argumentsOf,
  type Command,
  mostInName,
  type ReadCommand,
} from "../registry/define.ts";

/**
 * This file describes to programs what they can ask for: the plain reads that have JSON, with the
 * schemas of input and output.
 */
export const withJson = (commands: readonly Command[]) =>
  commands.flatMap((command) =>
    command.kind === "read" && command.class === "read" && command.data
      ? [{ command, data: command.data }]
      : [],
  );

/** Summarizes a read for a program, which gets neither buttons nor charts. */
export const programSummary = ({ summary, data }: Pick<ReadCommand, "summary" | "data">) =>
  data?.summary ?? summary;

/** The arguments of a read, without those that ask for a file. */
export const programArguments = (command: Pick<Command, "args">) =>
  argumentsOf(command).filter(({ isFile }) => isFile !== true);

/** `vm_show`, in OpenAPI and MCP. */
export const toolName = ({ name }: Pick<Command, "name">) => name.replaceAll(" ", "_");

const json = z.record(z.string(), z.json());

/** The JSON Schema of the values that a shape accepts. */
export function outputSchema(shape: z.ZodObject) {
  const { $schema: _, ...schema } = json.parse(z.toJSONSchema(shape));
  return { ...schema, type: "object" as const };
}

/** The schema without the metadata that only the parser of words needs. */
function argumentSchema(schema: z.ZodType, description: string) {
  const plain = z.toJSONSchema(schema, { io: "input", metadata: z.registry<object>() });
  const { $schema: _, ...rest } = json.parse(plain);
  return { ...rest, description };
}

/** A program names one target in each call, because an answer has the shape of one. */
function targetSchema({ schema, description, target }: Argument) {
  const how = target === "vm" ? "by ID, name, or project/name" : "by ID or name";
  const text = argumentSchema(schema, `${description ?? `a ${target}`}, ${how}`);
  return { ...text, maxLength: mostInName };
}

/** The arguments of a command as one object. */
export function inputSchema(command: Pick<ReadCommand, "args" | "data">) {
  const all = programArguments(command);
  return {
    type: "object" as const,
    properties: Object.fromEntries(
      all.map((argument) => {
        const { key, schema, description = key, target } = argument;
        // The description of a read without JSON itself says what its words may name.
        const isName = target !== undefined && command.data !== undefined;
        return [key, isName ? targetSchema(argument) : argumentSchema(schema, description)];
      }),
    ),
    required: all.flatMap(({ key, isOptional }) => (isOptional ? [] : [key])),
    additionalProperties: false,
  };
}

export const inJson = (schema: object) => ({ "application/json": { schema } });
export const fails = { default: { $ref: "#/components/responses/problem" } };

export const parameter = (place: "path" | "query" | "header", key: string, schema: object) => ({
  name: key,
  in: place,
  ...(place === "path" ? { required: true } : {}),
  schema,
});
