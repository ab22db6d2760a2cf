import { textAt } from "../../slack/json.ts";
import type { Web } from "../../slack/web.ts";

/** Resolves with the address of a message in Slack. Undefined when Slack doesn't tell it. */
export async function linkTo(
  message: { channelId: string; ts: string } | undefined,
  { web }: { web: Web },
): Promise<string | undefined> {
  if (!message) return undefined;
  const { channelId: channel, ts } = message;
  const answer = await web.call("chat.getPermalink", { channel, message_ts: ts });
  const link = answer.ok ? textAt(answer.data, "permalink") : "";
  return /^https:\/\/[^\s<>|]+$/.test(link) ? link : undefined;
}
