import type { View } from "@slack/types";
import type { Message } from "../../messages/blocks.ts";
import type { GivenUp } from "../../queue/interactions.ts";
import { type InputValue, readView } from "./read-view.ts";

/** Who acts. */
export interface Actor {
  userId: string;
  /** The person's team. With Slack Connect it may be another one than ours. */
  teamId: string;
}

/**
 * Something that a person did in Slack, independent of Bolt. Except for the IDs of person, team,
 * and channel, everything in it is chosen by the client and proves nothing.
 */
export interface InteractionBase extends Actor {
  /**
   * From Slack's trigger ID, event ID, message, or view ID and hash. Equal IDs are one delivery.
   */
  id: string;
  /** When it was received (ms). */
  at: number;
  /** Empty when there is none (global shortcut, Home tab). */
  channelId: string;
  threadTs?: string;
  /** Opens a modal, once, within three seconds of `at`. */
  triggerId?: string;
  /** A capability to answer, so it is never stored or logged. */
  responseUrl?: string;
}

/** Whether only this person and Gatehouse read there. */
export function isDirect({ channelId }: { channelId: string }): boolean {
  return channelId.startsWith("D");
}

export type Press = Extract<Interaction, { kind: "button" }>;

export type Interaction =
  /** `/vm restart web-1`, or the same in a mention. `text` is `vm restart web-1`. */
  | (InteractionBase & { kind: "command" | "mention"; text: string })
  /** A pressed button or a chosen option. */
  | (InteractionBase & {
      kind: "button";
      action: string;
      value: string;
      messageTs?: string;
      /** True when the message exists only for this person. */
      ephemeral: boolean;
      viewId?: string;
      view?: ReturnType<typeof readView>;
    })
  /** A submitted modal. `values` maps a block ID to its value (text, option value, or list). */
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

/**
 * Errors by block ID of the input. If there are any, the modal stays open and the submission isn't
 * handled.
 */
export interface SubmissionResult {
  errors: Readonly<Record<string, string>>;
}

/** Someone types into a select whose options Gatehouse provides. */
export interface SuggestRequest extends Actor {
  action: string;
  typed: string;
  /** The private metadata of its view. Empty when the select is in a message. */
  privateMetadata: string;
}

export interface Suggestion {
  label: string;
  /** At most 75 characters. Untrusted when it comes back. */
  value: string;
  description?: string;
}

/**
 * `submit` and `suggest` run before the acknowledgment, `peopleChanged` parallel to it, everything
 * else after it.
 */
export interface InteractionHandlers {
  /**
   * It may run twice for one interaction, when a gateway dies during it, so it must be idempotent
   * by the interaction's `id`.
   */
  handleInteraction(interaction: Interaction, reply: Reply): Promise<void>;
  /**
   * Called for a redelivery. Nothing is done, but the person may be told the state of the first
   * one.
   */
  repeated(interaction: Interaction, reply: Reply): Promise<void>;
  /** It runs before the acknowledgment, so it must answer within two seconds. */
  submitBeforeAck(interaction: ViewSubmission): Promise<SubmissionResult | undefined>;
  /**
   * It runs before the acknowledgment. Nothing is suggested when it fails or takes over two
   * seconds.
   */
  suggest?(request: SuggestRequest): Promise<readonly Suggestion[]>;
  /**
   * Answers an interaction that wasn't or may not have been stored. Undefined unless the
   * interaction only reads. `mayRun` is true when it isn't known whether it was stored.
   */
  withoutRedis?(
    interaction: Interaction,
    how: { mayRun: boolean },
  ): ((reply: Reply) => Promise<void>) | undefined;
  /** Answers an interaction that isn't handled any more, because gateways died during it. */
  giveUp(interaction: Interaction, reply: Reply, why: GivenUp): Promise<void>;
  /** Called when a user group changed. `event` is Slack's event, `id` is its ID. */
  peopleChanged(event: unknown, id: string): void | Promise<void>;
}

/** The ways to answer the requester. Failures are logged, never thrown. */
export interface Reply {
  /**
   * Answers so that only the requester sees it: by response URL (which works without membership),
   * or else by an ephemeral post.
   */
  privately(message: Message): Promise<void>;
  /**
   * Replaces the ephemeral message whose button was pressed. If that isn't possible, answers
   * privately.
   */
  instead(message: Message): Promise<void>;
  /**
   * Like `instead`, but without the private answer. Resolves with false when nothing was replaced.
   */
  replace(message: Message): Promise<boolean>;
  /**
   * Opens a modal with the interaction's trigger. Resolves with its ID, or undefined when the
   * trigger was too old.
   */
  open(view: View): Promise<string | undefined>;
  update(viewId: string, view: View, hash?: string): Promise<void>;
}
