import { isChannel } from "./render/card-view.ts";
import type { Journal } from "./journal/journal.ts";
import { type Message, notice } from "../messages/message.ts";
import { md, name } from "../messages/text.ts";

const recentMs = 3600_000;
/** Of each kind: the newest. */
const maxRead = 1000;

/** Channels where a request is open, or was made within the last hour: people there wait for something. */
export async function busyChannels(
  store: Pick<Journal, "now" | "recentIds" | "idsAskedBetween" | "getMany">,
): Promise<string[]> {
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

/** For channels where people wait for something. */
export function freezeNews({ by, reason }: { by: string; reason: string }): Message {
  return notice(
    md`🧊 ${by} froze all changes${reason ? md`: ${reason}` : ""}. What was not sent yet won't run; reads still work. ${name("/gatehouse thaw")} ends it.`,
  );
}

export function thawNews(by: string): Message {
  return notice(
    md`Changes are allowed again: ${by} ended the freeze. What it turned away has *Request again* on its message.`,
  );
}
