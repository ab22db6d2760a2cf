import * as z from "zod";
import type { OpenApiPaths } from "../../api/api-context.ts";
import {
  fails,
  inJson,
  inputSchema,
  outputSchema,
  parameter,
  programSummary,
  toolName,
  withJson,
} from "../../api/schemas.ts";
import { version } from "../../config/version.ts";
import { type Command, targetArgument } from "../../registry/define.ts";

/** Describes the API in OpenAPI 3.1. `paths` are the routes in addition to the reads. */
export function describeApi(commands: readonly Command[], paths: OpenApiPaths) {
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
  return {
    openapi: "3.1.0",
    info: { title: "Gatehouse", version, description: "Reads, and changes that people run." },
    security: [{ token: [] }],
    paths: {
      ...Object.fromEntries(reads),
      ...paths,
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
