import type { Message } from "./blocks.ts";
import { Markdown, readable } from "./markdown.ts";

/** The message as it is posted: its text is what a locked phone shows. */
export function asPost(posted: Message): Message {
  const hasBlocks = posted.blocks.length > 0;
  return hasBlocks ? { ...posted, text: news(new Markdown(posted.text)).value } : posted;
}

/** A locked phone shows about this many characters. */
export const maxNews = 150;

/** One line of plain words, without mentions and IDs, cut between words. Slack shows a link to a channel as its name. */
function news(text: Markdown): Markdown {
  const line = readable(text)
    .value.replaceAll(/<[@!][^>]*>/g, "")
    .replaceAll(/ \((?:r|roll)-[a-z0-9]+\)/g, "")
    .replaceAll(/\s+/g, " ")
    .trim();
  if (line.length <= maxNews) return new Markdown(line);
  const room = line.slice(0, maxNews - 1);
  const end = room.lastIndexOf(" ");
  return new Markdown(`${end > maxNews / 2 ? room.slice(0, end) : room.replace(/&\w*$/, "")}…`);
}
