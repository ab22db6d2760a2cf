import type { Message } from "../messages/message.ts";
import { md } from "../messages/text.ts";
import { say } from "./apology.ts";
import type { Ask } from "./ask.ts";
import type { Reply } from "./reply.ts";
import type { Talk } from "./talk.ts";

/** Shows an answer to everybody where it was asked; where the bot is no member, only the asker sees it and how to change that. */
export async function publicly(
  answer: Message,
  ask: Ask,
  reply: Reply,
  talk: Pick<Talk, "web">,
): Promise<void> {
  const posted = await talk.web.call("chat.postMessage", {
    channel: ask.channelId,
    ...(ask.threadTs ? { thread_ts: ask.threadTs } : {}),
    text: answer.text,
    blocks: answer.blocks,
    unfurl_links: false,
    unfurl_media: false,
  });
  if (posted.ok || posted.kind === "lost") return;
  await reply.privately(answer);
  if (posted.kind === "refused") {
    await reply.privately(
      say(
        md`I can't post in this channel, so only you see this. \`/invite @gatehouse\` changes that.`,
      ),
    );
  } else {
    await reply.privately(
      say(md`Slack does not take messages for everybody right now, so only you see this.`),
    );
  }
}
