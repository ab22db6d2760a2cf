import { textAt, type Web } from "../web.ts";

const maxKept = 1_000;

/**
 * The conversations of direct messages. Slack takes a person's ID for a post, but neither finds nor edits a message there:
 * both want the ID of the conversation.
 */
export function createDirects(web: Web): { of(userId: string): Promise<string> } {
  const known = new Map<string, string>();
  return {
    /** The person's own ID while Slack doesn't tell it. */
    async of(userId) {
      const before = known.get(userId);
      if (before !== undefined) return before;
      const answer = await web.call("conversations.open", { users: userId });
      const id = answer.ok ? textAt(answer.data, "channel", "id") : "";
      if (id === "") return userId;
      if (known.size >= maxKept) known.clear();
      known.set(userId, id);
      return id;
    },
  };
}
