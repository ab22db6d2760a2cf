import { promisify } from "node:util";
import { brotliDecompress, gunzip, inflate, inflateRaw } from "node:zlib";
import type { Dispatcher } from "undici";
import {
  type Method,
  type ComputeErrorKind,
  type ComputeErrorReason,
  isRecord,
  own,
} from "./compute.ts";
import { type PagingHeaders, pagingHeaders } from "./paging.ts";
import { parseJson } from "../../text/parse-json.ts";
import { plain } from "../../messages/markdown.ts";

export interface Request {
  origin: string;
  path: string;
  method: Method;
  headers: Record<string, string>;
  body: string | null;
  /** The limit for connecting, sending, and reading the answer together. */
  timeoutMs: number;
  /** The most bytes of an answer's body. */
  maxBytes: number;
  signal: AbortSignal | undefined;
}

/** The result of one request: an answer or a failure. It never throws because of the network. */
export type Exchange = ServiceAnswer | { failure: ComputeErrorReason };

export async function exchange(dispatcher: Dispatcher, request: Request): Promise<Exchange> {
  const { timeoutMs, maxBytes, signal, ...rest } = request;
  // undici would connect first.
  if (signal?.aborted) return { failure: "aborted" };
  const timer = AbortSignal.timeout(timeoutMs);
  const stop = AbortSignal.any(signal ? [signal, timer] : [timer]);
  let answer: Omit<ServiceAnswer, "text"> | undefined;
  try {
    const { statusCode, headers, body } = await dispatcher.request({ ...rest, signal: stop });
    const first = (header: string) => [headers[header]].flat()[0];
    answer = {
      status: statusCode,
      contentType: (first("content-type") ?? "").replace(/;.*$/s, "").trim().toLowerCase(),
      retryAfter: first("retry-after"),
      paging: Object.fromEntries(pagingHeaders.map((header) => [header, first(header)])),
    };
    const bytes = await readAnswerBody(body, maxBytes);
    if (bytes === undefined) return { ...answer, text: "", flaw: "too-large" };
    const plainBytes = await decodeBody(bytes, [headers["content-encoding"]].flat(), maxBytes);
    if (typeof plainBytes !== "string") return { ...answer, text: plainBytes.toString("utf8") };
    return { ...answer, text: "", flaw: plainBytes };
  } catch (error) {
    const stopped = stop.reason === timer.reason ? "timeout" : "aborted";
    const reason = stop.aborted ? stopped : reasonOf(error);
    if (!answer) return { failure: reason };
    return { ...answer, text: "", flaw: reason === "reset" ? "truncated" : reason };
  }
}

/**
 * Reads a body of at most `most` bytes. Undefined when it is longer; the connection is then
 * abandoned.
 */
export async function readAnswerBody(
  body: AsyncIterable<Buffer>,
  most: number,
): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > most) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

type Decode = (bytes: Buffer, options: { maxOutputLength: number }) => Promise<Buffer>;

const decoders: Readonly<Record<string, Decode>> = {
  gzip: promisify(gunzip),
  "x-gzip": promisify(gunzip),
  // Some servers omit the zlib header that RFC 9110 requires.
  deflate: (bytes, options) =>
    ((bytes[0] ?? 0) & 0x0f) === 8
      ? promisify(inflate)(bytes, options)
      : promisify(inflateRaw)(bytes, options),
  br: promisify(brotliDecompress),
};
const mostEncodings = 3;

/**
 * Decodes a body, to at most `most` bytes, or returns why it can't. No encoding was requested, but
 * something between may encode nevertheless (RFC 9110, section 12.5.3).
 */
export async function decodeBody(
  bytes: Buffer,
  contentEncoding: readonly (string | undefined)[],
  most: number,
): Promise<Buffer | "encoding" | "truncated" | "too-large"> {
  const encodings = contentEncoding
    .flatMap((header = "") => header.split(","))
    .map((each) => each.trim().toLowerCase())
    .filter((each) => each !== "" && each !== "identity");
  if (encodings.length > mostEncodings) return "encoding";
  let plainBytes = bytes;
  // The encodings were applied in this order, so they are removed in reverse.
  for (const encoding of encodings.toReversed()) {
    const decode = Object.hasOwn(decoders, encoding) ? decoders[encoding] : undefined;
    if (!decode) return "encoding";
    if (plainBytes.length === 0) return plainBytes;
    try {
      // oxlint-disable-next-line no-await-in-loop -- each decodes what the one before gave
      plainBytes = await decode(plainBytes, { maxOutputLength: most });
    } catch (error) {
      const code = codeOf(error);
      if (code === "ERR_BUFFER_TOO_LARGE") return "too-large";
      return code === "Z_BUF_ERROR" ? "truncated" : "encoding";
    }
  }
  return plainBytes;
}

