import { textAt, type Web } from "../web.ts";

const maxKept = 1_000;

/**
 * The conversations of direct messages. Slack takes a person's ID for a post, but neither finds nor edits a message there:
 * both want the ID of the conversation.
 */
export function createDirects(web: Web): { of(channelId: string): Promise<string | undefined> } {
  const known = new Map<string, string>();
  return {
    /** The ID itself where it is no person's, or where Slack opens no conversation; undefined while Slack doesn't tell. */
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
