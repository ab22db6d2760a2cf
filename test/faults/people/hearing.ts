import { wordsIn } from "../../../sandbox/slack/describe-seen.ts";
import type { SeenMessage } from "../../../sandbox/slack/seen.ts";
import type { Stage } from "../stage/stage.ts";

/** Everything that one message says, without the marks around names. */
export const wordsOf = ({ text, blocks }: SeenMessage): string =>
  [text, ...wordsIn(blocks)].join("\n").replaceAll(/[*`\u2060]/g, "");

/** What only this person was told, oldest first. */
export async function answersTo(stage: Stage, who: string): Promise<string[]> {
  const seen = await stage.slack.seen(who);
  return seen.channels
    .flatMap(({ messages }) => messages)
    .filter(({ ephemeral, author }) => ephemeral && author.isBot)
    .map(wordsOf);
}

/** Asks to see one VM, which makes no request; resolves with what Slack says of the delivery. */
export const looksAt = (stage: Stage, vm: string) =>
  stage.slack.act("olivia", "types", "ops", `/vm show ${vm}`);

/** How often olivia was shown this VM. */
export const timesShown = async (stage: Stage, vm: string): Promise<number> =>
  (await answersTo(stage, "olivia")).filter((text) => text.includes(vm)).length;

/** Resolves with the newest message that says so, as soon as this person sees one. */
export async function hears(stage: Stage, who: string, pattern: RegExp): Promise<SeenMessage> {
  const find = (seen: Awaited<ReturnType<typeof stage.slack.seen>>) =>
    seen.channels.flatMap(({ messages }) => messages).findLast((one) => pattern.test(wordsOf(one)));
  const found = find(
    await stage.slack
      .until(who, (seen) => find(seen) !== undefined)
      .catch(() => {
        throw new Error(`${who} does not hear ${String(pattern)}`);
      }),
  );
  if (!found) throw new Error(`${who} does not hear ${String(pattern)} any more`);
  return found;
}
