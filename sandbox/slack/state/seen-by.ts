import { isFields, textOf, wordsOf } from "../fields.ts";
import type {
  Seen,
  SeenBlock,
  SeenChannel,
  SeenFile,
  SeenMessage,
  SeenPerson,
  SeenView,
} from "../seen.ts";
import { isReadOnly, maySee } from "./channels.ts";
import { seenFile } from "./files.ts";
import { messagesIn } from "./messages.ts";
import { personOf } from "./people.ts";
import type { Channel, Ephemeral, Message, Person, View } from "./records.ts";
import type { Workspace } from "./workspace.ts";

/** Everything this person (id or handle) sees right now. Read it, don't change it: blocks are shared, not copied. */
export function seenBy(workspace: Workspace, who: string): Seen {
  const me = personOf(workspace, who);
  const channels = [...workspace.channels.values()]
    .filter((channel) => maySee(channel, me))
    .map((channel) => seenChannel(workspace, channel, me));
  const modals = (workspace.modals.get(me.id) ?? []).map(seenView);
  const home = workspace.homes.get(me.id);
  return {
    version: workspace.changes.version,
    at: workspace.now(),
    me: seenPerson(me),
    team: { ...workspace.team },
    bot: { userId: workspace.app.botUserId, name: workspace.app.botName },
    people: [...workspace.people.values()].map(seenPerson),
    groups: [...workspace.groups.values()]
      .filter((group) => group.active)
      .map(({ id, handle, name, userIds }) => ({ id, handle, name, userIds: [...userIds] })),
    channels,
    modals,
    ...(home ? { home: seenView(home) } : {}),
    toasts: workspace.toasts.get(me.id) ?? [],
    inbox: workspace.notifications.get(me.id) ?? [],
    files: filesIn(workspace, [
      ...channels.flatMap(({ messages }) => messages),
      ...modals,
      ...(home ? [seenView(home)] : []),
    ]),
    commands: workspace.app.commands.map(({ name, description, usageHint }) => ({
      name,
      description,
      usageHint,
    })),
    shortcuts: workspace.app.shortcuts.map((shortcut) => ({ ...shortcut })),
  };
}

function seenPerson({ id, name, realName, role, active, teamId }: Person): SeenPerson {
  return { id, name, realName, role, active, teamId };
}

function seenChannel(workspace: Workspace, channel: Channel, me: Person): SeenChannel {
  const posted = messagesIn(workspace, channel.id);
  const replies = new Map<string, number>();
  for (const { threadTs } of posted)
    if (threadTs !== undefined) replies.set(threadTs, (replies.get(threadTs) ?? 0) + 1);
  const mine = workspace.ephemerals.filter(
    ({ channelId, toUserId }) => channelId === channel.id && toUserId === me.id,
  );
  const messages = [...posted, ...mine].map((message) =>
    seenMessage(workspace, message, me, replies.get(message.ts) ?? 0),
  );
  if (mine.length > 0) messages.sort((one, other) => (one.ts < other.ts ? -1 : 1));
  const other = [...channel.memberIds].find((id) => id !== me.id) ?? me.id;
  return {
    id: channel.id,
    name: channel.kind === "direct" ? (workspace.people.get(other)?.name ?? other) : channel.name,
    kind: channel.kind,
    member: channel.memberIds.has(me.id),
    archived: channel.archived,
    readOnly: isReadOnly(workspace, channel),
    botIsMember: channel.memberIds.has(workspace.app.botUserId),
    memberIds: [...channel.memberIds],
    messages,
  };
}

export function messageStateKey(userId: string, message: Message): string {
  return `${userId} ${message.channelId} ${message.ts}`;
}

function seenMessage(
  workspace: Workspace,
  message: Message | Ephemeral,
  me: Person,
  replyCount: number,
): SeenMessage {
  const author = workspace.people.get(message.userId);
  return {
    ts: message.ts,
    channelId: message.channelId,
    ...(message.threadTs === undefined ? {} : { threadTs: message.threadTs }),
    author: {
      id: message.userId,
      name: author?.name ?? message.userId,
      isBot: message.botId !== undefined,
    },
    text: message.text,
    blocks: message.blocks,
    ephemeral: "toUserId" in message,
    edited: message.edited !== undefined,
    deleted: message.tombstone,
    files: message.fileIds.flatMap((id) => {
      const file = workspace.files.get(id);
      return file ? [seenFile(workspace, file)] : [];
    }),
    replyCount,
    state: workspace.messageStates.get(messageStateKey(me.id, message)) ?? {},
  };
}

export function seenView(view: View): SeenView {
  return {
    id: view.id,
    type: view.type,
    hash: view.hash,
    callbackId: view.callbackId,
    title: wordsOf(view.title),
    submit: wordsOf(view.submit),
    close: wordsOf(view.close) || (view.type === "modal" ? "Close" : ""),
    blocks: view.blocks,
    state: view.state,
    errors: view.errors,
  };
}

const mentioned = new WeakMap<readonly SeenBlock[], string[]>();

function filesIn(
  workspace: Workspace,
  places: readonly { blocks: SeenBlock[]; files?: SeenFile[] }[],
): Record<string, SeenFile> {
  const files: Record<string, SeenFile> = {};
  for (const { blocks, files: attached = [] } of places) {
    const known = mentioned.get(blocks);
    const ids = known ?? fileIdsIn(blocks);
    if (!known) mentioned.set(blocks, ids);
    for (const id of [...ids, ...attached.map((file) => file.id)]) {
      const file = workspace.files.get(id);
      if (file) files[id] = seenFile(workspace, file);
    }
  }
  return files;
}

/** Ids of the files that image blocks show. */
function fileIdsIn(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(fileIdsIn);
  if (!isFields(value)) return [];
  const file = value["slack_file"];
  const id = isFields(file)
    ? textOf(file["id"]) || (/-(F[A-Z0-9]+)\//.exec(textOf(file["url"]))?.[1] ?? "")
    : "";
  return [
    ...(id === "" ? [] : [id]),
    ...Object.values(value).flatMap((inner) => (typeof inner === "object" ? fileIdsIn(inner) : [])),
  ];
}