/**
 * The meaning of an error of undici, net, tls, or dns. The first pattern that matches its code
 * counts. Message texts are never used.
 */
const reasonsByCode: readonly (readonly [RegExp, ComputeErrorReason])[] = [
  [/^FORBIDDEN_ADDRESS$/, "forbidden-address"],
  [/^PROXY_REFUSED$/, "proxy"],
  [/^PROXY_LOGIN_REFUSED$/, "proxy-login"],
  [/^(ENOTFOUND|EAI_|ENODATA|ESERVFAIL|ETIMEOUT)/, "dns"],
  [/^(ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|EHOSTDOWN|ENETDOWN)$/, "connect"],
  [/^(UND_ERR_CONNECT_TIMEOUT|ETIMEDOUT)$/, "timeout"],
  [/TLS|SSL|CERT|SELF_SIGNED|UNABLE_TO|^EPROTO$|^CRL_/, "tls"],
  [/^HOSTNAME_MISMATCH$|^INVALID_(CA|PURPOSE)$/, "tls"],
];

function reasonOf(error: unknown): ComputeErrorReason {
  const code = codeOf(error);
  return reasonsByCode.find(([codes]) => codes.test(code))?.[1] ?? "reset";
}

function codeOf(error: unknown): string {
  if (typeof error !== "object" || error === null) return "";
  if ("code" in error && typeof error.code === "string") return error.code;
  // When several addresses were tried (happy eyeballs), the first failure counts.
  if ("errors" in error && Array.isArray(error.errors) && error.errors.length > 0)
    return codeOf(error.errors[0]);
  return "cause" in error ? codeOf(error.cause) : "";
}

export interface Bad {
  kind: ComputeErrorKind;
  reason: ComputeErrorReason;
  answer?: ServiceAnswer;
}

/** An answer to use, or a failure. */
export type CallVerdict = { answer: ServiceAnswer; body: Body } | Bad;

/** Statuses that are sent before anything is done. Any other status proves nothing. */
const refusals = new Set([
  400, 401, 402, 403, 405, 411, 412, 413, 414, 415, 417, 421, 422, 426, 428, 431, 451,
]);

/**
 * Judges what became of a change. Without a connection nothing was sent. With one, only the status
 * of an answer proves that nothing happened. A 2xx answer that was cut off, or that says that it
 * failed, is unclear; any other complete one is accepted. A page of something in between proves
 * nothing.
 */
export function judgeChange(seen: Exchange, connected: boolean): CallVerdict {
  if ("failure" in seen)
    return { kind: connected ? "unclear" : "unreachable", reason: seen.failure };
  if (isForeign(seen)) return { kind: "unclear", reason: "answer", answer: seen };
  if (!isGood(seen))
    return { kind: kindOf(seen.status) ?? "unclear", reason: reasonFor(seen.status), answer: seen };
  // The status of a complete answer counts even if its encoding can't be decoded, as for an answer
  // without a body.
  if (seen.flaw === "encoding") return { answer: seen, body: "empty" };
  const body = parseBody(seen);
  const reason =
    seen.flaw ??
    (body === "broken-off" ? "truncated" : undefined) ??
    (saysFailure(body) ? "says-failure" : undefined);
  return reason ? { kind: "unclear", reason, answer: seen } : { answer: seen, body };
}

