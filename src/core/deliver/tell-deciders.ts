import type { Log } from "../../log/log.ts";
import type { ChangeCommand } from "../../registry/define.ts";
import { showOrSay } from "../../slack/refused-message.ts";
import type { Web } from "../../slack/web.ts";
import { renderStaleCard } from "../cards/render-card.ts";
import { isChannel } from "../cards/render-result.ts";
import { deciderOf } from "../request/stage.ts";
import type { StoredRequest } from "../request/stored-request.ts";

/**
 * Tells people privately that their press counts, when the card can't show it because Slack takes
 * no more edits of it.
 */
export async function tellDeciders(
  request: StoredRequest,
  command: ChangeCommand,
  { web, log }: { web: Web; log: Log },
): Promise<void> {
  const { card, formerCard } = request.delivered;
  if (!card || !isChannel(card.channelId)) return;
  const text = renderStaleCard(request, command, { isAnew: formerCard === undefined });
  for (const user of decidersUnshown(request)) {
    const posted = await showOrSay(text, (message) =>
      web.call("chat.postEphemeral", { channel: card.channelId, user, ...message }),
    );
    if (!posted.ok) log.warn("slack.reply-failed", { user, ...posted });
  }
}

/** Returns the IDs of people whose vote or decision the card doesn't show yet. */
function decidersUnshown({ votes, delivered, stage }: StoredRequest): readonly string[] {
  const shown = /^asking (\d+)/.exec(delivered.cardFingerprint ?? "")?.[1];
  const voters = votes
    .slice(shown === undefined ? -1 : Number(shown))
    .map(({ voterId }) => voterId);
  const decidedBy = deciderOf(stage);
  return [...new Set([...voters, ...(decidedBy ? [decidedBy.id] : [])])];
}
