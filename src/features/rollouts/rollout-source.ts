import type { ChangeCommand } from "../../registry/define.ts";
import { renderRollout, renderRolloutEnd } from "./render-rollout.ts";
import type { StoredRollout } from "./rollout.ts";
import { parseRollout, type Rollouts } from "./rollouts.ts";
import type { Fields } from "../../redis/redis.ts";
import type { Place } from "../../slack/web.ts";
import type { Owes, Source } from "../../core/deliver/deliver.ts";
import { type Owed, type Relocation, paced } from "../../core/deliver/post-once.ts";

/**
 * Source of the messages of rollouts: a card that is edited every few seconds, and the result in
 * its thread. The requests of targets post nothing.
 */
export function rolloutSource(options: {
  rollouts: Rollouts;
  commands: readonly ChangeCommand[];
  editMs?: number;
}): Source {
  const { rollouts } = options;
  const { outbox } = rollouts;

  async function prepareRollout(id: string, fields: Fields): Promise<Owes | undefined> {
    const rollout = parseRollout(id, fields);
    const command = options.commands.find(({ name }) => name === rollout?.record.command);
    if (!rollout || !command) return undefined;
    const { revision, record } = rollout;
    const now = await rollouts.now();
    return { createdAt: record.createdAt, revision, ...messagesOfRollout(rollout, command, now) };
  }

  function messagesOfRollout(rollout: StoredRollout, command: ChangeCommand, now: number) {
    const { record, delivered, revision, state, final } = rollout;
    const { shown = "", marks } = delivered;
    const place = placeOf(rollout);
    const onClosed = async (): Promise<Relocation> => {
      if (delivered.isElsewhere) return "nowhere";
      await outbox.remember(record.id, { elsewhere: "1" });
      return "moved";
    };
    const isLast = final || shown.split(" ")[1] !== state;
    const looks = { version: String(revision), look: state, isLast };
    const { shows, waitMs } = paced(delivered, looks, now, options.editMs);
    const isResumable = shown.split(" ")[1] === "paused";
    const asks = isResumable && delivered.formerCard === undefined;
    const card = () => renderRollout(rollout, command);
    const end = () => renderRolloutEnd(rollout, command);
    const owed: Owed[] = [
      {
        key: "card",
        mark: marks["card"],
        place,
        render: card,
        shows: { ...shows, asks },
        onClosed,
      },
      { key: "end", mark: marks["end"], place, render: end, onClosed },
    ];
    return { messages: final ? owed : owed.slice(0, 1), waitMs };
  }

  return { outbox, owedSince: "createdAt", prepareMessages: prepareRollout };
}

/**
 * The place for messages: the thread of the card, or the requester's direct messages if the channel
 * is closed.
 */
function placeOf({ record, delivered }: StoredRollout): Place {
  const { card, isElsewhere } = delivered;
  // A closed channel closes the card's thread too.
  const open = isElsewhere && card?.channelId === record.channelId ? undefined : card;
  const threadTs = isElsewhere ? open?.ts : (record.threadTs ?? open?.ts);
  const channelId = open?.channelId ?? (isElsewhere ? record.requester.id : record.channelId);
  return { channelId, ...(threadTs ? { threadTs } : {}) };
}
