import { parseJson } from "../text/parse-json.ts";
import type { ComputeErrorReason } from "./errors.ts";
import { plain } from "../messages/text.ts";

export interface Answer {
  status: number;
  /** Lower case, without parameters; empty when there is none. */
  contentType: string;
  retryAfter: string | undefined;
  /** The service's clock, as it says. */
  date?: string | undefined;
  text: string;
  /** The status arrived, the body did not arrive whole. */
  flaw?: ComputeErrorReason | undefined;
}

/** `broken-off`: JSON that was cut off in transit. */
export type Body = { json: unknown } | "empty" | "broken-off" | "not-json";

export function parseBody(answer: Answer): Body {
  const text = answer.text.trim();
  if (text === "") return "empty";
  const json = parseJson(text);
  if (json !== undefined) return { json };
  const saysJson = answer.contentType === "" || /[/+]json$/.test(answer.contentType);
  return saysJson && endsInside(text) ? "broken-off" : "not-json";
}

/** A page is of something in between, a proxy or a sign-in: whatever its status, the service didn't answer. */
export function isForeign({ contentType, text, flaw }: Answer): boolean {
  if (/^\s*</.test(text)) return true;
  if (!/^(text\/html|application\/xhtml\+xml)$/.test(contentType)) return false;
  return flaw !== undefined || (text.trim() !== "" && parseJson(text) === undefined);
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

/**
 * The service's own words in a refusal: `{error}`, `{error: {message}}`, `{message}`, `{detail}`, `{errors: […]}`,
 * problem+json (RFC 9457), or plain text; never HTML. One line, at most 300 characters, without `secret`. Untrusted.
 */
export function serviceMessage(answer: Answer, secret: string): string | undefined {
  const body = parseBody(answer);
  const isText = answer.contentType === "" || answer.contentType === "text/plain";
  const words =
    typeof body === "string" ? (isText ? answer.text : undefined) : wordsIn(body.json, 0);
  if (words === undefined || looksLikeHtml(words)) return undefined;
  const clean = plain(
    words
      .slice(0, 2000)
      .replaceAll(secret, "…")
      .replaceAll(/\bBearer\s+\S+/gi, "Bearer …"),
    300,
  );
  return clean === "" ? undefined : clean;
}

function looksLikeHtml(text: string): boolean {
  return /^\s*<|<(html|body|head|script|style|div|p|h1|title|br)\b/i.test(text);
}

const keys = "message error_description detail error title msg reason description errors".split(
  " ",
);

/** The depth bounds the work that a hostile answer can cause. */
function wordsIn(value: unknown, depth: number): string | undefined {
  if (typeof value === "string") return value.trim() === "" ? undefined : value;
  if (depth > 3) return undefined;
  if (Array.isArray(value)) {
    const words = value.slice(0, 5).map((each: unknown) => withField(each, depth + 1));
    return words.filter((each) => each !== undefined).join("; ") || undefined;
  }
  if (!isRecord(value)) return undefined;
  for (const key of keys) {
    const words = wordsIn(own(value, key), depth + 1);
    if (words !== undefined) return words;
  }
  return fieldErrors(value);
}

/** `{field: "cpu", message: "must be positive"}` reads as "cpu: must be positive". */
function withField(entry: unknown, depth: number): string | undefined {
  const words = wordsIn(entry, depth);
  const field = own(entry, "field") ?? own(entry, "path") ?? own(entry, "param");
  return words !== undefined && typeof field === "string" ? `${field}: ${words}` : words;
}

/** `{cpu: ["must be positive"]}`, the way of several frameworks. */
function fieldErrors(value: Record<string, unknown>): string | undefined {
  const words: string[] = [];
  for (const [field, each] of Object.entries(value).slice(0, 5)) {
    const first: unknown = Array.isArray(each) ? each[0] : undefined;
    if (typeof first === "string") words.push(`${field}: ${first}`);
  }
  return words.join("; ") || undefined;
}
