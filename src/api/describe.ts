import * as z from "zod";
import { version } from "../config/version.ts";
import {
  type Argument,
  argumentsOf,
  type Command,
  mostInName,
  type ReadCommand,
  targetArgument,
} from "../registry/define.ts";

/** What programs can ask for, computed from the commands: the reads that have JSON, and the schemas of what goes in and out. */

/** The plain reads that programs have as JSON. */
export const withJson = (commands: readonly Command[]) =>
  commands.flatMap((command) =>
    command.kind === "read" && command.class === "read" && command.data
      ? [{ command, data: command.data }]
      : [],
  );

/** What a read does for a program, which gets neither buttons nor drawn charts. */
export const programSummary = ({ summary, data }: Pick<ReadCommand, "summary" | "data">) =>
  data?.summary ?? summary;

/** Its arguments but for those that ask for a file. */
export const programArguments = (command: Pick<Command, "args">) =>
  argumentsOf(command).filter(({ isFile }) => isFile !== true);

/** `vm_show`, in OpenAPI and MCP. */
export const toolName = ({ name }: Pick<Command, "name">) => name.replaceAll(" ", "_");

const json = z.record(z.string(), z.json());

/** What a shape lets through. */
export function outputSchema(shape: z.ZodObject) {
  const { $schema: _, ...schema } = json.parse(z.toJSONSchema(shape));
  return { ...schema, type: "object" as const };
}

/** Without what only the parser of words needs to know. */
function argumentSchema(schema: z.ZodType, description: string) {
  const plain = z.toJSONSchema(schema, { io: "input", metadata: z.registry<object>() });
  const { $schema: _, ...rest } = json.parse(plain);
  return { ...rest, description };
}

/** A program names one target in each call: an answer has the shape of one. */
function targetSchema({ schema, description, target }: Argument) {
  const how = target === "vm" ? "by ID, name, or project/name" : "by ID or name";
  const said = argumentSchema(schema, `${description ?? `a ${target}`}, ${how}`);
  return { ...said, maxLength: mostInName };
}

/** The arguments of a command as one object. */
export function inputSchema(command: Pick<ReadCommand, "args" | "data">) {
  const all = programArguments(command);
  return {
    type: "object" as const,
    properties: Object.fromEntries(
      all.map((argument) => {
        const { key, schema, description = key, target } = argument;
        // A read without JSON says itself what its words may name
        const isName = target !== undefined && command.data !== undefined;
        return [key, isName ? targetSchema(argument) : argumentSchema(schema, description)];
      }),
    ),
    required: all.flatMap(({ key, isOptional }) => (isOptional ? [] : [key])),
    additionalProperties: false,
  };
}

/** What a program proposes, and where that stands. */
export const proposed = z.strictObject({
  command: z.string().min(1).max(4000).describe('its words: "vm snapshot db-1 before-deploy"'),
  reason: z.string().min(1).max(300).describe("why, for the person who decides"),
});
export const stateShape = z.looseObject({
  id: z.string(),
  state: z
    .string()
    .describe("open, dismissed, expired, or that of the request, as in docs/promise.md"),
  final: z.boolean(),
});

const inJson = (schema: object) => ({ "application/json": { schema } });
const fails = { default: { $ref: "#/components/responses/problem" } };

const parameter = (place: "path" | "query" | "header", key: string, schema: object) => ({
  name: key,
  in: place,
  ...(place === "path" ? { required: true } : {}),
  schema,
});

/** OpenAPI 3.1. */
export function describeApi(commands: readonly Command[]) {
  const reads = withJson(commands).map(({ command, data: { at, shape } }) => {
    const target = at.includes("{") ? targetArgument(command)?.key : undefined;
    const { properties } = inputSchema(command);
    const parameters = Object.entries(properties).map(([key, schema]) =>
      parameter(key === target ? "path" : "query", key, schema),
    );
    const description = "As far as the service sees it.";
    const responses = { 200: { description, content: inJson(outputSchema(shape)) }, ...fails };
    const summary = programSummary(command);
    return [at, { get: { operationId: toolName(command), summary, parameters, responses } }];
  });
  const state = inJson(outputSchema(stateShape));
  const key = parameter("header", "Idempotency-Key", { type: "string", maxLength: 200 });
  const wait = { type: "integer", minimum: 0, maximum: 30 };
  return {
    openapi: "3.1.0",
    info: { title: "Gatehouse", version, description: "Reads, and changes that people run." },
    security: [{ token: [] }],
    paths: {
      ...Object.fromEntries(reads),
      "/v1/proposals": {
        post: {
          operationId: "propose",
          summary: "Propose a change, which runs only if a person with the right runs it",
          parameters: [key],
          requestBody: { required: true, content: inJson(outputSchema(proposed)) },
          responses: { 202: { description: "It was kept.", content: state }, ...fails },
        },
      },
      "/v1/requests/{id}": {
        get: {
          operationId: "get_request",
          summary: "Show where a proposal, or the request that was made of it, stands",
          parameters: [
            parameter("path", "id", { type: "string" }),
            parameter("query", "wait", { ...wait, description: "how long for another state (s)" }),
            parameter("query", "after", { type: "string", description: "the state that is known" }),
          ],
          responses: { 200: { description: "Its state now.", content: state }, ...fails },
        },
      },
    },
    components: {
      securitySchemes: { token: { type: "http", scheme: "bearer" } },
      responses: {
        problem: {
          description: "Nothing was done; RFC 9457.",
          content: { "application/problem+json": { schema: outputSchema(problemShape) } },
        },
      },
    },
  };
}

const problemShape = z.looseObject({
  type: z.string(),
  title: z.string().describe("what is wrong, in a sentence"),
  status: z.number(),
  detail: z.string().optional().describe("the way out"),
  field: z.string().optional().describe("what of the call it is about"),
});
