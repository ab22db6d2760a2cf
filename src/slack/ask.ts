/**
 * What reached us from Slack, in our words: made by the listeners, handled without knowing Bolt. Everything in it but
 * the ids of person, team and channel was chosen by a client: nothing in it is authority.
 */
export interface AskBase {
  /** Made of Slack's own id of this delivery (trigger id, event id, message, or view id and hash): equal ids are one delivery. */
  id: string;
  /** When it reached us, in milliseconds. */
  at: number;
  userId: string;
  /** The team of the person, which differs from ours for Slack Connect. */
  teamId: string;
  /** Empty where there is none (global shortcut, Home tab). */
  channelId: string;
  threadTs?: string;
  /** Opens a modal, once, within three seconds of `at`. */
  triggerId?: string;
  /** A capability to answer: never stored or logged as it is. */
  responseUrl?: string;
}

/** The view in which something was pressed. `values` is block id → value, as with a submission. */
export interface AskedView {
  type: "modal" | "home";
  callback: string;
  hash: string;
  privateMetadata: string;
  values: Record<string, string | readonly string[] | undefined>;
}

export type Ask =
  /** `/vm restart web-1`, or the same words in a mention: `text` begins with the root, `vm restart web-1`. */
  | (AskBase & { kind: "command" | "mention"; text: string })
  /** A pressed button or a chosen option. `value` holds ids only. */
  | (AskBase & {
      kind: "button";
      action: string;
      value: string;
      messageTs?: string;
      /** The message exists only for this person. */
      ephemeral: boolean;
      viewId?: string;
      /** Where the button is in a view: what that view is and holds, as Slack sent it. */
      view?: AskedView;
    })
  /** A submitted modal. `values` is block id → value (text, option value, or list). */
  | (AskBase & {
      kind: "submission";
      callback: string;
      privateMetadata: string;
      viewId: string;
      values: Record<string, string | readonly string[] | undefined>;
    })
  | (AskBase & { kind: "shortcut"; callback: string; messageText?: string; messageTs?: string })
  | (AskBase & { kind: "home" });
