import { plain } from "../../messages/message.ts";
import { textAt } from "../../slack/json.ts";
import { whyOf } from "../../slack/web-answer.ts";
import type { Web } from "../../slack/web.ts";

/**
 * An upload has three steps: request an address, send the bytes there, complete it
 * (https://docs.slack.dev/messaging/working-with-files#upload).
 */

interface FileSpec {
  web: Web;
  /** Determines which upload addresses are Slack's. */
  apiUrl: string;
  userId: string;
  name: string;
  title: string;
  content: string;
}

const sendWithinMs = 15_000;
const maxBytes = 20_000_000;

/** To a person's direct messages. Why it may not be there; undefined where it is. */
export async function uploadFile(spec: FileSpec): Promise<string | undefined> {
  const { web, apiUrl, userId, name, title, content } = spec;
  const opened = await web.call("conversations.open", { users: userId });
  if (!opened.ok) return whyOf(opened);
  const bytes = Buffer.from(content);
  if (bytes.length === 0 || bytes.length > maxBytes) return `${bytes.length} bytes`;
  const announced = await web.call("files.getUploadURLExternal", {
    filename: plain(name, 100),
    length: bytes.length,
  });
  if (!announced.ok) return whyOf(announced);
  const [url, id] = [textAt(announced.data, "upload_url"), textAt(announced.data, "file_id")];
  if (!isUploadUrl(url, apiUrl)) return "an upload address that isn't Slack's";
  // Sending the same bytes again is idempotent, so one lost answer is retried
  const problem = (await send(url, bytes)) && (await send(url, bytes));
  if (problem) return problem;
  const completed = await web.call("files.completeUploadExternal", {
    files: [{ id, title: plain(title, 200) }],
    channel_id: textAt(opened.data, "channel", "id"),
  });
  return completed.ok ? undefined : whyOf(completed);
}

/** Why it failed, without the secret address; undefined when the bytes arrived. */
async function send(url: string, bytes: Uint8Array): Promise<string | undefined> {
  try {
    const response = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/octet-stream" },
      body: new Uint8Array(bytes),
      redirect: "manual",
      signal: AbortSignal.timeout(sendWithinMs),
    });
    await response.body?.cancel();
    return response.status === 200 ? undefined : `status ${response.status}`;
  } catch (error) {
    return textAt(error, "cause", "code") || textAt(error, "name") || "no answer";
  }
}

/**
 * Slack's hosts over https, or, for other Slack-compatible servers, the host of `SLACK_API_URL`. Anything else could be an
 * internal address.
 */
export function isUploadUrl(url: string, apiUrl: string): boolean {
  const [wanted, api] = [URL.parse(url), URL.parse(apiUrl)];
  if (!wanted || wanted.username !== "" || wanted.password !== "") return false;
  const isSlacks = /(^|\.)slack(-gov)?\.com$/.test(wanted.hostname) && wanted.port === "";
  if (wanted.protocol === "https:" && isSlacks) return true;
  return api !== null && wanted.protocol === api.protocol && wanted.host === api.host;
}
