import { appendFileSync } from "node:fs";
import { fieldsOf, listOf } from "../../sandbox/slack/fields.ts";
import type { CallRecord } from "../../sandbox/slack/web-api/call-log.ts";

const shows = new Set(["chat.postMessage", "chat.update", "chat.postEphemeral", "response_url"]);

/**
 * Writes what a call showed into the file that RENDERED_MESSAGES names, a line each: `scripts/validate-blocks.ts` asks Slack about
 * them.
 */
export function keepRendered(
  { method, args, ok }: CallRecord,
  file = process.env["RENDERED_MESSAGES"],
) {
  if (!file || !ok) return;
  const json = (value: unknown): unknown =>
    typeof value === "string" ? (JSON.parse(value) as unknown) : value;
  const blocks = shows.has(method) ? listOf(json(args["blocks"] ?? [])) : [];
  const view = method.startsWith("views.") ? fieldsOf(json(args["view"])) : {};
  if (blocks.length > 0) appendFileSync(file, `${JSON.stringify({ message: { blocks } })}\n`);
  if (Object.keys(view).length > 0) appendFileSync(file, `${JSON.stringify({ view })}\n`);
}
