import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";

/**
 * A response URL lets whoever holds it speak as the bot for half an hour. Redis, jobs and logs hold it sealed only
 * (AES-256-GCM); the key follows from the bot token, so that every process of ours can open it and nobody else.
 */

const version = "1";

function keyOf(secret: string): Buffer {
  return Buffer.from(hkdfSync("sha256", secret, "", "gatehouse response url", 32));
}

/** `secret` is the bot token. The result is URL-safe text that says nothing about the URL but its length. */
export function sealResponseUrl(url: string, secret: string): string {
  const iv = randomBytes(12);
  const cipher = createCipheriv("aes-256-gcm", keyOf(secret), iv);
  const sealed = Buffer.concat([cipher.update(url, "utf8"), cipher.final()]);
  return `${version}.${Buffer.concat([iv, cipher.getAuthTag(), sealed]).toString("base64url")}`;
}

/**
 * Undefined for anything that we didn't seal with this secret, and for addresses that aren't Slack's
 * (`isResponseUrl`).
 */
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
 * Whether we may post to it: Slack's hooks, or, for other Slack-compatible servers, the very host of `SLACK_API_URL`
 * (or `hooks.` before it). Anything else could be an address inside our own network.
 */
export function isResponseUrl(url: string, apiUrl = "https://slack.com/api/"): boolean {
  if (!URL.canParse(url) || !URL.canParse(apiUrl)) return false;
  const [wanted, api] = [new URL(url), new URL(apiUrl)];
  if (wanted.username !== "" || wanted.password !== "") return false;
  if (wanted.protocol === "https:" && wanted.host === "hooks.slack.com") return true;
  if (wanted.protocol !== api.protocol) return false;
  return wanted.host === api.host || wanted.host === `hooks.${api.host}`;
}
