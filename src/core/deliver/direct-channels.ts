import { textAt } from "../../slack/json.ts";
import type { Web } from "../../slack/web.ts";

/** The most conversations that a process remembers. */
const maxKept = 1_000;

/**
 * Finds the conversations of direct messages. Slack takes a person's ID for a post, but a look-up
 * and an edit need the ID of the conversation.
 */
export function createDirectChannels(web: Web): {
  of(channelId: string): Promise<string | undefined>;
} {
  const known = new Map<string, string>();
  return {
    /**
     * Resolves with the ID of the conversation, or with the given ID when it isn't a person's, or
     * when Slack refuses to open a conversation. Undefined while Slack doesn't answer.
     */
    async of(channelId) {
      if (!/^[UW]/.test(channelId)) return channelId;
      const before = known.get(channelId);
      if (before !== undefined) return before;
      const answer = await web.call("conversations.open", { users: channelId });
      if (!answer.ok) return answer.kind === "refused" ? channelId : undefined;
      const id = textAt(answer.data, "channel", "id") || channelId;
      if (known.size >= maxKept) known.clear();
      known.set(channelId, id);
      return id;
    },
  };
}
