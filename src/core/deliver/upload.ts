import { plain } from "../../messages/markdown.ts";
import { textAt } from "../../slack/json.ts";
import { whyOf } from "../../slack/web-answer.ts";
import type { Web } from "../../slack/web.ts";

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

/**
 * Uploads a file to a person's direct messages. Resolves with the reason why it may not be there,
 * or with undefined when it is there. An upload has three steps: request an address, send the bytes
 * there, and complete it (https://docs.slack.dev/messaging/working-with-files#upload).
 */
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
  // To send the same bytes again is idempotent, so a failure is retried once.
  const problem = (await sendBytes(url, bytes)) && (await sendBytes(url, bytes));
  if (problem) return problem;
  const completed = await web.call("files.completeUploadExternal", {
    files: [{ id, title: plain(title, 200) }],
    channel_id: textAt(opened.data, "channel", "id"),
  });
  return completed.ok ? undefined : whyOf(completed);
}

/**
 * Resolves with the reason of a failure, without the secret address, or with undefined when the
 * bytes arrived.
 */
async function sendBytes(url: string, bytes: Uint8Array): Promise<string | undefined> {
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
 * Whether an address is one of Slack's hosts over https or, for other Slack-compatible servers, the
 * host of `SLACK_API_URL`. Any other address could be an internal one.
 */
export function isUploadUrl(url: string, apiUrl: string): boolean {
  const [wanted, api] = [URL.parse(url), URL.parse(apiUrl)];
  if (!wanted || wanted.username !== "" || wanted.password !== "") return false;
  const isSlacks = /(^|\.)slack(-gov)?\.com$/.test(wanted.hostname) && wanted.port === "";
  if (wanted.protocol === "https:" && isSlacks) return true;
  return api !== null && wanted.protocol === api.protocol && wanted.host === api.host;
}
