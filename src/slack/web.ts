import {
  WebAPIHTTPError,
  WebAPIPlatformError,
  WebAPIRateLimitedError,
  WebClient,
} from "@slack/web-api";
import { type Live, valueOf } from "../config/changing-file.ts";
import { messageOf } from "../errors.ts";
import { type Log, slackLogger } from "../log/log.ts";

export { parseJson } from "../text/parse-json.ts";

/** Untrusted JSON. */
type Payload = Readonly<Record<string, unknown>>;

/** The value as an object; empty when it is none. */
export function payloadOf(value: unknown): Payload {
  return typeof value === "object" && value !== null ? (value as Payload) : {};
}

/** `at(body, "container", "message_ts")`: undefined wherever the path ends early. */
export function at(value: unknown, ...path: readonly string[]): unknown {
  let found = value;
  for (const name of path) found = payloadOf(found)[name];
  return found;
}

/** The text at that path; empty when there is none. */
export function textAt(value: unknown, ...path: readonly string[]): string {
  const found = at(value, ...path);
  return typeof found === "string" ? found : "";
}

/** The list at that path; empty when there is none. */
export function listAt(value: unknown, ...path: readonly string[]): readonly unknown[] {
  const found = at(value, ...path);
  return Array.isArray(found) ? found : [];
}

export function textsAt(value: unknown, ...path: readonly string[]): string[] {
  return listAt(value, ...path).filter((one) => typeof one === "string");
}

export type WebData = Record<string, unknown>;

/** The outcome of one call. Callers decide by `kind`, never by text. */
export type WebAnswer =
  | { ok: true; data: WebData }
  /** Slack did nothing and says when to retry. */
  | { ok: false; kind: "limited"; retryAfterMs: number }
  /** Slack did nothing: `error` is its code, `detail` its longer explanation, if any. */
  | { ok: false; kind: "refused"; error: string; detail: readonly string[] }
  /** Sent, without a clear answer: it may have happened. */
  | { ok: false; kind: "lost"; reason: string }
  /** Nothing left this machine: it did not happen. */
  | { ok: false; kind: "unreachable"; reason: string };

type WebOutcome = "ok" | "limited" | "refused" | "lost" | "unreachable";

const posts = new Set(["chat.postMessage", "chat.update"]);
const lookUps = new Set([
  "conversations.history",
  "conversations.info",
  "conversations.open",
  "conversations.replies",
]);

/**
 * Whether a call shows that Slack accepts messages: only a message proves it. A failed look-up counts as silence, because
 * it blocks a post.
 */
export function signOfSlack(method: string, outcome: WebOutcome): "answer" | "silence" | undefined {
  const isSilent = outcome === "lost" || outcome === "unreachable";
  if (posts.has(method)) return isSilent ? "silence" : "answer";
  return isSilent && lookUps.has(method) ? "silence" : undefined;
}

/** Slack's Web API. A call never throws and is never retried here. */
export interface Web {
  call(method: string, args?: WebData): Promise<WebAnswer>;
}

export interface Place {
  channelId: string;
  threadTs?: string | undefined;
}

/** Posts without link previews. */
export function postMessage(
  web: Web,
  { channelId, threadTs }: Place,
  { text, blocks }: { text: string; blocks: readonly object[] },
  metadata?: object,
): Promise<WebAnswer> {
  return web.call("chat.postMessage", {
    channel: channelId,
    ...(threadTs ? { thread_ts: threadTs } : {}),
    text,
    blocks,
    unfurl_links: false,
    unfurl_media: false,
    ...(metadata && { metadata }),
  });
}

/** A failure in one word: `not_in_channel`, `limited`, `unreachable`. */
export function whyOf(answer: Extract<WebAnswer, { ok: false }>): string {
  return answer.kind === "refused" ? answer.error : answer.kind;
}

interface WebOptions {
  /** It may be replaced while the process runs. */
  token: Live;
  /** After Slack refused the token: looks for a newer one now. */
  refreshToken?: (() => void) | undefined;
  /** Base address, `https://slack.com/api/` in production. */
  apiUrl: string;
  log: Log;
  timeoutMs?: number;
  onCall?: (method: string, outcome: WebOutcome, ms: number) => void;
}

/** When Slack limits without Retry-After. */
const unknownLimitMs = 30_000;

/** Slack's own failures: part of the call may have succeeded (https://docs.slack.dev/reference/methods/chat.postMessage#errors). */
const unclearErrors = new Set([
  "internal_error",
  "fatal_error",
  "service_unavailable",
  "request_timeout",
]);

/** No byte of the request left. */
const neverLeft = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "ENETUNREACH",
  "EHOSTUNREACH",
  "UND_ERR_CONNECT_TIMEOUT",
  "CERT_HAS_EXPIRED",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
  "ERR_TLS_CERT_ALTNAME_INVALID",
]);

/**
 * Options for every WebClient, a new object each time, because clients write into it. No retries (by default a message
 * is posted up to 10 times when answers are lost), a timeout (by default none), and never `headers`: the client would put
 * its token there.
 */
