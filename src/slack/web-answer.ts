import { WebAPIHTTPError, WebAPIPlatformError, WebAPIRateLimitedError } from "@slack/web-api";
import { certificateFlaw } from "../config/authorities.ts";
import { messageOf } from "../errors.ts";
import { type WebData, at, listAt, textAt, textsAt } from "./json.ts";

/** The outcome of one call. Callers decide by `kind`, never by text. */
export type WebAnswer =
  | { ok: true; data: WebData }
  /** Slack did nothing and says when to retry. */
  | { ok: false; kind: "limited"; retryAfterMs: number }
  /**
   * Slack did nothing. `error` is its code, `detail` its longer explanation, if any, and `needed`
   * the missing scope.
   */
  | { ok: false; kind: "refused"; error: string; detail: readonly string[]; needed?: string }
  /** The call was sent without a clear answer: it may have happened. */
  | { ok: false; kind: "lost"; reason: string }
  /** Nothing left this machine: it did not happen. */
  | { ok: false; kind: "unreachable"; reason: string };

/** A failure in one word: `not_in_channel`, `limited`, `unreachable`. */
export function whyOf(answer: Extract<WebAnswer, { ok: false }>): string {
  return answer.kind === "refused" ? answer.error : answer.kind;
}

/** The wait when Slack limits without Retry-After (ms). */
const unknownLimitMs = 30_000;
/**
 * The wait when a workspace sends too many messages (s). Slack doesn't say when that ends, and it
 * may end at any moment.
 */
const messageLimitS = 5;

/** Slack did nothing, and would do it a little later. */
const limitErrors = new Set(["ratelimited", "rate_limited"]);

/**
 * Slack's own failures. Part of the call may have succeeded
 * (https://docs.slack.dev/reference/methods/chat.postMessage#errors).
 */
const unclearErrors = new Set([
  "internal_error",
  "fatal_error",
  "service_unavailable",
  "request_timeout",
]);

/** No byte of the request was sent. The same is true when the certificate was refused. */
const neverLeft = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "ENETUNREACH",
  "EHOSTUNREACH",
  "UND_ERR_CONNECT_TIMEOUT",
]);

/**
 * Slack accepts nothing from this app until somebody gives it another token, or admits it again.
 */
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

/** Whether Slack refused because of the app's token or account, whatever the call was. */
export function isShutOut(answer: WebAnswer): boolean {
  return !answer.ok && answer.kind === "refused" && appShutOut.has(answer.error);
}

/**
 * Whether a refusal says nothing about the message or its place: the same call works once the app
 * has what it lacks.
 */
export function isBecauseOfUs(error: string): boolean {
  return appShutOut.has(error) || scopeMissing.has(error);
}

export function classify(error: unknown): WebAnswer {
  if (error instanceof WebAPIRateLimitedError) return limited(error.retryAfter);
  if (error instanceof WebAPIPlatformError) {
    const name = textAt(error.data, "error");
    const { messages, retryAfter } = error.data.response_metadata ?? {};
    if (limitErrors.has(name)) return limited(retryAfter);
    if (name === "message_limit_exceeded") return limited(retryAfter ?? messageLimitS);
    // A 200 whose body isn't JSON (a proxy's page) is passed on by the client as an error code.
    if (!/^[\w.:-]{1,80}$/.test(name))
      return { ok: false, kind: "lost", reason: "no JSON in the answer" };
    if (unclearErrors.has(name)) return { ok: false, kind: "lost", reason: name };
    const needed = textAt(error.data, "needed");
    const detail = textsAt({ messages }, "messages");
    return { ok: false, kind: "refused", error: name, detail, ...(needed && { needed }) };
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
  const unsent = codesOf(error).some(
    (code) => neverLeft.has(code) || certificateFlaw(code) !== undefined,
  );
  return { ok: false, kind: unsent ? "unreachable" : "lost", reason: messageOf(error) };
}

function limited(seconds: unknown): WebAnswer {
  const known = typeof seconds === "number" && seconds >= 0;
  return { ok: false, kind: "limited", retryAfterMs: known ? seconds * 1000 : unknownLimitMs };
}

/**
 * The codes of an error and its causes. There are several when both address families were tried.
 */
function codesOf(error: unknown, depth = 0): string[] {
  if (error === undefined || depth > 5) return [];
  const code = textAt(error, "code");
  const causes = [at(error, "cause"), ...listAt(error, "errors")];
  return [...(code === "" ? [] : [code]), ...causes.flatMap((cause) => codesOf(cause, depth + 1))];
}

/**
 * Whether this is a rejection that @slack/socket-mode can leave unhandled when Slack disconnects.
 * None are expected; the process logs them instead of ending.
 */
export function isKnownSocketRejection(error: unknown): boolean {
  // The client's start() rejects like this when disconnect() comes first.
  if (error === undefined) return true;
  if (textAt(error, "code").startsWith("slack_socket_mode_")) return true;
  return /@slack[/\\]socket-mode/.test(textAt(error, "stack"));
}
