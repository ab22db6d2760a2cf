import type { Block, Message } from "../messages/blocks.ts";
import type { Command } from "../registry/define.ts";
import { payloadOf, textAt } from "../slack/json.ts";
import { type Interaction, type Reply, isDirect } from "../slack/receive/interaction.ts";

/**
 * Rewrites commands in answers to a mention, because slash commands don't work in threads: `/vm
 * list` in a code span becomes `@gatehouse vm list`; outside of a code span it loses its slash.
 */
export function replaceCommandWords(
  interaction: Interaction,
  reply: Reply,
  { commands }: { commands: readonly Command[] },
): Reply {
  if (interaction.kind !== "mention" || isDirect(interaction)) return reply;
  const reworded = ({ text, blocks }: Message): Message => ({
    text: mentionWords(text, commands),
    blocks: withWords(blocks, commands),
  });
  return {
    ...reply,
    privately: (message) => reply.privately(reworded(message)),
    instead: (message) => reply.instead(reworded(message)),
    replace: (message) => reply.replace(reworded(message)),
  };
}

export function mentionWords(text: string, commands: readonly Command[]): string {
  const roots = [...new Set(commands.map(({ name }) => name.split(" ")[0] ?? ""))].join("|");
  const command = new RegExp(`(?<![\\w/.:-])/(${roots})(?![\\w/.-])`, "g");
  return text
    .split("`")
    .map((part, index) =>
      index % 2 === 1
        ? part.replace(command, "@gatehouse $1").replace("@gatehouse gatehouse", "@gatehouse")
        : part.replaceAll(command, "$1"),
    )
    .join("`");
}

/** Only mrkdwn text is rewritten: labels and table cells hold names, not commands. */
function withWords(blocks: readonly Block[], commands: readonly Command[]): Block[] {
  return JSON.parse(JSON.stringify(blocks), (_key, value: unknown) =>
    textAt(value, "type") === "mrkdwn"
      ? { ...payloadOf(value), text: mentionWords(textAt(value, "text"), commands) }
      : value,
  ) as Block[];
}
