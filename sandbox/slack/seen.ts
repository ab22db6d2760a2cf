/**
 * What one person sees of the workspace, as plain JSON: the page draws it, tests read it. Nothing in here that Slack
 * would not show this person: no metadata, no ephemerals of others, no private channels they aren't in.
 * Types only, so that a browser can import this file too; `seen-by.ts` makes it.
 */

/** A Block Kit block or element, as posted; ids the app left out are filled in like Slack does. */
export interface SeenBlock {
  type: string;
  block_id?: string;
  [key: string]: unknown;
}

export interface SeenPerson {
  id: string;
  /** The handle, as in @olivia. */
  name: string;
  realName: string;
  role: "owner" | "admin" | "member" | "guest" | "bot" | "stranger";
  active: boolean;
  teamId: string;
}

export interface SeenGroup {
  id: string;
  handle: string;
  name: string;
  userIds: string[];
}

export interface SeenFile {
  id: string;
  name: string;
  title: string;
  mimetype: string;
  size: number;
  altText: string;
  /** Opens in a browser without a token: the key of this person is in it. */
  url: string;
}

export interface SeenMessage {
  ts: string;
  channelId: string;
  /** Set on replies only: the ts of the message they hang under. */
  threadTs?: string;
  author: { id: string; name: string; isBot: boolean };
  text: string;
  blocks: SeenBlock[];
  /** Only this person sees it. Gone again once replaced or deleted. */
  ephemeral: boolean;
  edited: boolean;
  /** A deleted message that still has replies shows as a tombstone. */
  deleted: boolean;
  files: SeenFile[];
  replyCount: number;
  /** What this person has chosen in the message's own inputs, by block id, then action id. */
  state: SeenState;
}

export interface SeenChannel {
  id: string;
  /** Without #; for a direct message the other person's handle. */
  name: string;
  kind: "public" | "private" | "direct" | "group";
  member: boolean;
  archived: boolean;
  /** A direct message with an app that takes none. */
  readOnly: boolean;
  botIsMember: boolean;
  memberIds: string[];
  /** Oldest first, replies and this person's ephemerals among them in the order of their time. */
  messages: SeenMessage[];
}

/** `values[blockId][actionId]`, the same shapes as `view.state.values` of a submission. */
export type SeenState = Record<string, Record<string, SeenValue>>;

export interface SeenValue {
  type: string;
  value?: string | null;
  selected_option?: SeenOption | null;
  selected_options?: SeenOption[];
  selected_user?: string | null;
  selected_users?: string[];
  selected_conversation?: string | null;
  selected_conversations?: string[];
  selected_channel?: string | null;
  selected_channels?: string[];
  selected_date?: string | null;
  selected_time?: string | null;
  selected_date_time?: number | null;
}

export interface SeenOption {
  text: { type: string; text: string; emoji?: boolean };
  value: string;
  description?: { type: string; text: string };
}

export interface SeenView {
  id: string;
  type: "modal" | "home";
  hash: string;
  callbackId: string;
  title: string;
  /** Label of the submit button, empty when there is none. */
  submit: string;
  close: string;
  blocks: SeenBlock[];
  state: SeenState;
  /** What is wrong, by block id of the input: said by the app, or by the client itself before anything was sent. */
  errors: Record<string, string>;
}

/** A line of Slack's own, above the composer or in the modal: "operation_timeout" and the like. */
export interface SeenToast {
  id: string;
  at: number;
  text: string;
  error?: string;
  channelId?: string;
}

/** What made this person's phone buzz: a mention, or a direct message. Edits and ephemerals never do. */
export interface SeenNotification {
  at: number;
  channelId: string;
  ts: string;
  text: string;
  because: "mention" | "group" | "everyone" | "direct";
}

export interface SeenCommand {
  name: string;
  description: string;
  usageHint: string;
}

export interface SeenShortcut {
  name: string;
  callbackId: string;
  type: "global" | "message";
}

export interface Seen {
  /** Goes up with every change in the workspace. */
  version: number;
  at: number;
  me: SeenPerson;
  team: { id: string; name: string; domain: string };
  bot: { userId: string; name: string };
  people: SeenPerson[];
  groups: SeenGroup[];
  channels: SeenChannel[];
  /** The open modal views, the one on top last. */
  modals: SeenView[];
  /** The Home tab, once the app has published it for this person. */
  home?: SeenView;
  toasts: SeenToast[];
  inbox: SeenNotification[];
  /** Every file this person may see, by id: for `slack_file` images in blocks. */
  files: Record<string, SeenFile>;
  commands: SeenCommand[];
  shortcuts: SeenShortcut[];
}
