import type { Fields } from "../fields.ts";
import type { SeenBlock, SeenPerson, SeenState } from "../seen.ts";

/** What the workspace keeps, as plain records. */

export interface Team {
  id: string;
  name: string;
  domain: string;
  /** On Enterprise Grid: the organization that the workspace belongs to. */
  enterpriseId?: string;
}

export type Role = SeenPerson["role"];

export interface Person {
  id: string;
  /** The handle, lower case. */
  name: string;
  realName: string;
  role: Role;
  teamId: string;
  active: boolean;
  email: string;
  /** Set on bots. */
  botId?: string;
  /** On Enterprise Grid: the organization, and the workspaces of it that the person belongs to. `teamId` is the first. */
  enterprise?: { id: string; teamIds: readonly string[] };
  timezone: string;
}

export interface Group {
  id: string;
  handle: string;
  name: string;
  userIds: string[];
  active: boolean;
  createdAt: number;
  updatedAt: number;
}

export interface Channel {
  id: string;
  /** Without #; empty for a direct message. */
  name: string;
  /** `group`: a group direct message. */
  kind: "public" | "private" | "direct" | "group";
  memberIds: Set<string>;
  archived: boolean;
  createdAt: number;
  /** Shared with another workspace (Slack Connect). */
  shared: boolean;
  topic: string;
  /** Takes no replies. */
  isNonThreadable?: boolean;
}

export interface Message {
  ts: string;
  channelId: string;
  /** On replies: the ts of the thread's first message. */
  threadTs?: string;
  userId: string;
  botId?: string;
  text: string;
  blocks: SeenBlock[];
  attachments: Fields[];
  metadata?: Fields;
  edited?: { userId: string; ts: string };
  /** Deleted, but shown as a tombstone because it has replies. */
  tombstone: boolean;
  fileIds: string[];
  /** Its thread takes no replies. */
  isLocked?: boolean;
  /** Set on a person's message with a file, and on a reply that was also sent to the channel. */
  subtype?: "file_share" | "thread_broadcast";
  /** Emoji name to the people who reacted. */
}

/** A message only one person sees. It can be replaced or deleted through a response URL only. */
export interface Ephemeral extends Message {
  toUserId: string;
}

export interface StoredFile {
  id: string;
  name: string;
  title: string;
  altText: string;
  mimetype: string;
  /** The length that was announced; the bytes must match. */
  size: number;
  bytes: Buffer | undefined;
  userId: string;
  createdAt: number;
  /** The secret part of the upload address. */
  uploadKey: string;
  /** The secret part of the address people's browsers open. */
  viewKey: string;
  completedAt: number | undefined;
  /** Where it was shared: channel id and ts of the message. */
  shares: { channelId: string; ts: string }[];
}

/** Lets the app open a modal for one person: once, and within 3 seconds. */
export interface Trigger {
  id: string;
  userId: string;
  issuedAt: number;
  used: boolean;
  /** The modal it was issued from, when it was: only then may a view be pushed. */
  fromViewId?: string;
}

/** Lets the app answer in one place, whether it is a member there or not: 5 times within 30 minutes. */
export interface ResponseUrl {
  key: string;
  userId: string;
  channelId: string;
  threadTs?: string;
  /** The message it came from, which it may replace or delete. A slash command's has none. */
  source?: { ts: string; ephemeral: boolean };
  issuedAt: number;
  uses: number;
}

export interface View {
  id: string;
  type: "modal" | "home";
  userId: string;
  hash: string;
  callbackId: string;
  title: Fields | null;
  submit: Fields | null;
  close: Fields | null;
  blocks: SeenBlock[];
  state: SeenState;
  privateMetadata: string;
  externalId: string;
  rootViewId: string;
  previousViewId: string | null;
  clearOnClose: boolean;
  notifyOnClose: boolean;
  /** By block id. */
  errors: Record<string, string>;
}
