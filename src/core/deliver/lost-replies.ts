import {
  type Markdown,
  type Message,
  lines,
  message as makeMessage,
  md,
  name,
  news,
  section,
} from "../../messages/message.ts";
import type { Announce } from "./deliver.ts";
import type { Interaction } from "../../slack/receive/interaction.ts";

export function lostReply(what: Markdown): Message {
  const text = lines(
    md`Slack was unavailable when Gatehouse answered ${what}.`,
    md`If no message about it is in the channel, nothing was done. Please try again.`,
  );
  return makeMessage(
    news(md`Slack lost Gatehouse's answer to ${what}. Please try again.`),
    section(text),
  );
}

/**
 * Tells people later, by direct message, that Slack lost an answer. Never the answer itself: it may be short-lived (a
 * console's address), and the command can be repeated.
 */
export function createLostReplies(announce: Announce): (interaction: Interaction) => Promise<void> {
  return async (interaction) => {
    // The Home tab is simply opened again
    if (interaction.kind === "home") return;
    const what = interaction.kind === "command" ? name(`/${interaction.text}`) : md`you`;
    const message = lostReply(what);
    const { id, userId: channelId } = interaction;
    await announce({ id: `unheard:${id}`, channelId, message });
  };
}
