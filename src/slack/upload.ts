import { setTimeout as after } from "node:timers/promises";
import { plain } from "../messages/text.ts";
import { textAt } from "./payload.ts";
import type { Web, WebAnswer } from "./web.ts";

/**
 * Files reach Slack in three steps: an address is asked for, the bytes are sent there, the upload is completed
 * (https://docs.slack.dev/messaging/working-with-files#upload). A picture is completed privately and then shown by an
 * image block of a message, because only then is there a message that can be found and edited again.
 */

/** Where something didn't go, or that it may have gone: `unsure` must not be tried in another way. */
export type UploadFailure =
  | { is: "failed"; step: "open" | "announce" | "send" | "complete" | "post"; why: string }
  | { is: "unsure"; why: string };

export type ImagePosted =
  | { is: "posted"; channelId: string; ts: string; fileId: string }
  | UploadFailure;

export type FilePosted = { is: "posted"; channelId: string; fileId: string } | UploadFailure;

interface Sender {
  web: Web;
  /** SLACK_API_URL: says which upload addresses are Slack's. */
  apiUrl: string;
}

export interface ImageSpec extends Sender {
  channelId: string;
  threadTs?: string | undefined;
  png: Uint8Array;
  /** With its ending: `web-1.png`. */
  name: string;
  title: string;
  altText: string;
  /** What a notification reads. */
  text: string;
  /** Shown above the picture. */
  blocks?: readonly object[];
  /** How long Slack may take to process the picture; default 10 s. */
  readyWithinMs?: number;
}

export interface FileSpec extends Sender {
  /** A channel or thread, or a person: then it goes into their direct messages. */
  to: { channelId: string; threadTs?: string | undefined } | { userId: string };
  name: string;
  title: string;
  content: string | Uint8Array;
  comment?: string;
}

const sendWithinMs = 15_000;
const mostBytes = 20_000_000;

/** Hands a picture to Slack where nobody sees it yet: an image block of a message shows it by its id. */
export async function uploadUnseen(
  spec: Pick<ImageSpec, "web" | "apiUrl" | "png" | "name" | "title"> & { altText?: string },
): Promise<Stored> {
  const file = await store(spec, spec.png, plain(spec.altText ?? "", 1000));
  if (file.is !== "stored") return file;
  const completed = await complete(spec, file.id, {});
  return completed.ok || completed.kind === "lost"
    ? file
    : { is: "failed", step: "complete", why: whyOf(completed) };
}

export async function uploadImage(spec: ImageSpec): Promise<ImagePosted> {
  const { web } = spec;
  const file = await uploadUnseen(spec);
  if (file.is !== "stored") return file;
  const posted = await postWhenReady(spec, file.id);
  if (posted.ok) {
    const channelId = textAt(posted.data, "channel") || spec.channelId;
    return { is: "posted", channelId, ts: textAt(posted.data, "ts"), fileId: file.id };
  }
  if (posted.kind === "lost") return { is: "unsure", why: whyOf(posted) };
  // Nobody sees it: what is left behind privately goes
  await web.call("files.delete", { file: file.id });
  return { is: "failed", step: "post", why: whyOf(posted) };
}

export async function uploadFile(spec: FileSpec): Promise<FilePosted> {
  let place: { channelId: string; threadTs?: string | undefined };
  if ("userId" in spec.to) {
    const opened = await spec.web.call("conversations.open", { users: spec.to.userId });
    if (!opened.ok) return { is: "failed", step: "open", why: whyOf(opened) };
    place = { channelId: textAt(opened.data, "channel", "id") };
  } else {
    place = spec.to;
  }
  const bytes = typeof spec.content === "string" ? Buffer.from(spec.content) : spec.content;
  const file = await store(spec, bytes, "");
  if (file.is !== "stored") return file;
  const completed = await complete(spec, file.id, {
    channel_id: place.channelId,
    ...(place.threadTs === undefined ? {} : { thread_ts: place.threadTs }),
    ...(spec.comment === undefined ? {} : { initial_comment: spec.comment }),
  });
  if (completed.ok) return { is: "posted", channelId: place.channelId, fileId: file.id };
  if (completed.kind === "lost") return { is: "unsure", why: whyOf(completed) };
  return { is: "failed", step: "complete", why: whyOf(completed) };
}

