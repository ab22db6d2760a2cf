import { plain } from "../messages/text.ts";
import { isRecord, own, parseBody } from "./body.ts";
import type { Answer } from "./exchange.ts";

/**
 * The service's own words in a refusal, whatever its shape: `{error}`, `{error: {message}}`, `{message}`, `{detail}`,
 * `{errors: […]}`, problem+json (RFC 9457) or plain text; never HTML. One line, at most 300 characters, without
 * `secret` should the service echo it. Untrusted like everything from outside.
 */
export function serviceMessage(answer: Answer, secret: string): string | undefined {
  const body = parseBody(answer);
  const words = typeof body === "string" ? textWords(answer) : wordsIn(body.json, 0);
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

function textWords(answer: Answer): string | undefined {
  const isText = answer.contentType === "" || answer.contentType === "text/plain";
  return isText ? answer.text : undefined;
}

function looksLikeHtml(text: string): boolean {
  return /^\s*<|<(html|body|head|script|style|div|p|h1|title|br)\b/i.test(text);
}

const keys = [
  "message",
  "error_description",
  "detail",
  "error",
  "title",
  "msg",
  "reason",
  "description",
  "errors",
];

/** Two levels are enough for every usual shape, and bound what a hostile answer can make us do. */
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
