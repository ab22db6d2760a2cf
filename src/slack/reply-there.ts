import type { Ask } from "./ask.ts";
import { textAt } from "./payload.ts";
import type { Reply } from "./reply.ts";
import type { Talk } from "./talk.ts";

/**
 * A submitted dialog comes from no channel. What is said about it belongs where the dialog was opened, to the asker alone;
 * where that can't be, it goes into their direct messages.
 */
export function replyThere(
  ask: Extract<Ask, { kind: "submission" }>,
  reply: Reply,
  talk: Talk,
): Reply {
  return {
    ...reply,
    async privately(message) {
      const channel = channelIn(ask.privateMetadata);
      if (channel !== "") {
        const { text, blocks } = message;
        const posted = await talk.web.call("chat.postEphemeral", {
          channel,
          user: ask.userId,
          text,
          blocks,
        });
        if (posted.ok || posted.kind === "lost") return;
      }
      await reply.privately(message);
    },
  };
}

function channelIn(privateMetadata: string): string {
  try {
    return textAt(JSON.parse(privateMetadata), "channelId");
  } catch {
    return "";
  }
}
