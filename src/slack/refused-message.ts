import { asText, inFewWords } from "../messages/plain-text.ts";
import { type Message } from "../messages/blocks.ts";
import { sharedOutside, unseenGroup } from "../messages/channel-errors.ts";
import { type WebAnswer, isBecauseOfUs } from "./web-answer.ts";

/** Permanent refusals of a channel. Messages then go elsewhere. */
export const closedChannel = new Set([
  "not_in_channel",
  "channel_not_found",
  "is_archived",
  "restricted_action",
  "restricted_action_read_only_channel",
  "restricted_action_thread_only_channel",
  "no_permission",
  sharedOutside,
  unseenGroup,
]);

/** Refusals of a thread. Messages then go into its channel. */
const closedThread = new Set([
  "thread_not_found",
  "cannot_reply_to_message",
  "restricted_action_thread_locked",
  "restricted_action_non_threadable_channel",
]);

export const isOfThread = (error: string): boolean => closedThread.has(error);

/** Refusals to edit a message that can no longer be changed. */
export const uneditable = new Set([
  "edit_window_closed",
  "cant_update_message",
  "message_not_found",
]);

/** Nobody is there to read the message, or its channel was archived. */
const noReader = new Set([
  "is_inactive",
  "user_disabled",
  "user_not_found",
  "users_not_found",
  "user_not_in_channel",
  "cannot_dm_bot",
  "messages_tab_disabled",
]);

/** Whether Slack refused the message, and not the app. */
export const isRefused = (answer: WebAnswer): answer is Extract<WebAnswer, { kind: "refused" }> =>
  !answer.ok && answer.kind === "refused" && !isBecauseOfUs(answer.error);

const notOfContent = [closedChannel, closedThread, uneditable, noReader];

/** Whether Slack refused the message's content, and not its place. */
export const isOfContent = (answer: WebAnswer): boolean =>
  isRefused(answer) && !notOfContent.some((errors) => errors.has(answer.error));

/**
 * Shows a message at once. If Slack refuses its content, nothing was shown, so it is sent with
 * words in place of its charts and tables, and then as text alone.
 */
export async function showOrSay(
  message: Message,
  show: (message: Message) => Promise<WebAnswer>,
): Promise<WebAnswer> {
  let answer = await show(message);
  const words = inFewWords(message);
  if (words && isOfContent(answer)) answer = await show(words);
  return isOfContent(answer) ? show(asText(message)) : answer;
}
