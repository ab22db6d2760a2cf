import { request } from "undici";
import {
  WebAPIHTTPError,
  WebAPIPlatformError,
  WebAPIRateLimitedError,
  WebClient,
} from "@slack/web-api";
import { certificateFlaw } from "../config/authorities.ts";
import { type Live, valueOf } from "../config/changing-file.ts";
import { messageOf } from "../errors.ts";
import { type Log, slackLogger } from "../log/log.ts";
import { fitting, type Message, sharedOutside, unseenGroup } from "../messages/message.ts";
import { parseJson } from "../text/parse-json.ts";

export { parseJson };

/** Untrusted JSON. */
export type WebData = Readonly<Record<string, unknown>>;

/** The value as an object; empty when it is none. */
export function payloadOf(value: unknown): WebData {
  return typeof value === "object" && value !== null ? (value as WebData) : {};
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

/** The outcome of one call. Callers decide by `kind`, never by text. */
export type WebAnswer =
  | { ok: true; data: WebData }
  /** Slack did nothing and says when to retry. */
  | { ok: false; kind: "limited"; retryAfterMs: number }
  /** Slack did nothing: `error` is its code, `detail` its longer explanation, if any, `needed` the scope that is missing. */
  | { ok: false; kind: "refused"; error: string; detail: readonly string[]; needed?: string }
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
  /** Default: the global one. */
  fetch?: typeof fetch;
  onCall?: (method: string, outcome: WebOutcome, ms: number) => void;
}

/** When Slack limits without Retry-After. */
const unknownLimitMs = 30_000;
/** A workspace that sends too many messages is let go on at any moment: Slack doesn't say when (s). */
const messageLimitS = 5;

/** Slack did nothing, and would a little later. */
const limitErrors = new Set(["ratelimited", "rate_limited"]);

/** Slack's own failures: part of the call may have succeeded (https://docs.slack.dev/reference/methods/chat.postMessage#errors). */
const unclearErrors = new Set([
  "internal_error",
  "fatal_error",
  "service_unavailable",
  "request_timeout",
]);

/** No byte of the request left; nor did one where the certificate was refused. */
const neverLeft = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "ENETUNREACH",
  "EHOSTUNREACH",
  "UND_ERR_CONNECT_TIMEOUT",
]);

/**
 * Options for every WebClient, a new object each time, because clients write into it. No retries (by default a message
 * is posted up to 10 times when answers are lost), a timeout (by default none), and never `headers`: the client would put
 * its token there.
 */
