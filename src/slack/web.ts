import { WebClient } from "@slack/web-api";
import { type Live, currentValue } from "../config/changing-file.ts";
import { deadlineMs } from "../deadline.ts";
import type { Log } from "../log/log.ts";
import { slackLogger } from "../log/slack-logger.ts";
import { fitting } from "../messages/card.ts";
import type { WebData } from "./json.ts";
import { type WebAnswer, classify, isShutOut } from "./web-answer.ts";

type WebOutcome = "ok" | "limited" | "refused" | "lost" | "unreachable";

const posts = new Set(["chat.postMessage", "chat.update"]);
const lookUps = new Set([
  "conversations.history",
  "conversations.info",
  "conversations.open",
  "conversations.replies",
]);

/**
 * Whether a call shows that Slack accepts messages. Only a message proves it. A failed look-up
 * counts as silence, because it blocks a post.
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

/** Posts a message without link previews. */
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

/** The date of an answer, and when it was asked for and came by this process's clock (ms). */
export interface DatedAnswer {
  askedAt: number;
  /** In whole seconds, rounded down. NaN when the answer has none that can be read. */
  date: number;
  answeredAt: number;
}

interface WebOptions {
  /** It may be replaced while the process runs. */
  token: Live;
  /** Called after Slack refused the token, to look for a newer one. */
  refreshToken?: (() => void) | undefined;
  /** The base address, `https://slack.com/api/` in production. */
  apiUrl: string;
  log: Log;
  timeoutMs?: number;
  /** The default is the global one. */
  fetch?: typeof fetch;
  onCall?: (method: string, outcome: WebOutcome, ms: number) => void;
  onDate?: (answer: DatedAnswer) => void;
}

/**
 * Options for every WebClient. This returns a new object each time, because clients write into it.
 * There are no retries (by default a message is posted up to 10 times when answers are lost), a
 * timeout (by default none), and never `headers`, because the client would put its token there.
 */
export function clientOptions(options: Pick<WebOptions, "apiUrl" | "log" | "timeoutMs" | "fetch">) {
  return {
    slackApiUrl: options.apiUrl,
    retryConfig: { retries: 0 },
    timeout: options.timeoutMs ?? deadlineMs(8_000),
    rejectRateLimitedCalls: true,
    allowAbsoluteUrls: false,
    logger: slackLogger(options.log),
    ...(options.fetch && { fetch: options.fetch }),
  };
}

export function createWeb(options: WebOptions): Web {
  const dated = { ...options, ...(options.onDate && { fetch: fetchWithDates(options) }) };
  let client = new WebClient(currentValue(options.token), clientOptions(dated));

  /** The client with the current token. A client can't change its token. */
  function current(): WebClient {
    const token = currentValue(options.token);
    if (token !== client.token) client = new WebClient(token, clientOptions(dated));
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
      let token = currentValue(options.token);
      let answer = await send(method, args);
      while (isShutOut(answer)) {
        options.refreshToken?.();
        const newer = currentValue(options.token);
        if (newer === token) break;
        // Slack did nothing, so the same call may be made with another token.
        token = newer;
        answer = await send(method, args);
      }
      options.onCall?.(method, answer.ok ? "ok" : answer.kind, performance.now() - began);
      return answer;
    },
  };
}

/** Slack's client hides the headers of answers. */
function fetchWithDates({ onDate, fetch: send = fetch }: WebOptions): typeof fetch {
  return async (...request) => {
    const askedAt = Date.now();
    const answer = await send(...request);
    const date = Date.parse(answer.headers.get("date") ?? "");
    onDate?.({ askedAt, date, answeredAt: Date.now() });
    return answer;
  };
}

/** Cuts blocks, so that no message is refused for the sum of its blocks, whoever built it. */
function withinLimits(method: string, args: WebData): WebData {
  const blocks = method.startsWith("chat.") ? args["blocks"] : undefined;
  return Array.isArray(blocks) ? { ...args, blocks: fitting(blocks as object[]) } : args;
}
