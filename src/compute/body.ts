import type { Answer } from "./exchange.ts";

/**
 * What an answer's body is. `broken-off`: it began as JSON and ends in the middle, so the answer was cut on its way;
 * that is something else than a service that answers with text. `same`: not parsed, the caller knows it already.
 */
export type Body = { json: unknown } | "empty" | "broken-off" | "not-json" | "same";

export function parseBody(answer: Answer): Exclude<Body, "same"> {
  const text = answer.text.trim();
  if (text === "") return "empty";
  try {
    return { json: JSON.parse(text) as unknown };
  } catch {
    const saysJson = answer.contentType === "" || /[/+]json$/.test(answer.contentType);
    return saysJson && endsInside(text) ? "broken-off" : "not-json";
  }
}

/** The text starts a JSON object, array or string that is never closed. */
function endsInside(text: string): boolean {
  let depth = 0;
  let inString = false;
  if (!/^["[{]/.test(text)) return false;
  for (let at = 0; at < text.length; at += 1) {
    const char = text[at];
    if (inString) {
      if (char === "\\") at += 1;
      else if (char === '"') inString = false;
    } else if (char === '"') inString = true;
    else if (char === "{" || char === "[") depth += 1;
    else if (char === "}" || char === "]") depth -= 1;
  }
  return inString || depth > 0;
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** An own property: `__proto__` and `constructor` from the wire are names like any other. */
export function own(value: unknown, key: string): unknown {
  return isRecord(value) && Object.hasOwn(value, key) ? value[key] : undefined;
}
