import type { Message } from "../messages/message.ts";
import { isResponseUrl } from "./response-url.ts";
import { parseJson, at } from "./payload.ts";

/** What a response URL may be asked to do (https://docs.slack.dev/interactivity/handling-user-interaction/#message_responses). */
export type ResponseDeed =
  | { show: Message; replace: boolean; threadTs?: string | undefined; inChannel?: boolean }
  | { removeOriginal: true };

/** `refused`: Slack did nothing (expired, used up, a malformed message). `lost`: it may have happened. */
export type ResponseOutcome = "done" | "refused" | "lost";

/**
 * One POST to a response URL: 5 s, no redirects, no repeats. Only Slack's own addresses are called.
 * Slack takes five of them within half an hour of the interaction.
 */
export async function postResponse(
  url: string,
  deed: ResponseDeed,
  options: { apiUrl: string; timeoutMs?: number },
): Promise<ResponseOutcome> {
  if (!isResponseUrl(url, options.apiUrl)) return "refused";
  try {
    const response = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json; charset=utf-8" },
      body: JSON.stringify(bodyOf(deed)),
      redirect: "manual",
      signal: AbortSignal.timeout(options.timeoutMs ?? 5_000),
    });
    const said = (await response.text()).trim();
    if (response.status >= 500) return "lost";
    // A 200 may still say no: `no_original`, or {"ok":false,…}.
    const isYes = said === "" || said === "ok" || at(parseJson(said), "ok") === true;
    return response.status === 200 && isYes ? "done" : "refused";
  } catch {
    return "lost"; // the error may name the address, so nothing of it is kept
  }
}

function bodyOf(deed: ResponseDeed): Record<string, unknown> {
  if ("removeOriginal" in deed) return { delete_original: true };
  return {
    response_type: deed.inChannel === true ? "in_channel" : "ephemeral",
    replace_original: deed.replace,
    text: deed.show.text,
    blocks: deed.show.blocks,
    unfurl_links: false,
    unfurl_media: false,
    ...(deed.threadTs === undefined ? {} : { thread_ts: deed.threadTs }),
  };
}
