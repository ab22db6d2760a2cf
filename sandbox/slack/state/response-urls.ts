import { randomBytes } from "node:crypto";
import { complaintsAbout } from "../blocks/check.ts";
import { withIds } from "../blocks/walk.ts";
import { type Fields, isFields, listOf, textOf } from "../fields.ts";
import { picturesOf } from "./files.ts";
import {
  deleteMessage,
  findMessage,
  postEphemeral,
  postMessage,
  removeEphemeral,
} from "./messages.ts";
import type { Ephemeral, ResponseUrl } from "./records.ts";
import type { Workspace } from "./workspace.ts";

const lifeMs = 30 * 60_000;
const maxUses = 5;

export function issueResponseUrl(
  workspace: Workspace,
  spec: Pick<ResponseUrl, "userId" | "channelId" | "threadTs" | "source">,
): string {
  const key = randomBytes(18).toString("base64url");
  workspace.responseUrls.set(key, { ...spec, key, issuedAt: workspace.now(), uses: 0 });
  return `${workspace.url}/actions/${workspace.team.id}/${key}`;
}

export interface ResponseUrlAnswer {
  status: number;
  body: string;
}

/** What a POST to a response URL does and answers. Errors as with incoming webhooks: a status and one word. */
export function respondTo(workspace: Workspace, key: string, body: unknown): ResponseUrlAnswer {
  const url = workspace.responseUrls.get(key);
  if (!url) return { status: 404, body: "no_active_hooks" };
  if (workspace.now() - url.issuedAt > lifeMs) return { status: 404, body: "expired_url" };
  if (url.uses >= maxUses) return { status: 404, body: "used_url" };
  if (!isFields(body)) return { status: 400, body: "invalid_payload" };
  if (workspace.channels.get(url.channelId)?.archived)
    return { status: 410, body: "channel_is_archived" };
  const refusal = body["delete_original"] === true ? undefined : refusalOf(workspace, body);
  if (refusal) return { status: 400, body: refusal };
  url.uses += 1;
  return { status: 200, body: carryOut(workspace, url, body) ? "ok" : "no_original" };
}

/** Why an answer of the app can't be shown, for response URLs and for acks that carry a message. */
export function refusalOf(workspace: Workspace, answer: Fields): string | undefined {
  const blocks = answer["blocks"];
  if (blocks !== undefined) {
    const complaints = complaintsAbout(blocks, "message", "/blocks", picturesOf(workspace));
    if (complaints.length > 0) return "invalid_blocks";
  }
  const hasBody =
    textOf(answer["text"]) !== "" ||
    listOf(blocks).length > 0 ||
    listOf(answer["attachments"]).length > 0;
  if (!hasBody) return "no_text";
  return textOf(answer["text"]).length > 40_000 ? "msg_too_long" : undefined;
}

function carryOut(workspace: Workspace, url: ResponseUrl, answer: Fields): boolean {
  if (answer["delete_original"] === true) return removeOriginal(workspace, url);
  // Only the message a button was in can be replaced: a slash command has no original.
  if (answer["replace_original"] === true && url.source)
    return replaceOriginal(workspace, url, answer);
  postAnswer(workspace, url, answer);
  return true;
}

/** Shows what the app answered: to everybody when `in_channel`, else to the person alone. */
export function postAnswer(
  workspace: Workspace,
  place: { userId: string; channelId: string; threadTs?: string },
  answer: Fields,
): void {
  const threadTs =
    textOf(answer["thread_ts"]) ||
    (answer["response_type"] === "in_channel" ? "" : (place.threadTs ?? ""));
  const draft = {
    channelId: place.channelId,
    userId: workspace.app.botUserId,
    botId: workspace.app.botId,
    text: textOf(answer["text"]),
    blocks: listOf(answer["blocks"]),
    attachments: listOf(answer["attachments"]),
    ...(isFields(answer["metadata"]) ? { metadata: answer["metadata"] } : {}),
    ...(threadTs ? { threadTs } : {}),
  };
  if (answer["response_type"] === "in_channel") postMessage(workspace, draft);
  else postEphemeral(workspace, place.userId, draft);
}

function sourceEphemeral(workspace: Workspace, url: ResponseUrl): Ephemeral | undefined {
  return workspace.ephemerals.find(
    ({ ts, toUserId }) => ts === url.source?.ts && toUserId === url.userId,
  );
}

function removeOriginal(workspace: Workspace, url: ResponseUrl): boolean {
  if (!url.source) return false;
  if (url.source.ephemeral) {
    const ephemeral = sourceEphemeral(workspace, url);
    if (ephemeral) removeEphemeral(workspace, ephemeral);
    return ephemeral !== undefined;
  }
  const message = findMessage(workspace, url.channelId, url.source.ts);
  if (message) deleteMessage(workspace, message);
  return message !== undefined;
}

function replaceOriginal(workspace: Workspace, url: ResponseUrl, answer: Fields): boolean {
  const original = url.source?.ephemeral
    ? sourceEphemeral(workspace, url)
    : findMessage(workspace, url.channelId, url.source?.ts ?? "");
  if (!original) return false;
  original.text = textOf(answer["text"]);
  original.blocks = withIds(listOf(answer["blocks"]));
  original.attachments = listOf(answer["attachments"]);
  if (!url.source?.ephemeral) original.edited = { userId: original.userId, ts: workspace.newTs() };
  if (isFields(answer["metadata"])) original.metadata = answer["metadata"];
  workspace.changed();
  return true;
}
