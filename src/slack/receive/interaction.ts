import type { View } from "@slack/types";
import type { Message } from "../../messages/message.ts";
import { type InputValue, readView } from "./read-view.ts";

/**
 * An act in Slack, independent of Bolt. Except the ids of person, team and channel everything in it is client-chosen and
 * proves nothing.
 */
export interface InteractionBase {
  /** From Slack's trigger id, event id, message, or view id and hash: equal ids are one delivery. */
  id: string;
  /** When it was received (ms). */
  at: number;
  userId: string;
  /** The person's team: another one with Slack Connect. */
  teamId: string;
  /** Empty where there is none (global shortcut, Home tab). */
  channelId: string;
  threadTs?: string;
  /** Opens a modal, once, within three seconds of `at`. */
  triggerId?: string;
  /** A capability to answer: never stored or logged. */
  responseUrl?: string;
}

/** Whether only this person and Gatehouse read there. */
export function isDirect({ channelId }: Pick<InteractionBase, "channelId">): boolean {
  return channelId.startsWith("D");
}

export type Press = Extract<Interaction, { kind: "button" }>;

export type Interaction =
  /** `/vm restart web-1`, or the same in a mention: `text` is `vm restart web-1`. */
  | (InteractionBase & { kind: "command" | "mention"; text: string })
  /** A pressed button or a chosen option. */
  | (InteractionBase & {
      kind: "button";
      action: string;
      value: string;
      messageTs?: string;
      /** The message exists only for this person. */
      ephemeral: boolean;
      viewId?: string;
      view?: ReturnType<typeof readView>;
    })
  /** A submitted modal. `values` is block id → value (text, option value, or list). */
  | (InteractionBase & {
      kind: "submission";
      callback: string;
      privateMetadata: string;
      viewId: string;
      values: Record<string, InputValue>;
    })
  | (InteractionBase & { kind: "shortcut"; callback: string; messageText?: string })
  | (InteractionBase & { kind: "home" });

export type CommandInteraction = Extract<Interaction, { kind: "command" | "mention" }>;

export type ViewSubmission = Extract<Interaction, { kind: "submission" }>;

/** Errors by block id of the input: with any, the submission goes back to the person and is not handled. */
export interface SubmissionResult {
  errors: Readonly<Record<string, string>>;
}

/** Someone types into a select whose options Gatehouse provides. */
export interface SuggestRequest {
  userId: string;
  teamId: string;
  action: string;
  typed: string;
  /** Of its view; empty when it is in a message. */
  privateMetadata: string;
}

export interface Suggestion {
  label: string;
  /** At most 75 characters. Untrusted when it comes back. */
  value: string;
  description?: string;
}

/** `submit` and `suggest` run before the ack, `peopleChanged` beside it, everything else after it. */
export interface Handlers {
  /** May run twice for one interaction, when a gateway dies during it: must be idempotent by its `id`. */
  handle(interaction: Interaction, reply: Reply): Promise<void>;
  /** A redelivery: nothing is done, but the person may be told the state of the first. */
  repeated(interaction: Interaction, reply: Reply): Promise<void>;
  /** Runs before the ack: must answer within two seconds. */
  submit(interaction: ViewSubmission): Promise<SubmissionResult | undefined>;
  /** Runs before the ack. Suggests nothing when it fails or takes over two seconds. */
  suggest?(request: SuggestRequest): Promise<readonly Suggestion[]>;
  /** Answers an interaction that may not be stored; undefined unless it only reads. `mayRun`: nobody knows whether it is. */
  withoutRedis?(
    interaction: Interaction,
    how: { mayRun: boolean },
  ): ((reply: Reply) => Promise<void>) | undefined;
  /** A gateway died during this interaction, too long ago to handle it now. */
  tooLate(interaction: Interaction, reply: Reply): Promise<void>;
  /** A user group changed, as this event of Slack says; `id` names the event. */
  peopleChanged(event: unknown, id: string): void | Promise<void>;
}

/** The ways to answer the requester. Failures are logged, never thrown. */
export interface Reply {
  /** Only the requester sees it: by response URL (works without membership), else an ephemeral post. */
  privately(message: Message): Promise<void>;
  /** Replaces the ephemeral message whose button was pressed; where that isn't possible, answers privately. */
  instead(message: Message): Promise<void>;
  /** The same without the private answer: false when nothing was replaced. */
  replace(message: Message): Promise<boolean>;
  /** Opens a modal with the interaction's trigger: its ID; undefined when the trigger was too old. */
  open(view: View): Promise<string | undefined>;
  update(viewId: string, view: View, hash?: string): Promise<void>;
}
