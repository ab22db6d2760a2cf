import { type Part, type Patience, type RefusedAsk, type RefusedByName } from "./outage.ts";
import type { OutageStore, Sighting } from "./store.ts";

/** What is remembered of what was asked while Redis was away, at most. */
const mostRefused = 100;
const mostWords = 300;

/**
 * What this process sees of the parts it depends on. Kept in memory until `report` tells Redis, because that is away
 * itself now and then. Times are of the monotonic clock.
 */
export interface Watch {
  /** A call was answered, whatever the answer, or it wasn't. Undefined is a call that tells neither. */
  saw(part: Exclude<Part, "redis">, what: "answer" | "silence" | undefined): void;
  /** Redis didn't take this, and the person heard that nothing was done. */
  refused(ask: RefusedAsk): void;
  /** It was taken after all: Slack repeats events. */
  taken(askId: string): void;
  /** Since when Redis has been away for this process (ms ago), if it is. */
  redisAwayMs(): number | undefined;
  /** Tells Redis. Rejects while it is away; nothing is lost then. */
  report(store: OutageStore): Promise<void>;
}

export function createWatch(
  patience: Patience,
  nameOf: (ask: RefusedAsk) => Promise<string | undefined>,
): Watch {
  const seen = new Map<Part, { firstFailedAt?: number; failedAt?: number; answeredAt?: number }>();
  const watched = ["slack", "service"] as const;
  const refused = new Map<string, { ask: RefusedAsk; at: number }>();
  let redisAway: { since: number; last: number } | undefined;

  function sightings(now: number): Sighting[] {
    const ago = (at: number | undefined) => (at === undefined ? undefined : now - at);
    return watched.flatMap((part) => {
      const { firstFailedAt, failedAt, answeredAt } = seen.get(part) ?? {};
      const last = { part, failedAgo: ago(failedAt), answeredAgo: ago(answeredAt) };
      // An outage began with the first failure, however long it took to tell of it
      return firstFailedAt === failedAt
        ? [last]
        : [{ part, failedAgo: ago(firstFailedAt), answeredAgo: undefined }, last];
    });
  }

  /** It may take long to learn the names, and none of it is urgent: but nothing is told before. */
  async function handOver({ since, last }: { since: number; last: number }, store: OutageStore) {
    const asks = [...refused.values()];
    const isLong = last - since >= patience.outageMs;
    const named = isLong
      ? await Promise.all(
          asks.map(async ({ ask }): Promise<RefusedByName> => {
            const name = await nameOf(ask).catch(() => undefined);
            return { ...ask, name };
          }),
        )
      : asks.map(({ ask }) => ask);
    const now = performance.now();
    await store.cameBack({ sinceAgo: now - since, lastAgo: now - last, refused: named }, patience);
    for (const { ask } of asks) refused.delete(ask.id);
  }

  return {
    saw(part, what) {
      if (what === undefined) return;
      const at = performance.now();
      const { firstFailedAt = at, ...was } = seen.get(part) ?? {};
      const now =
        what === "answer" ? { ...was, answeredAt: at } : { ...was, firstFailedAt, failedAt: at };
      seen.set(part, now);
    },
    refused(ask) {
      if (refused.size >= mostRefused) return;
      const words = ask.words?.slice(0, mostWords);
      refused.set(ask.id, { ask: { ...ask, words }, at: performance.now() });
    },
    taken: (askId) => void refused.delete(askId),
    redisAwayMs: () => (redisAway ? performance.now() - redisAway.since : undefined),
    async report(store) {
      const began = performance.now();
      const reported = new Map(seen);
      try {
        await store.report(sightings(began), patience);
      } catch (error) {
        const last = performance.now();
        redisAway = { since: redisAway?.since ?? began, last };
        throw error;
      }
      for (const [part, was] of reported) if (seen.get(part) === was) seen.delete(part);
      if (redisAway) {
        await handOver(redisAway, store);
        redisAway = undefined;
      } else {
        for (const [id, { at }] of refused) if (at < began) refused.delete(id);
      }
    },
  };
}
