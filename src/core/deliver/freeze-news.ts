import { type Message } from "../../messages/blocks.ts";
import { sentence } from "../../messages/card.ts";
import { type Markdown, md, name, withFullStop } from "../../messages/markdown.ts";
import type { Command } from "../../registry/define.ts";
import { isChannel } from "../cards/render-result.ts";
import type { Freeze } from "../request/freeze.ts";
import type { Journal } from "../request/journal.ts";

const recentMs = 3600_000;
/** The most open requests, and the most recent ones, that are read. The newest are read first. */
const maxRead = 1000;

/**
 * Returns the channels where a request is open, or was made within the last hour. People there may
 * wait for something.
 */
export async function busyChannels(store: Journal): Promise<string[]> {
  const now = await store.now();
  const ids = await Promise.all([
    store.recentIds({ open: true }, maxRead),
    store.idsAskedBetween(now - recentMs, now, maxRead),
  ]);
  const requests = await store.getMany([...new Set(ids.flat())]);
  const channels = requests.flatMap(({ record, delivered }) => [
    record.channelId,
    delivered.card?.channelId ?? record.channelId,
  ]);
  return [...new Set(channels)].filter(isChannel);
}

type FreezeReason = Pick<Freeze, "by" | "reason">;

/** Names a freeze within a sentence: by whom, and why. */
export function freezeName({ by: frozenBy, reason }: FreezeReason): Markdown {
  return md`the freeze by ${frozenBy}${reason && ` (${reason})`}`;
}

/** Renders the news that a freeze has ended, for channels where people wait for something. */
export function thawNews(thawedBy: string, ended: FreezeReason): Message {
  return sentence(
    md`Changes are allowed again: ${thawedBy} ended ${freezeName(ended)}. Requests that it canceled have *Request again* on their messages.`,
  );
}

/**
 * Renders the news of a freeze, for channels of those whom it stops. `endCommand` is the command
 * that ends the freeze, if there is one, and `who` names those who may.
 */
export function freezeNews(
  { by: frozenBy, reason }: FreezeReason,
  endCommand: Pick<Command, "name"> | undefined,
  who: string,
): Message {
  const ends = endCommand && name(`/${endCommand.name}`);
  const way = who === "" ? md`${ends} ends it.` : md`${who} can allow changes again with ${ends}.`;
  return sentence(
    md`${withFullStop(md`🧊 ${frozenBy} froze all changes${reason ? md`: ${reason}` : ""}`)} What was not sent yet won't run; reads still work.${ends ? md` ${way}` : ""}`,
  );
}
