import * as z from "zod";
import type { OpenApiPaths } from "../../api/api-context.ts";
import { fails, inJson, outputSchema, parameter } from "../../api/schemas.ts";

/** The shapes of a proposal and of its state, for programs. */
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
  card: z.string().optional().describe("address of its card in Slack, once it stands there"),
});

const state = inJson(outputSchema(stateShape));
const key = parameter("header", "Idempotency-Key", { type: "string", maxLength: 200 });
const wait = { type: "integer", minimum: 0, maximum: 30 };

/** The routes of proposals in OpenAPI. */
export const proposalPaths: OpenApiPaths = {
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
};
