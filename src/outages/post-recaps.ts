import type { Policy } from "../config/policy-file.ts";
import { messageOf } from "../errors.ts";
import type { Inventory } from "../inventory/inventory.ts";
import type { Log } from "../log/log.ts";
import type { Message } from "../messages/message.ts";
import type { ChangeCommand } from "../registry/define.ts";
import type { StoredRequest, State } from "../requests/journal/record.ts";
import type { Journal } from "../requests/journal/journal.ts";
import { startRounds } from "../redis/rounds.ts";
import type { Past, OutageTiming, RefusedByName, OutageStore } from "./outages.ts";
import { recapChannel, shownWords } from "./shown-words.ts";
import { renderRecap } from "./render-recap.ts";
import type { Watch } from "./dependency-monitor.ts";
import { sharedCardOf } from "../requests/journal/shared-cards.ts";
import { hasNoCard, isDecidedElsewhere } from "../requests/render/card-view.ts";

/** Undelivered results hold the recap back for at most this time. */
const drainMs = 3600_000;

/**
 * Saves what this process sees, and posts one recap per channel after an outage, once its requests have ended and their results
 * are posted. Safe to stop anywhere: an outage stays on the list until every channel has its recap, and posting is idempotent.
 */
export function startPostingRecaps(options: {
  watch: Watch;
  outages: OutageStore;
  store: Journal;
  commands: readonly ChangeCommand[];
  /** Read at each use: it may be another one by then. */
  readonly policy: Policy;
  /** All that there is. */
  inventory: Pick<Inventory, "findProject" | "seenIn">;
  announce(notice: { id: string; channelId: string; message: Message }): Promise<boolean>;
  patience: OutageTiming;
  log: Log;
  at(point: "recap" | "recapped", outage: string): Promise<void>;
}): { close(): Promise<void> } {
  const { watch, outages, store, patience, log } = options;
  const everyMs = Math.min(2000, patience.outageMs / 10);
  // Gathering may take long
  const visibilityTimeoutMs = Math.min(30_000, patience.outageMs);

  async function round(): Promise<void> {
    try {
      if (!(await watch.report(outages))) return;
      for (const outage of await outages.takeDue(4, visibilityTimeoutMs)) await tell(outage);
    } catch (error) {
      log.debug("outage.later", { reason: messageOf(error) });
    }
  }

  async function tell(outage: Past): Promise<void> {
    const { id } = outage;
    const ids = await touchedBy(outage, store);
    const places = await gather(outage, ids);
    const undelivered = await store.outbox.among(ids);
    // Read after that: a request leaves its outbox only once its shared card is on that one's
    const now = await store.getMany(ids);
    const pending = await store.sharedCards.outbox.among(now.flatMap(sharedCards));
    for (const request of now)
      if (sharedCards(request).some((one) => pending.has(one))) undelivered.add(request.record.id);
    const ageMs = (await store.now()) - outage.until;
    let isWaiting = false;
    for (const [channelId, { requests, refused }] of places) {
      if (!isReady(requests, undelivered, ageMs)) {
        isWaiting = true;
        continue;
      }
      const recap = renderRecap(outage, requests, refused, options.commands);
      if (!recap) continue;
      await options.at("recap", id);
      await options.announce({ id: `recap:${id}:${channelId}`, channelId, message: recap });
      await options.at("recapped", id);
    }
    if (isWaiting) await outages.lookLater(outage, 2 * everyMs);
    else await outages.forget(outage);
  }

  async function gather(outage: Past, ids: readonly string[]) {
    const places = new Map<string, { requests: StoredRequest[]; refused: RefusedByName[] }>();
    const placeOf = (channelId: string) => {
      const place = places.get(channelId) ?? { requests: [], refused: [] };
      places.set(channelId, place);
      return place;
    };
    for (const request of await store.getMany(ids)) {
      const told = channelsOf(request).map((one) => recapChannel(request.record, one, options));
      for (const channelId of new Set(await Promise.all(told)))
        placeOf(channelId).requests.push(request);
    }
    const refused = outage.part === "redis" ? await outages.refused(outage.id) : [];
    for (const { words, ...interaction } of refused) {
      const { channelId } = interaction;
      const shown =
        words === undefined ? {} : { words: await shownWords(words, channelId, options) };
      placeOf(channelId).refused.push({ ...interaction, ...shown });
    }
    return places;
  }

  /** Running requests get some time to end; those that need a person get none. */
  function isReady(
    requests: readonly StoredRequest[],
    undelivered: ReadonlySet<string>,
    ageMs: number,
  ): boolean {
    if (ageMs > drainMs) return true;
    const isEnded = ({ final, state }: StoredRequest) =>
      final || state === "unknown" || state === "draft";
    if (ageMs <= patience.endsMs && !requests.every(isEnded)) return false;
    return !requests.some(({ record }) => undelivered.has(record.id));
  }

  return startRounds("outages", everyMs, round, log);
}

function sharedCards(request: StoredRequest): string[] {
  const id = sharedCardOf(request);
  return id === undefined ? [] : [id];
}

/** Older requests ended before the outage, or have reminders. */
const lookBackMs = 24 * 3600_000;
const maxRequests = 5000;
/** Histories read at the same time. */
const batch = 100;

/** IDs of the requests that an outage affected: created or moved in it, or in progress when it began. A stable list. */
export async function touchedBy(outage: Past, store: Journal): Promise<string[]> {
  const { since, until } = outage;
  const ids = await store.idsAskedBetween(since - lookBackMs, until, maxRequests);
  const touched: string[] = [];
  for (let from = 0; from < ids.length; from += batch) {
    const requests = await store.getMany(ids.slice(from, from + batch));
    // Most requests ended before it
    const near = requests.filter(({ changedAt, final }) => !final || changedAt >= since);
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
  const state = history.findLast(({ at }) => at < since)?.state ?? first;
  return ["authorized", "sending", "accepted", "unclear"].includes(state);
}

/** The channels that hear of it: where its card is, where it was requested, and that of its team. */
function channelsOf(request: StoredRequest): readonly string[] {
  const { record, delivered } = request;
  if (hasNoCard(request)) return [];
  const { asked, card, fallback, isTeamClosed } = delivered;
  const isElsewhere = isDecidedElsewhere(request);
  const here = (isElsewhere ? asked : card)?.channelId ?? record.channelId;
  const team = isTeamClosed ? undefined : record.teamChannel;
  const all = [fallback === undefined ? here : undefined, team];
  return [...new Set(all.filter((one) => one !== undefined))];
}
