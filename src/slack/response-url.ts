import { request } from "undici";
import { deadlineMs } from "../deadline.ts";
import { type Message } from "../messages/blocks.ts";
import { fitting } from "../messages/card.ts";
import { parseJson } from "../text/parse-json.ts";
import { at } from "./json.ts";

/**
 * Whether an address is one of Slack's hooks or, for other Slack-compatible servers, on the host of
 * `SLACK_API_URL` (or `hooks.` before it). Anything else could be an internal address.
 */
export function isResponseUrl(url: string, apiUrl = "https://slack.com/api/"): boolean {
  const [wanted, api] = [URL.parse(url), URL.parse(apiUrl)];
  if (!wanted || !api || wanted.username !== "" || wanted.password !== "") return false;
  if (wanted.protocol === "https:" && wanted.host === "hooks.slack.com") return true;
  if (wanted.protocol !== api.protocol) return false;
  return wanted.host === api.host || wanted.host === `hooks.${api.host}`;
}

/**
 * An ephemeral message
 * (https://docs.slack.dev/interactivity/handling-user-interaction/#message_responses).
 */
export interface EphemeralPost {
  show: Message;
  replace: boolean;
  threadTs?: string | undefined;
}

/**
 * `refused`: Slack did nothing (expired, used up, a malformed message). `lost`: it may have
 * happened.
 */
type ResponseOutcome = "done" | "refused" | "lost";

/**
 * Sends one POST to a response URL of Slack's: 5 s, no redirects, no retries. Slack accepts five
 * within half an hour.
 */
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
      signal: AbortSignal.timeout(options.timeoutMs ?? deadlineMs(5_000)),
    });
    const answerText = (await body.text()).trim();
    if (statusCode >= 500) return "lost";
    // A 200 may still be a refusal: `no_original`, or {"ok":false,…}.
    const isYes =
      answerText === "" || answerText === "ok" || at(parseJson(answerText), "ok") === true;
    return statusCode === 200 && isYes ? "done" : "refused";
  } catch {
    return "lost"; // The error may contain the address, so it is dropped.
  }
}