export function judgeRead(seen: Exchange): CallVerdict {
  if ("failure" in seen) return { kind: "unreachable", reason: seen.failure };
  const { status, flaw } = seen;
  if (isGood(seen)) {
    const body = parseBody(seen);
    const reason = flaw ?? (body === "broken-off" ? "truncated" : undefined);
    if (!reason) return { answer: seen, body };
    // Another attempt would get the same answer.
    const isForGood = reason === "too-large" || reason === "encoding";
    return { kind: isForGood ? "unexpected" : "unreachable", reason, answer: seen };
  }
  const known = kindOf(status);
  if (known !== undefined && known !== "busy" && isForeign(seen))
    return { kind: "unreachable", reason: "answer", answer: seen };
  if (known !== undefined) return { kind: known, reason: "status", answer: seen };
  if (status < 400) return { kind: "unexpected", reason: reasonFor(status), answer: seen };
  const isPassing = status >= 500 || status === 408 || status === 425;
  return { kind: isPassing ? "unreachable" : "refused", reason: "status", answer: seen };
}

/** Whether a failed read may succeed when it is sent again. */
export function mayPass({ kind, reason, answer }: Bad): boolean {
  if (kind === "busy") return true; // The service asked to slow down.
  if (kind !== "unreachable") return false; // The answer was clear.
  if (reason === "aborted") return false; // Nobody waits for it any more.
  if (reason === "tls" || reason === "forbidden-address") return false; // A person must look at it.
  if (reason === "answer") return false; // Something else answers in the service's place.
  return answer?.status !== 501 && answer?.status !== 505; // The service can't do that.
}

function isGood({ status }: Pick<ServiceAnswer, "status">): boolean {
  return status >= 200 && status < 300;
}

function kindOf(status: number): ComputeErrorKind | undefined {
  if (refusals.has(status)) return "refused";
  if (status === 404 || status === 410) return "not-found";
  if (status === 409 || status === 423) return "conflict";
  if (status === 429) return "busy";
  return undefined;
}

function reasonFor(status: number): ComputeErrorReason {
  return status >= 300 && status < 400 ? "redirect" : "status";
}

export interface ServiceAnswer {
  status: number;
  /** Lower case, without parameters. Empty when there is none. */
  contentType: string;
  retryAfter: string | undefined;
  paging: PagingHeaders;
  text: string;
  /** The status was received, but the body wasn't received completely. */
  flaw?: ComputeErrorReason | undefined;
}

/** `broken-off` means JSON that was cut off in transit. */
export type Body = { json: unknown } | "empty" | "broken-off" | "not-json";

export function parseBody(answer: ServiceAnswer): Body {
  const text = answer.text.trim();
  if (text === "") return "empty";
  const json = parseJson(text);
  if (json !== undefined) return { json };
  const saysJson = answer.contentType === "" || /[/+]json$/.test(answer.contentType);
  return saysJson && endsInside(text) ? "broken-off" : "not-json";
}

/**
 * Whether an answer is a web page of something in between, like a proxy or a sign-in. Whatever its
 * status, the service didn't answer then.
 */
function isForeign({ contentType, text, flaw }: ServiceAnswer): boolean {
  if (/^\s*</.test(text)) return true;
  if (!/^(text\/html|application\/xhtml\+xml)$/.test(contentType)) return false;
  return flaw !== undefined || (text.trim() !== "" && parseJson(text) === undefined);
}

/** Whether the text starts a JSON object, array, or string that is never closed. */
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

/** Fields of an answer's envelope, in lower case. A record of the service has an ID, an envelope doesn't. */
const successFields = new Set(["success", "succeeded", "successful", "ok"]);
const failureFields = new Set(["failed", "failure", "error", "errors", "fault", "exception"]);
const errorTextFields = new Set([
  "error_code",
  "errorcode",
  "error_message",
  "errormessage",
  "errmsg",
]);
const outcomeFields = new Set(["status", "state", "result", "outcome", "type"]);
const codeFields = new Set([
  "code",
  "status_code",
  "statuscode",
  "errno",
  "errcode",
  "ret",
  "retcode",
]);
const failedOutcome =
  /^(error|errors?ed|fail|failed|failure|fault|rejected|refused|denied|invalid)$/i;
const envelopes = new Set(["data", "result", "response", "body", "meta"]);

/**
 * Whether a 2xx answer says in its body that the call failed, as services do that answer everything
 * with 200: `{success: false}`, `{error: {…}}`, `{status: "error"}`, `{code: 40013, msg: …}`. A
 * record may have a field `status` or `error` of its own, so these count only outside of a record.
 */
