import {
  WebAPIHTTPError,
  WebAPIPlatformError,
  WebAPIRateLimitedError,
  WebClient,
} from "@slack/web-api";
import { messageOf } from "../errors.ts";
import { type Log, slackLogger } from "../log.ts";
import { at, listAt, textAt, textsAt } from "./payload.ts";

export type WebData = Record<string, unknown>;

/** What came of one call, by what we know about it. A caller decides what to do by `kind`, never by words. */
export type WebAnswer =
  | { ok: true; data: WebData }
  /** Slack did nothing and says when to come back. */
  | { ok: false; kind: "limited"; retryAfterMs: number }
  /** Slack did nothing: `error` is its code, `detail` its longer words where it gave some. */
  | { ok: false; kind: "refused"; error: string; detail: readonly string[] }
  /** It left us and no clear answer came: it may have happened. */
  | { ok: false; kind: "lost"; reason: string }
  /** Nothing left this machine: it did not happen. */
  | { ok: false; kind: "unreachable"; reason: string };

export type WebOutcome = "ok" | "limited" | "refused" | "lost" | "unreachable";

const posts = new Set(["chat.postMessage", "chat.update"]);
const lookUps = new Set(["conversations.history", "conversations.replies"]);

/**
 * Whether a call shows that Slack takes what we have to say: only messages prove that it does. A look-up stands before a
 * post whose answer was lost, so one that fails holds up a message too.
 */
export function signOfSlack(method: string, outcome: WebOutcome): "answer" | "silence" | undefined {
  const isSilent = outcome === "lost" || outcome === "unreachable";
  if (posts.has(method)) return isSilent ? "silence" : "answer";
  return isSilent && lookUps.has(method) ? "silence" : undefined;
}

/** Slack's Web API. A call never throws and is never repeated in here. */
export interface Web {
  call(method: string, args?: WebData): Promise<WebAnswer>;
}

export interface WebOptions {
  token: string;
  /** Base address, `https://slack.com/api/` in production. */
  apiUrl: string;
  log: Log;
  timeoutMs?: number;
  onCall?: (method: string, outcome: WebOutcome, ms: number) => void;
}

/** When Slack limits without saying for how long. */
const unknownLimitMs = 30_000;

/** Slack's own failures: part of the call may have succeeded (https://docs.slack.dev/reference/methods/chat.postMessage#errors). */
const unclearErrors = new Set([
  "internal_error",
  "fatal_error",
  "service_unavailable",
  "request_timeout",
]);

/** No byte of the request left: no address, no route, no connection. */
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
 * Options for every WebClient of ours, a new object each time, because clients write into the one they get.
 * No retries (the default client posts a message up to 10 times when answers are lost), a timeout (the default has
 * none), and never `headers`: the client would put its token into that object, for all clients that share it.
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
  const client = new WebClient(options.token, clientOptions(options));
  return {
    async call(method, args = {}) {
      const began = performance.now();
      const answer = await client.apiCall(method, args).then(
        (data): WebAnswer => ({ ok: true, data: { ...data } }),
        (error: unknown) => classify(error),
      );
      options.onCall?.(method, answer.ok ? "ok" : answer.kind, performance.now() - began);
      return answer;
    },
  };
}

/** What an error of the client says about whether the call happened. */
export function classify(error: unknown): WebAnswer {
  if (error instanceof WebAPIRateLimitedError) return limited(error.retryAfter);
  if (error instanceof WebAPIPlatformError) {
    const name = textAt(error.data, "error");
    const { messages, retryAfter } = error.data.response_metadata ?? {};
    if (name === "ratelimited" || name === "rate_limited") return limited(retryAfter);
    // Not a code: a 200 whose body isn't JSON (a proxy's page), which the client hands on as if it were one.
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

/** The codes of an error and of everything it was caused by; several when both address families were tried. */
function codesOf(error: unknown, depth = 0): string[] {
  if (depth > 5) return [];
  const code = textAt(error, "code");
  const causes = [at(error, "cause"), ...listAt(error, "errors")].filter(
    (one) => one !== undefined,
  );
  return [...(code === "" ? [] : [code]), ...causes.flatMap((one) => codesOf(one, depth + 1))];
}
