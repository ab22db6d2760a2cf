import { isChannel } from "./render/card-view.ts";
import type { Journal } from "./journal/journal.ts";

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