type Stored = { is: "stored"; id: string } | UploadFailure;

/** Asks for an address and sends the bytes there. Nobody sees anything of it yet. */
async function store(
  { web, apiUrl, name }: Sender & { name: string },
  bytes: Uint8Array,
  altText: string,
): Promise<Stored> {
  if (bytes.length === 0 || bytes.length > mostBytes)
    return { is: "failed", step: "announce", why: `${bytes.length} bytes` };
  const announced = await web.call("files.getUploadURLExternal", {
    filename: plain(name, 100),
    length: bytes.length,
    ...(altText === "" ? {} : { alt_txt: altText }),
  });
  if (!announced.ok) return { is: "failed", step: "announce", why: whyOf(announced) };
  const [url, id] = [textAt(announced.data, "upload_url"), textAt(announced.data, "file_id")];
  if (!isUploadUrl(url, apiUrl))
    return { is: "failed", step: "announce", why: "an upload address that isn't Slack's" };
  // Sending the same bytes again does no harm, so one lost answer is no reason to give up
  const problem = (await send(url, bytes)) && (await send(url, bytes));
  return problem ? { is: "failed", step: "send", why: problem } : { is: "stored", id };
}

/** Undefined when they arrived, else why not. The address is a secret and never part of it. */
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

/** Slack processes a file after its upload; a message that shows it too early is refused. */
async function postWhenReady(spec: ImageSpec, fileId: string): Promise<WebAnswer> {
  const image = {
    type: "image",
    slack_file: { id: fileId },
    alt_text: plain(spec.altText, 2000) || "picture",
    title: { type: "plain_text", text: plain(spec.title, 2000) || "picture", emoji: false },
  };
  const deadline = performance.now() + (spec.readyWithinMs ?? 10_000);
  for (let waitMs = 150; ; waitMs = Math.min(2_000, waitMs * 2)) {
    const answer = await spec.web.call("chat.postMessage", {
      channel: spec.channelId,
      ...(spec.threadTs === undefined ? {} : { thread_ts: spec.threadTs }),
      text: spec.text,
      blocks: [...(spec.blocks ?? []), image],
      unfurl_links: false,
      unfurl_media: false,
    });
    if (answer.ok || !mayBeUnready(answer) || performance.now() + waitMs > deadline) return answer;
    await after(waitMs);
  }
}

/** Slack says `invalid_blocks`; where it says more, that is about the file. */
function mayBeUnready(answer: WebAnswer): boolean {
  if (answer.ok || answer.kind !== "refused" || answer.error !== "invalid_blocks") return false;
  return answer.detail.length === 0 || answer.detail.some((one) => /file/i.test(one));
}

/** One of our words for each kind of answer: `not_in_channel`, `limited`, `unreachable`. */
function whyOf(answer: WebAnswer): string {
  if (answer.ok) return "";
  return answer.kind === "refused" ? answer.error : answer.kind;
}

/**
 * Whether bytes may be sent there: Slack's own hosts over https, or, for other Slack-compatible servers, the very host of
 * `SLACK_API_URL`. Anything else could be an address inside our own network.
 */
export function isUploadUrl(url: string, apiUrl: string): boolean {
  const [wanted, api] = [URL.parse(url), URL.parse(apiUrl)];
  if (!wanted || wanted.username !== "" || wanted.password !== "") return false;
  const isSlacks = /(^|\.)slack(-gov)?\.com$/.test(wanted.hostname) && wanted.port === "";
  if (wanted.protocol === "https:" && isSlacks) return true;
  return api !== null && wanted.protocol === api.protocol && wanted.host === api.host;
}
