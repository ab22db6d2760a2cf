import { isQuiet } from "../requests/face.ts";
import type { StoredRequest } from "../requests/record.ts";
import type { State } from "../requests/states.ts";
import type { Store } from "../requests/store.ts";
import type { Past } from "./outage.ts";

/** Older requests than this were decided before the outage, or wait for a person who is reminded anyway. */
const lookBackMs = 24 * 3600_000;
const mostRequests = 5000;
/** Histories read at the same time. */
const chunk = 100;

/**
 * Ids of the requests that an outage touched: asked for in it, moved in it, or under way when it began. What happened in that
 * time doesn't change any more, so neither does this list.
 */
export async function touchedBy(outage: Past, store: Store): Promise<string[]> {
  const { since, until } = outage;
  const ids = await store.idsAskedBetween(since - lookBackMs, until, mostRequests);
  const touched: string[] = [];
  for (let from = 0; from < ids.length; from += chunk) {
    // oxlint-disable-next-line no-await-in-loop -- in portions on purpose
    const requests = await store.getMany(ids.slice(from, from + chunk));
    // What ended before it began was not touched, and is most of all
    const near = requests.filter(({ changedAt, final }) => !final || changedAt >= since);
    // oxlint-disable-next-line no-await-in-loop
    const histories = await Promise.all(near.map(({ record }) => store.history(record.id)));
    for (const [index, request] of near.entries())
      if (isTouched(request, histories[index] ?? [], outage)) touched.push(request.record.id);
  }
  return touched;
}

function isTouched(
  { record }: StoredRequest,
  history: readonly { at: number; state: string }[],
  { since, until }: Past,
): boolean {
  if (record.createdAt >= since) return true;
  if (history.some(({ at }) => at >= since && at <= until)) return true;
  const first: State = record.approval ? "draft" : "authorized";
  return isUnderWay(history.findLast(({ at }) => at < since)?.state ?? first);
}

function isUnderWay(state: string): boolean {
  return ["authorized", "sending", "accepted", "unclear"].includes(state);
}

/** Where its messages stand, and with them the recap; undefined for what has none, or was told to one person alone. */
export function channelOf(request: StoredRequest): string | undefined {
  const { record, delivered } = request;
  if (isQuiet(request) || delivered.fallback !== undefined) return undefined;
  return delivered.card?.channelId ?? record.channelId;
}
