import { listAt, payloadOf, textAt } from "../json.ts";

/** Longer text isn't read. A message in Slack has at most 40,000 characters of text. */
const mostCharacters = 40_000;

/**
 * The fields whose text a reader sees, anywhere in a message. Values of buttons, IDs, and addresses
 * aren't among them.
 */
const readable = [
  "text",
  "fallback",
  "pretext",
  "title",
  "subtitle",
  "body",
  "description",
  "footer",
  "author_name",
  "service_name",
  "caption",
  "alt_text",
];
/**
 * The fields that aren't shown in the message itself: apps' metadata, the message that it replies
 * to, and its author.
 */
const hidden = new Set(["metadata", "root", "user_profile", "bot_profile"]);
/**
 * In these elements, pieces of text follow each other without a space: `web` in bold and `-2` are
 * `web-2`.
 */
const inline = new Set(["rich_text_section", "rich_text_preformatted", "rich_text_quote"]);

/**
 * All that people read in a message: its text, blocks, attachments with their fields and blocks,
 * and the titles of files. An alert often has nothing in `text`.
 */
export function textOfMessage(message: unknown): string {
  const texts: string[] = [];
  let left = mostCharacters;
  const take = (text: string) => {
    if (text === "" || left <= 0) return;
    texts.push(text.slice(0, left));
    left -= text.length + 1;
  };
  // It uses a stack of its own, because a body may be nested deeper than function calls can be.
  const waiting: unknown[] = [message];
  while (waiting.length > 0 && left > 0) {
    const node = waiting.pop();
    if (Array.isArray(node)) waiting.push(...node.toReversed());
    else if (inline.has(textAt(node, "type"))) take(inlineText(node));
    else if (typeof node === "object" && node !== null) {
      for (const name of readable) take(textAt(node, name));
      // `value` is visible in a field of an attachment, but hidden in a button.
      for (const field of listAt(node, "fields"))
        if (textAt(field, "type") === "") take(textAt(field, "value"));
      const inner = Object.entries(payloadOf(node)).toReversed();
      for (const [name, value] of inner) if (!hidden.has(name)) waiting.push(value);
    }
  }
  return texts.join("\n");
}

const inlineText = (section: unknown) =>
  listAt(section, "elements")
    .map((element) => textAt(element, "text") || textAt(element, "url") || " ")
    .join("");
