import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";
import { request } from "undici";
import type { Message } from "../../messages/message.ts";
import { at, parseJson } from "../web.ts";

/**
 * Anyone with a response URL can speak as the bot for half an hour. It is stored only sealed (AES-256-GCM), with a key
 * derived from the bot token, so that only Gatehouse's processes can open it.
 */

const version = "1";

const keys = new Map<string, Buffer>();

/** Derived once: it takes longer than sealing. */
function keyOf(secret: string): Buffer {
  const key =
    keys.get(secret) ?? Buffer.from(hkdfSync("sha256", secret, "", "gatehouse response url", 32));
  keys.set(secret, key);
  return key;
}

/** `secret` is the bot token. */
export function sealResponseUrl(url: string, secret: string): string {
  const iv = randomBytes(12);
  const cipher = createCipheriv("aes-256-gcm", keyOf(secret), iv);
  const sealed = Buffer.concat([cipher.update(url, "utf8"), cipher.final()]);
  return `${version}.${Buffer.concat([iv, cipher.getAuthTag(), sealed]).toString("base64url")}`;
}

/** Undefined for what wasn't sealed with this secret, and for addresses that aren't Slack's (`isResponseUrl`). */
export function openResponseUrl(
  sealed: string,
  secret: string,
  apiUrl?: string,
): string | undefined {
  const [stamp, body, ...rest] = sealed.split(".");
  if (stamp !== version || body === undefined || rest.length > 0) return undefined;
  const bytes = Buffer.from(body, "base64url");
  if (bytes.length <= 28) return undefined;
  try {
    const decipher = createDecipheriv("aes-256-gcm", keyOf(secret), bytes.subarray(0, 12), {
      authTagLength: 16,
    });
    decipher.setAuthTag(bytes.subarray(12, 28));
    const url = Buffer.concat([decipher.update(bytes.subarray(28)), decipher.final()]).toString(
      "utf8",
    );
    return isResponseUrl(url, apiUrl) ? url : undefined;
  } catch {
    return undefined; // altered, or sealed with another token
  }
}

/**
 * Slack's hooks, or, for other Slack-compatible servers, the host of `SLACK_API_URL` (or `hooks.` before it). Anything
 * else could be an internal address.
 */
export function isResponseUrl(url: string, apiUrl = "https://slack.com/api/"): boolean {
  if (!URL.canParse(url) || !URL.canParse(apiUrl)) return false;
  const [wanted, api] = [new URL(url), new URL(apiUrl)];
  if (wanted.username !== "" || wanted.password !== "") return false;
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
        blocks,
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
