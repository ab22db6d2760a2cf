import { at, textAt } from "./payload.ts";

/**
 * The words of a message that mentions us, without the mention. Undefined for what no human wrote as a new message: other
 * apps may post as a person, so anything that bears the mark of an app is left alone. Subtypes (edits, joins, topics)
 * aren't asks either.
 */
export function readMention(event: unknown, botUserId: string): string | undefined {
  const user = textAt(event, "user");
  if (user === "" || user === botUserId || user === "USLACKBOT") return undefined;
  const marks = ["bot_id", "app_id", "bot_profile", "subtype", "workflow_id"];
  if (marks.some((mark) => (at(event, mark) ?? "") !== "")) return undefined;
  return wordsOf(textAt(event, "text"), botUserId);
}

/** Messages arrive escaped, with links made of whatever looks like one; people copy commands with their backticks. */
function wordsOf(text: string, botUserId: string): string {
  return text
    .replaceAll(/<@([A-Z0-9]+)(?:\|[^>]*)?>/g, (mention, id: string) =>
      id === botUserId ? " " : mention,
    )
    .replaceAll(
      /<(?:https?|mailto|tel):([^|>]*)(?:\|([^>]*))?>/g,
      (link, _rest, label?: string) => label ?? link.slice(1, -1),
    )
    .replaceAll("`", "")
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&amp;", "&")
    .replaceAll(/\s+/g, " ")
    .trim();
}
