import { textAt } from "../../slack/json.ts";
import type { Web } from "../../slack/web.ts";

type PostedMessage = { channelId: string; ts: string } | undefined;

/** Resolves with the address of a message in Slack. Undefined when Slack doesn't tell it. */
export async function linkTo(
  message: PostedMessage,
  { web }: { web: Web },
): Promise<string | undefined> {
  if (!message) return undefined;
  const { channelId: channel, ts } = message;
  const answer = await web.call("chat.getPermalink", { channel, message_ts: ts });
  const link = answer.ok ? textAt(answer.data, "permalink") : "";
  return /^https:\/\/[^\s<>|]+$/.test(link) ? link : undefined;
}

/** The most permalinks that a process remembers. */
const maxLinks = 1_000;

/** Resolves with the permalink of a message. */
export type Links = (message: PostedMessage) => Promise<string | undefined>;

/**
 * Creates the function that finds permalinks and remembers them. They never change, so Slack is
 * asked once, although a message that waits for its turn is rendered at each attempt.
 */
export function createLinks(options: { web: Web }): Links {
  const links = new Map<string, string>();
  return async (message) => {
    const at = message ? `${message.channelId} ${message.ts}` : "";
    const link = links.get(at) ?? (await linkTo(message, options));
    if (links.size >= maxLinks) links.clear();
    if (link !== undefined) links.set(at, link);
    return link;
  };
}
