import type * as z from "zod";
import { ComputeError } from "./errors.ts";
import { own } from "./body.ts";
import type { Endpoint } from "./endpoints.ts";
import { describeFailure } from "./failure.ts";
import type { Good } from "./http.ts";

/** An answer that lacks what it must have. `field` is a path like `vms[3].status`. */
export function unexpected(
  endpoint: Endpoint,
  status: number,
  field: string,
  problem: string,
): ComputeError {
  const message = `${describeFailure(endpoint, "unexpected", "answer", status)}: ${field} ${problem}`;
  return new ComputeError("unexpected", endpoint, message, { reason: "answer", status });
}

/** The JSON of a whole answer, or ComputeError `unexpected` when it is none. */
export function jsonOf(endpoint: Endpoint, good: Good): unknown {
  if (typeof good.body !== "string") return good.body.json;
  throw unexpected(
    endpoint,
    good.answer.status,
    "the body",
    good.body === "empty" ? "is empty" : "is not JSON",
  );
}

/** Checks against a schema; the first problem is named by its field, never by its value. */
export function check<T>(
  endpoint: Endpoint,
  status: number,
  schema: z.ZodType<T>,
  value: unknown,
  at = "",
): T {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const path = parsed.error.issues[0]?.path ?? [];
  const field = path.reduce<string>(
    (name, key) =>
      typeof key === "number"
        ? `${name}[${key}]`
        : name === ""
          ? String(key)
          : `${name}.${String(key)}`,
    at,
  );
  const missing = path.length > 0 && isMissing(value, path);
  throw unexpected(
    endpoint,
    status,
    field || "the record",
    missing ? "is missing" : "has the wrong form",
  );
}

function isMissing(value: unknown, path: readonly PropertyKey[]): boolean {
  let inner = value;
  for (const key of path) {
    if (typeof key === "number" && Array.isArray(inner)) inner = inner[key];
    else inner = own(inner, String(key));
  }
  return inner === undefined || inner === null;
}