export const saysFailure = (body: Body): boolean =>
  typeof body !== "string" && isFailure(body.json, 0);

function isFailure(json: unknown, depth: number): boolean {
  if (!isRecord(json)) return false;
  const fields = Object.entries(json).map(([field, value]): [string, unknown] => [
    field.toLowerCase(),
    value,
  ]);
  const isFalse = (value: unknown) => value === false || value === 0 || value === "false";
  if (fields.some(([field, value]) => successFields.has(field) && isFalse(value))) return true;
  // JSON-RPC gives its envelope an ID, too.
  if (own(json, "id") !== undefined && own(json, "jsonrpc") === undefined) return false;
  const isExplained = fields.some(([field, value]) => isMessageField(field) && isPresent(value));
  return fields.some(([field, value]) => {
    if (failureFields.has(field)) return isPresent(value);
    if (errorTextFields.has(field)) return isPresent(value) && Number(value) !== 0;
    if (outcomeFields.has(field) && typeof value === "string") return failedOutcome.test(value);
    if (codeFields.has(field)) return isExplained && isErrorCode(value);
    return depth === 0 && envelopes.has(field) && isFailure(value, depth + 1);
  });
}

const isMessageField = (field: string) => /^(msg|message|reason|detail|description)$/.test(field);

/** Zero and 2xx mean success wherever an envelope has a code. */
function isErrorCode(value: unknown): boolean {
  const code = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
  return (
    typeof code === "number" && Number.isFinite(code) && code !== 0 && !(code >= 200 && code < 300)
  );
}

function isPresent(value: unknown): boolean {
  if (value === undefined || value === null || value === false || value === 0) return false;
  if (typeof value === "string") return !/^(|false|none|null|0)$/i.test(value.trim());
  return Object.keys(value).length > 0 || typeof value !== "object";
}

/**
 * The service's own words in a refusal: `{error}`, `{error: {message}}`, `{message}`, `{detail}`,
 * `{errors: […]}`, problem+json (RFC 9457), or plain text, but never HTML. One line, at most 300
 * characters, without `secret`. Untrusted.
 */
export function serviceMessage(answer: ServiceAnswer, secret: string): string | undefined {
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

/** Names of fields with words for people, in the order of preference. Upper case doesn't matter. */
const keys =
  "message error_description error_message errormessage errmsg detail error title msg reason description errors fault exception meta response body".split(
    " ",
  );

/** Finds words at a limited depth, which bounds the work that a hostile answer can cause. */
function wordsIn(value: unknown, depth: number): string | undefined {
  if (typeof value === "string") return value.trim() === "" ? undefined : value;
  if (depth > 3) return undefined;
  if (Array.isArray(value)) {
    const words = value.slice(0, 5).map((each: unknown) => withField(each, depth + 1));
    return words.filter((each) => each !== undefined).join("; ") || undefined;
  }
  if (!isRecord(value)) return undefined;
  const fields = new Map(Object.entries(value).map(([field, each]) => [field.toLowerCase(), each]));
  for (const key of keys) {
    const words = wordsIn(fields.get(key), depth + 1);
    if (words !== undefined) return words;
  }
  const failing = [fields.get("data"), fields.get("result")].find((each) => isFailure(each, 1));
  return failing === undefined ? fieldErrors(value) : wordsIn(failing, depth + 1);
}

/** `{field: "cpu", message: "must be positive"}` reads as "cpu: must be positive". */
function withField(entry: unknown, depth: number): string | undefined {
  const words = wordsIn(entry, depth);
  const field = own(entry, "field") ?? own(entry, "path") ?? own(entry, "param");
  return words !== undefined && typeof field === "string" ? `${field}: ${words}` : words;
}

/** Reads `{cpu: ["must be positive"]}`, the form of several frameworks. */
function fieldErrors(value: Record<string, unknown>): string | undefined {
  const words: string[] = [];
  for (const [field, each] of Object.entries(value).slice(0, 5)) {
    const sentence: unknown = Array.isArray(each) ? each[0] : undefined;
    if (typeof sentence === "string") words.push(`${field}: ${sentence}`);
  }
  return words.join("; ") || undefined;
}
