import type { Block, Message } from "../../messages/message.ts";
import type { Command } from "../../registry/define.ts";
import type { Reply } from "../receive/interaction.ts";

/** Answers in a thread: `/vm list` in a code span becomes `@gatehouse vm list`, and elsewhere loses its slash. */
export function inMentions(reply: Reply, commands: readonly Command[]): Reply {
  const reworded = ({ text, blocks }: Message): Message => ({
    text: mentionWords(text, commands),
    blocks: blocks.map((block) => withWords(block, commands)),
  });
  return {
    ...reply,
    privately: (said) => reply.privately(reworded(said)),
    instead: (said) => reply.instead(reworded(said)),
    replace: (said) => reply.replace(reworded(said)),
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

/** Only mrkdwn: labels and cells of tables are names. */
function withWords(block: Block, commands: readonly Command[]): Block {
  return JSON.parse(JSON.stringify(block), (_key, value: unknown) => {
    if (typeof value !== "object" || value === null) return value;
    const { type, text } = value as { type?: unknown; text?: unknown };
    if (type !== "mrkdwn" || typeof text !== "string") return value;
    return { ...value, text: mentionWords(text, commands) };
  }) as Block;
}