export function clientOptions(options: {
  apiUrl: string;
  log: Log;
  timeoutMs?: number | undefined;
}) {
  return {
    slackApiUrl: options.apiUrl,
    retryConfig: { retries: 0 },
    timeout: options.timeoutMs ?? 8000,
    rejectRateLimitedCalls: true,
    allowAbsoluteUrls: false,
    logger: slackLogger(options.log),
  };
}

export function createWeb(options: WebOptions): Web {
  let client = new WebClient(valueOf(options.token), clientOptions(options));

  /** A client has one token for life. */
  function current(): WebClient {
    const token = valueOf(options.token);
    if (token !== client.token) client = new WebClient(token, clientOptions(options));
    return client;
  }

  const send = (method: string, args: WebData): Promise<WebAnswer> =>
    current()
      .apiCall(method, args)
      .then(
        (data): WebAnswer => ({ ok: true, data: { ...data } }),
        (error: unknown) => classify(error),
      );

  return {
    async call(method, args = {}) {
      const began = performance.now();
      let token = valueOf(options.token);
      let answer = await send(method, args);
      while (isShutOut(answer)) {
        options.refreshToken?.();
        const newer = valueOf(options.token);
        if (newer === token) break;
        // Slack did nothing, so the same call may be made with another token
        token = newer;
        answer = await send(method, args);
      }
      options.onCall?.(method, answer.ok ? "ok" : answer.kind, performance.now() - began);
      return answer;
    },
  };
}

/** Slack takes nothing from this app until somebody gives it another token, or lets it in again. */
const appShutOut = new Set([
  "access_denied",
  "account_inactive",
  "ekm_access_denied",
  "http_401",
  "http_403",
  "http_407",
  "invalid_auth",
  "not_authed",
  "org_login_required",
  "team_access_not_granted",
  "team_added_to_org",
  "token_expired",
  "token_revoked",
  "two_factor_setup_required",
]);
const scopeMissing = new Set(["missing_scope", "not_allowed_token_type"]);

/** Whether Slack refused because of the app's token or account, whatever it was asked. */
export function isShutOut(answer: WebAnswer): boolean {
  return !answer.ok && answer.kind === "refused" && appShutOut.has(answer.error);
}

/** Whether a refusal says nothing of the message or its place: the same call works once the app has what it lacks. */
export function isBecauseOfUs(error: string): boolean {
  return appShutOut.has(error) || scopeMissing.has(error);
}

function classify(error: unknown): WebAnswer {
  if (error instanceof WebAPIRateLimitedError) return limited(error.retryAfter);
  if (error instanceof WebAPIPlatformError) {
    const name = textAt(error.data, "error");
    const { messages, retryAfter } = error.data.response_metadata ?? {};
    if (name === "ratelimited" || name === "rate_limited") return limited(retryAfter);
    // A 200 whose body isn't JSON (a proxy's page), which the client passes on as an error code.
    if (!/^[\w.:-]{1,80}$/.test(name))
      return { ok: false, kind: "lost", reason: "no JSON in the answer" };
    if (unclearErrors.has(name)) return { ok: false, kind: "lost", reason: name };
    return { ok: false, kind: "refused", error: name, detail: textsAt({ messages }, "messages") };
  }
  if (error instanceof WebAPIHTTPError) {
    const { statusCode: status } = error;
    const refused = status >= 400 && status < 500 && status !== 408 && status !== 425;
    return refused
      ? { ok: false, kind: "refused", error: `http_${status}`, detail: [] }
      : { ok: false, kind: "lost", reason: `status ${status}` };
  }
  // A 429 without a usable Retry-After has no class of its own in web-api 8.2, only this sentence.
  if (messageOf(error).startsWith("Retry header did not contain")) return limited(undefined);
  const unsent = codesOf(error).some((one) => neverLeft.has(one));
  return { ok: false, kind: unsent ? "unreachable" : "lost", reason: messageOf(error) };
}

function limited(seconds: unknown): WebAnswer {
  const known = typeof seconds === "number" && seconds >= 0;
  return { ok: false, kind: "limited", retryAfterMs: known ? seconds * 1000 : unknownLimitMs };
}

/** The codes of an error and its causes; several when both address families were tried. */
function codesOf(error: unknown, depth = 0): string[] {
  if (depth > 5) return [];
  const code = textAt(error, "code");
  const causes = [at(error, "cause"), ...listAt(error, "errors")].filter(
    (one) => one !== undefined,
  );
  return [...(code === "" ? [] : [code]), ...causes.flatMap((one) => codesOf(one, depth + 1))];
}

/**
 * Rejections that @slack/socket-mode can leave unhandled when Slack disconnects. None are expected; main logs them
 * instead of ending the process.
 */
export function isKnownSocketRejection(error: unknown): boolean {
  if (error === undefined) return true; // its start(), when disconnect() comes first
  if (textAt(error, "code").startsWith("slack_socket_mode_")) return true;
  return /@slack[/\\]socket-mode/.test(textAt(error, "stack"));
}
