import { withIds } from "../blocks/walk.ts";
import { copyOf, type Fields } from "../fields.ts";
import { fileObject } from "./files.ts";
import { notify } from "./notifications.ts";
import type { Ephemeral, Message } from "./records.ts";
import type { Workspace } from "./workspace.ts";

export interface Draft {
  channelId: string;
  userId: string;
  botId?: string;
  text: string;
  blocks?: readonly Fields[];
  attachments?: readonly Fields[];
  metadata?: Fields;
  threadTs?: string;
  fileIds?: readonly string[];
  subtype?: Message["subtype"];
}

/**
 * Posts. A reply to a message that is gone silently becomes a message of the channel, and the answer lacks
 * `thread_ts`: that is what Slack does (https://github.com/slack-go/slack/issues/1571).
 */
export function postMessage(workspace: Workspace, draft: Draft): Message {
  const message = drafted(workspace, draft);
  messagesIn(workspace, draft.channelId).push(message);
  notify(workspace, message);
  workspace.changed();
  return message;
}

/**
 * Shows a message to one person. In a thread that nobody has replied to yet Slack takes it and shows it to nobody:
 * https://docs.slack.dev/reference/methods/chat.postEphemeral
 */
export function postEphemeral(workspace: Workspace, toUserId: string, draft: Draft): Ephemeral {
  const ephemeral = { ...drafted(workspace, draft), toUserId };
  const isAlive = messagesIn(workspace, draft.channelId).some(
    ({ threadTs }) => threadTs === ephemeral.threadTs,
  );
  if (isAlive || ephemeral.threadTs === undefined) workspace.ephemerals.push(ephemeral);
  workspace.changed();
  return ephemeral;
}

function drafted(workspace: Workspace, draft: Draft): Message {
  const parent =
    draft.threadTs === undefined
      ? undefined
      : findMessage(workspace, draft.channelId, draft.threadTs);
  const root = parent === undefined ? undefined : (parent.threadTs ?? parent.ts);
  return {
    ts: workspace.newTs(),
    channelId: draft.channelId,
    ...(root === undefined ? {} : { threadTs: root }),
    userId: draft.userId,
    ...(draft.botId ? { botId: draft.botId } : {}),
    text: draft.text,
    blocks: withIds(draft.blocks ?? []),
    attachments: copyOf([...(draft.attachments ?? [])]),
    ...(draft.metadata ? { metadata: copyOf(draft.metadata) } : {}),
    tombstone: false,
    fileIds: [...(draft.fileIds ?? [])],
    ...(draft.subtype ? { subtype: draft.subtype } : {}),
  };
}

export function messagesIn(workspace: Workspace, channelId: string): Message[] {
  const known = workspace.messages.get(channelId);
  if (known) return known;
  const fresh: Message[] = [];
  workspace.messages.set(channelId, fresh);
  return fresh;
}

export function findMessage(
  workspace: Workspace,
  channelId: string,
  ts: string,
): Message | undefined {
  return messagesIn(workspace, channelId).findLast((message) => message.ts === ts);
}

export function repliesOf(workspace: Workspace, message: Message): Message[] {
  return messagesIn(workspace, message.channelId).filter((reply) => reply.threadTs === message.ts);
}

/** Removes a message; one with replies stays as a tombstone. */
export function deleteMessage(workspace: Workspace, message: Message): void {
  if (repliesOf(workspace, message).length > 0) {
    message.tombstone = true;
    message.text = "This message was deleted.";
    message.blocks = [];
    message.attachments = [];
    message.fileIds = [];
    delete message.metadata;
  } else {
    const list = messagesIn(workspace, message.channelId);
    list.splice(list.indexOf(message), 1);
  }
  workspace.changed();
}

export function removeEphemeral(workspace: Workspace, ephemeral: Ephemeral): void {
  const index = workspace.ephemerals.indexOf(ephemeral);
  if (index >= 0) workspace.ephemerals.splice(index, 1);
  workspace.changed();
}

/** A message as the Web API and payloads show it. Metadata only on request. */
export function messageObject(
  workspace: Workspace,
  message: Message,
  withMetadata = false,
): Fields {
  const replies = message.threadTs === undefined ? repliesOf(workspace, message) : [];
  const { app } = workspace;
  const bot =
    message.botId === undefined
      ? {}
      : { bot_id: message.botId, app_id: message.botId === app.botId ? app.appId : "A0ANOTHER" };
  return copyOf({
    type: "message",
    ...(message.tombstone ? { subtype: "tombstone" } : {}),
    ...(message.subtype && !message.tombstone ? { subtype: message.subtype } : {}),
    user: message.tombstone ? "USLACKBOT" : message.userId,
    ts: message.ts,
    ...bot,
    text: message.text,
    team: workspace.people.get(message.userId)?.enterprise
      ? workspace.people.get(message.userId)?.teamId
      : workspace.team.id,
    ...(message.blocks.length > 0 ? { blocks: message.blocks } : {}),
    ...(message.attachments.length > 0 ? { attachments: message.attachments } : {}),
    ...(message.edited ? { edited: { user: message.edited.userId, ts: message.edited.ts } } : {}),
    ...(message.threadTs === undefined ? {} : { thread_ts: message.threadTs }),
    ...(replies.length > 0
      ? {
          thread_ts: message.ts,
          reply_count: replies.length,
          reply_users_count: new Set(replies.map((reply) => reply.userId)).size,
          latest_reply: replies.at(-1)?.ts,
          reply_users: [...new Set(replies.map((reply) => reply.userId))],
        }
      : {}),
    ...(message.fileIds.length > 0
      ? {
          files: message.fileIds.flatMap((id) =>
            workspace.files.has(id) ? [fileObject(workspace, id)] : [],
          ),
        }
      : {}),
    ...(withMetadata && message.metadata ? { metadata: message.metadata } : {}),
  });
}

/** Every message there is, metadata included: for checkers, not for eyes. */
export function everyMessage(workspace: Workspace) {
  return [...workspace.channels.keys()].flatMap((channelId) =>
    messagesIn(workspace, channelId).map((message) => structuredClone(message)),
  );
}
