import { messageOf } from "../errors.ts";
import type { Log } from "../log.ts";
import type { Message } from "../messages/message.ts";
import type { ChangeCommand } from "../registry/define.ts";
import type { StoredRequest } from "../requests/record.ts";
import type { Store } from "../requests/store.ts";
import { startRounds } from "../rounds.ts";
import type { Past, Patience, RefusedByName } from "./outage.ts";
import { renderRecap } from "./render-recap.ts";
import type { OutageStore } from "./store.ts";
import { channelOf, touchedBy } from "./touched.ts";
import type { Watch } from "./watch.ts";

/** Results that can't be delivered for so long don't hold the recap up any more. */
const drainMs = 3600_000;

/**
 * Reports what this process sees, and tells of outages that are over: one recap per channel, once what it is about has ended and
 * stands in the channel. It can be stopped anywhere: an outage stays on the list until every channel was told, and a recap that
 * is announced again is the same one.
 */
export function startTellingOutages(options: {
  watch: Watch;
  outages: OutageStore;
  store: Store;
  commands: readonly ChangeCommand[];
  announce(notice: { id: string; channelId: string; message: Message }): Promise<boolean>;
  patience: Patience;
  log: Log;
  at(point: "recap" | "recapped", outage: string): Promise<void>;
}): { close(): Promise<void> } {
  const { watch, outages, store, patience, log } = options;
  const everyMs = Math.min(1000, patience.outageMs / 10);
  // Gathering takes long where there is much: nobody else begins it meanwhile
  const hiddenMs = Math.min(30_000, patience.outageMs);
  const touched = new Map<string, readonly string[]>();

  async function round(): Promise<void> {
    try {
      await watch.report(outages);
      for (const id of await outages.takeDue(4, hiddenMs)) {
        // oxlint-disable-next-line no-await-in-loop -- what was over first is told first
        await tell(id);
      }
    } catch (error) {
      log.debug("outage.later", { reason: messageOf(error) });
    }
  }

  async function tell(id: string): Promise<void> {
    const outage = await outages.get(id);
    if (!outage) return outages.forget(id);
    const span = `${id} ${outage.until}`;
    const ids = touched.get(span) ?? (await touchedBy(outage, store));
    touched.set(span, ids);
    const places = await gather(outage, ids);
    const undelivered = await store.undelivered(ids);
    const ageMs = (await store.now()) - outage.until;
    let isWaiting = false;
    for (const [channelId, { requests, refused }] of places) {
      if (!isReady(requests, undelivered, ageMs)) {
        isWaiting = true;
        continue;
      }
      const recap = renderRecap(outage, requests, refused, options.commands);
      if (!recap) continue;
      // oxlint-disable-next-line no-await-in-loop -- one channel after the other
      await options.at("recap", id);
      // oxlint-disable-next-line no-await-in-loop
      await options.announce({ id: `recap:${id}:${channelId}`, channelId, message: recap });
      // oxlint-disable-next-line no-await-in-loop
      await options.at("recapped", id);
    }
    if (isWaiting) return outages.lookLater(id, 2 * everyMs);
    await outages.forget(id);
    touched.clear();
  }

  async function gather(outage: Past, ids: readonly string[]) {
    const places = new Map<string, { requests: StoredRequest[]; refused: RefusedByName[] }>();
    const placeOf = (channelId: string) => {
      const place = places.get(channelId) ?? { requests: [], refused: [] };
      places.set(channelId, place);
      return place;
    };
    for (const request of await store.getMany(ids)) {
      const channelId = channelOf(request);
      if (channelId) placeOf(channelId).requests.push(request);
    }
    const refused = outage.part === "redis" ? await outages.refused(outage.id) : [];
    for (const ask of refused) placeOf(ask.channelId).refused.push(ask);
    return places;
  }

  /** What runs gets a while to end; then it is told as under way. What waits for a person is not waited for. */
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
