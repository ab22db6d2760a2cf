import { plain } from "../../messages/message.ts";
import { textAt, type Place, type Web, type WebAnswer, whyOf } from "../web.ts";

/**
 * An upload has three steps: request an address, send the bytes there, complete it
 * (https://docs.slack.dev/messaging/working-with-files#upload).
 */

/** Which step failed; or `unsure`: it may have succeeded and must not be tried in another way. */
type UploadFailure =
  | { is: "failed"; step: "open" | "announce" | "send" | "complete"; why: string }
  | { is: "unsure"; why: string };

interface Sender {
  web: Web;
  /** Determines which upload addresses are Slack's. */
  apiUrl: string;
}

interface FileSpec extends Sender {
  /** A person gets it as a direct message. */
  to: Place | { userId: string };
  name: string;
  title: string;
  content: string | Uint8Array;
}

const sendWithinMs = 15_000;
const maxBytes = 20_000_000;

export async function uploadFile(
  spec: FileSpec,
): Promise<UploadFailure | { is: "posted"; channelId: string; fileId: string }> {
  let place: Place;
  if ("userId" in spec.to) {
    const opened = await spec.web.call("conversations.open", { users: spec.to.userId });
    if (!opened.ok) return { is: "failed", step: "open", why: whyOf(opened) };
    place = { channelId: textAt(opened.data, "channel", "id") };
  } else {
    place = spec.to;
  }
  const bytes = typeof spec.content === "string" ? Buffer.from(spec.content) : spec.content;
  const file = await store(spec, bytes);
  if (file.is !== "stored") return file;
  const completed = await complete(spec, file.id, {
    channel_id: place.channelId,
    ...(place.threadTs === undefined ? {} : { thread_ts: place.threadTs }),
  });
  if (completed.ok) return { is: "posted", channelId: place.channelId, fileId: file.id };
  if (completed.kind === "lost") return { is: "unsure", why: whyOf(completed) };
  return { is: "failed", step: "complete", why: whyOf(completed) };
}

type Stored = { is: "stored"; id: string } | UploadFailure;

/** Requests an address and sends the bytes there; invisible so far. */
async function store(
  { web, apiUrl, name }: Sender & { name: string },
  bytes: Uint8Array,
): Promise<Stored> {
  if (bytes.length === 0 || bytes.length > maxBytes)
    return { is: "failed", step: "announce", why: `${bytes.length} bytes` };
  const announced = await web.call("files.getUploadURLExternal", {
    filename: plain(name, 100),
    length: bytes.length,
  });
  if (!announced.ok) return { is: "failed", step: "announce", why: whyOf(announced) };
  const [url, id] = [textAt(announced.data, "upload_url"), textAt(announced.data, "file_id")];
  if (!isUploadUrl(url, apiUrl))
    return { is: "failed", step: "announce", why: "an upload address that isn't Slack's" };
  // Resending the same bytes is idempotent, so one lost answer is retried
  const problem = (await send(url, bytes)) && (await send(url, bytes));
  return problem ? { is: "failed", step: "send", why: problem } : { is: "stored", id };
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

function complete(
  { web, title }: Pick<Sender, "web"> & { title: string },
  id: string,
  where: Record<string, unknown>,
): Promise<WebAnswer> {
  const files = [{ id, title: plain(title, 200) }];
  return web.call("files.completeUploadExternal", { files, ...where });
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
