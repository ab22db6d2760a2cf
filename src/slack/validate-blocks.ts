import * as z from "zod";
import { messageOf } from "../errors.ts";
import { parseJson } from "../text/parse-json.ts";

/** A message, modal, or Home tab, in the form that `blocks.validate` takes. */
export type Rendered = { message: { blocks: readonly object[] } } | { view: object };

/** Slack's verdict: valid, complaints with their places, or why there is no answer. */
export type Validation =
  | { kind: "valid" }
  | { kind: "invalid"; complaints: readonly string[] }
  | { kind: "limited"; retryAfterMs: number }
  | { kind: "unanswered"; reason: string };

const answerOf = z.looseObject({
  ok: z.boolean(),
  error: z.string().optional(),
  errors: z.array(z.looseObject({ pointer: z.string(), message: z.string() })).optional(),
});

const withinMs = 10_000;
const refusals = new Set(["invalid_blocks", "invalid_message", "invalid_view"]);

/**
 * Asks Slack whether it accepts something
 * (https://docs.slack.dev/reference/methods/blocks.validate). The method needs no token, so none is
 * sent. It judges by Block Kit's schema, not by the sum of all blocks.
 */
export async function validateBlocks(apiUrl: string, rendered: Rendered): Promise<Validation> {
  try {
    const form = Object.entries(rendered).map(([name, value]) => [name, JSON.stringify(value)]);
    const response = await fetch(new URL("blocks.validate", apiUrl), {
      method: "POST",
      body: new URLSearchParams(form),
      redirect: "error",
      signal: AbortSignal.timeout(withinMs),
    });
    if (response.status === 429)
      return {
        kind: "limited",
        retryAfterMs: 1000 * (Number(response.headers.get("retry-after")) || 30),
      };
    const { data } = answerOf.safeParse(parseJson(await response.text()));
    if (!data) return { kind: "unanswered", reason: `no JSON in the answer (${response.status})` };
    if (data.ok) return { kind: "valid" };
    const { error = "", errors = [] } = data;
    if (!refusals.has(error)) return { kind: "unanswered", reason: error };
    return {
      kind: "invalid",
      complaints: errors.map(({ pointer, message }) => `${pointer}: ${message}`),
    };
  } catch (error) {
    return { kind: "unanswered", reason: messageOf(error) };
  }
}
