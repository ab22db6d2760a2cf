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

/**
 * Renders the message about a lost answer. `answered` is the command, or the person, that Gatehouse
 * answered.
 */
export function lostReply(answered: Markdown): Message {
  const text = lines(
    md`Slack was unavailable when Gatehouse answered ${answered}.`,
    md`If no message about it is in the channel, nothing was done. Please try again.`,
  );
  return makeMessage(
    news(md`Slack lost Gatehouse's answer to ${answered}. Please try again.`),
    section(text),
  );
}

/**
 * Creates the function that tells a person later, by direct message, that Slack lost an answer. The
 * message never holds the answer itself, which may be short-lived (a console's address). The person
 * can repeat the command.
 */
export function createLostReplies(announce: Announce): (interaction: Interaction) => Promise<void> {
  return async (interaction) => {
    // A person who misses the Home tab simply opens it again.
    if (interaction.kind === "home") return;
    const answered = interaction.kind === "command" ? name(`/${interaction.text}`) : md`you`;
    const message = lostReply(answered);
    const { id, userId: channelId } = interaction;
    await announce({ id: `unheard:${id}`, channelId, message });
  };
}
