import type { SandboxSlack } from "../../../sandbox/slack/sandbox-slack.ts";
import { type Fields, fieldsOf } from "../../../sandbox/slack/fields.ts";

export interface ApiAnswer extends Fields {
  status: number;
  retryAfter: string | null;
}

/** Calls a Web API method like the SDK does: a form, lists and objects as JSON, the token in a header. */
export async function callApi(
  slack: SandboxSlack,
  method: string,
  args: Fields = {},
  token = slack.app.botToken,
): Promise<ApiAnswer> {
  const form = new URLSearchParams();
  for (const [name, value] of Object.entries(args)) {
    form.set(name, typeof value === "string" ? value : JSON.stringify(value));
  }
  const response = await fetch(`${slack.apiUrl}${method}`, {
    method: "POST",
    body: form,
    headers: token === "" ? {} : { authorization: `Bearer ${token}` },
  });
  const text = await response.text();
  const body: unknown = text.startsWith("{") ? JSON.parse(text) : { text };
  return {
    ...fieldsOf(body),
    status: response.status,
    retryAfter: response.headers.get("retry-after"),
  };
}
