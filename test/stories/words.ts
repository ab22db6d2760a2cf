import type { PersonActions } from "../../sandbox/slack/actions.ts";
import { wordsIn } from "../../sandbox/slack/describe-seen.ts";
import type { SeenMessage } from "../../sandbox/slack/seen.ts";

/** A message as one reads it: a line per text, cells of a table with bars, buttons as [label]. */
export function wordsOf(message: SeenMessage): string {
  const lines = message.blocks.length > 0 ? wordsIn(message.blocks) : [message.text];
  return lines
    .join("\n")
    .replaceAll(/<!date\^\d+\^[^|>]*\|([^>]*)>/g, "$1")
    .replaceAll(/[*`\u2060]/g, "");
}

/** The newest message with these words that a person sees in a channel or its threads; waits until it is there. */
export async function hears(
  person: PersonActions,
  channel: string,
  words: RegExp,
): Promise<SeenMessage> {
  const find = () =>
    person.seesChannel(channel).messages.findLast((message) => words.test(wordsOf(message)));
  await person.until(() => find() !== undefined);
  const found = find();
  if (found === undefined) throw new Error(`${person.name} hears nothing like ${String(words)}`);
  return found;
}