export function clientOptions(options: Pick<WebOptions, "apiUrl" | "log" | "timeoutMs" | "fetch">) {
  return {
    slackApiUrl: options.apiUrl,
    retryConfig: { retries: 0 },
    timeout: options.timeoutMs ?? 8000,
    rejectRateLimitedCalls: true,
    allowAbsoluteUrls: false,
    logger: slackLogger(options.log),
    ...(options.fetch && { fetch: options.fetch }),
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
    async call(method, given = {}) {
      const began = performance.now();
      const args = withinLimits(method, given);
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

/** A message is never refused for the sum of its blocks, whoever made it. */
function withinLimits(method: string, args: WebData): WebData {
  const blocks = method.startsWith("chat.") ? args["blocks"] : undefined;
  return Array.isArray(blocks) ? { ...args, blocks: fitting(blocks as object[]) } : args;
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
    if (limitErrors.has(name)) return limited(retryAfter);
    if (name === "message_limit_exceeded") return limited(retryAfter ?? messageLimitS);
    // A 200 whose body isn't JSON (a proxy's page), which the client passes on as an error code.
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
    (one) => neverLeft.has(one) || certificateFlaw(one) !== undefined,
  );
  return { ok: false, kind: unsent ? "unreachable" : "lost", reason: messageOf(error) };
}

function limited(seconds: unknown): WebAnswer {
  const known = typeof seconds === "number" && seconds >= 0;
  return { ok: false, kind: "limited", retryAfterMs: known ? seconds * 1000 : unknownLimitMs };
}

/** The codes of an error and its causes; several when both address families were tried. */
function codesOf(error: unknown, depth = 0): string[] {
  if (error === undefined || depth > 5) return [];
  const code = textAt(error, "code");
  const causes = [at(error, "cause"), ...listAt(error, "errors")];
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

/** How long what Slack says of a channel counts (ms). */
const goodForMs = 300_000;
/** Who has just looked posts by what they saw (ms). */
const graceMs = 60_000;
const maxKept = 10_000;

type No = Extract<WebAnswer, { ok: false }>;

/** Whether only the scope for group direct messages is missing. Slack names those that the kind of the conversation needs. */
const isOfGroup = ({ error, needed = "" }: Extract<WebAnswer, { kind: "refused" }>) =>
  error === "missing_scope" && needed.split(",").every((scope) => scope.trim() === "mpim:read");

export type SharedChannels = ReturnType<typeof createSharedChannels>;

/**
 * A channel that is shared with another company is closed to Gatehouse, like one that it isn't in, unless gatehouse.yml
 * names it under `sharedChannels`: who asked there is answered alone.
 */
export function createSharedChannels(options: {
  web: Web;
  /** Read at each use: the policy may change. */
  allowed(): readonly string[];
  log: Log;
}) {
  const { web, allowed, log } = options;
  const known = new Map<string, { since: number; no: Promise<No | undefined> }>();

  async function look(channelId: string): Promise<No | undefined> {
    const answer = await web.call("conversations.info", { channel: channelId });
    if (answer.ok) {
      const isShared = at(answer.data, "channel", "is_ext_shared") === true;
      return isShared
        ? { ok: false, kind: "refused", error: sharedOutside, detail: [] }
        : undefined;
    }
    // Nothing was posted, whatever became of the question
    if (answer.kind === "lost") return { ok: false, kind: "unreachable", reason: answer.reason };
    if (answer.kind !== "refused") return answer;
    if (isShutOut(answer)) return { ok: false, kind: "unreachable", reason: answer.error };
    // A group direct message lasts as long as its people: nobody would look who is in it
    if (isOfGroup(answer))
      return { ok: false, kind: "refused", error: unseenGroup, detail: answer.detail };
    // A channel that the bot doesn't see refuses the post too; a missing scope is the doctor's to name
    log.warn("slack.channel-unseen", { channel: channelId, error: answer.error });
    return undefined;
  }

  async function refusal(channelId: string, withinMs = goodForMs): Promise<No | undefined> {
    if (!/^[CG]/.test(channelId) || allowed().includes(channelId)) return undefined;
    const last = known.get(channelId);
    if (last && performance.now() - last.since < withinMs) return last.no;
    if (known.size >= maxKept) known.clear();
    const asked = { since: performance.now(), no: look(channelId) };
    known.set(channelId, asked);
    const no = await asked.no;
    // Only what Slack said is remembered
    if (no && no.kind !== "refused" && known.get(channelId) === asked) known.delete(channelId);
    return no;
  }

  return {
    /** Why nothing may be posted in a channel now; undefined where it may. A call of Slack at most every five minutes. */
    refusal: (channelId: string) => refusal(channelId),
    /** The same Slack, which takes no post there. */
    web: {
      async call(method: string, args?: WebData) {
        // In a channel everyone reads a post. An edit says nothing where nothing was posted
        const channelId = method === "chat.postMessage" && textAt(args, "channel");
        const no = channelId && (await refusal(channelId, goodForMs + graceMs));
        return no || web.call(method, args);
      },
    },
  };
}

/**
 * Slack's hooks, or, for other Slack-compatible servers, the host of `SLACK_API_URL` (or `hooks.` before it). Anything
 * else could be an internal address.
 */
export function isResponseUrl(url: string, apiUrl = "https://slack.com/api/"): boolean {
  const [wanted, api] = [URL.parse(url), URL.parse(apiUrl)];
  if (!wanted || !api || wanted.username !== "" || wanted.password !== "") return false;
  if (wanted.protocol === "https:" && wanted.host === "hooks.slack.com") return true;
  if (wanted.protocol !== api.protocol) return false;
  return wanted.host === api.host || wanted.host === `hooks.${api.host}`;
}

/** An ephemeral message (https://docs.slack.dev/interactivity/handling-user-interaction/#message_responses). */
export interface EphemeralPost {
  show: Message;
  replace: boolean;
  threadTs?: string | undefined;
}

/** `refused`: Slack did nothing (expired, used up, a malformed message). `lost`: it may have happened. */
type ResponseOutcome = "done" | "refused" | "lost";

/** One POST to a response URL of Slack's: 5 s, no redirects, no retries. Slack accepts five within half an hour. */
export async function postResponse(
  url: string,
  { show: { text, blocks }, replace, threadTs }: EphemeralPost,
  options: { apiUrl: string; timeoutMs?: number },
): Promise<ResponseOutcome> {
  if (!isResponseUrl(url, options.apiUrl)) return "refused";
  try {
    const { statusCode, body } = await request(url, {
      method: "POST",
      headers: { "content-type": "application/json; charset=utf-8" },
      body: JSON.stringify({
        response_type: "ephemeral",
        replace_original: replace,
        text,
        blocks: fitting(blocks),
        unfurl_links: false,
        unfurl_media: false,
        thread_ts: threadTs,
      }),
      signal: AbortSignal.timeout(options.timeoutMs ?? 5_000),
    });
    const said = (await body.text()).trim();
    if (statusCode >= 500) return "lost";
    // A 200 may still say no: `no_original`, or {"ok":false,…}.
    const isYes = said === "" || said === "ok" || at(parseJson(said), "ok") === true;
    return statusCode === 200 && isYes ? "done" : "refused";
  } catch {
    return "lost"; // the error may contain the address, so it is dropped
  }
}
