import { fieldsOf } from "../../../sandbox/compute/checks.ts";
import type { SandboxCompute } from "../../../sandbox/compute/start-sandbox-compute.ts";

export interface Answered {
  status: number;
  body: Record<string, unknown>;
}

/** Asks the sandbox like curl would: "POST /v1/vms/vm-1/start". */
export async function call(
  sandbox: Pick<SandboxCompute, "url" | "apiKey">,
  what: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Answered> {
  const [method = "GET", path = "/"] = what.split(" ");
  const response = await fetch(`${sandbox.url}${path}`, {
    method,
    redirect: "manual",
    headers: {
      authorization: `Bearer ${sandbox.apiKey}`,
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  const isJson = response.headers.get("content-type")?.includes("json") && text !== "";
  return {
    status: response.status,
    body: isJson ? fieldsOf(JSON.parse(text)) : { text },
  };
}
