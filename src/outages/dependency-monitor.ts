import type {
  OutageTiming,
  Part,
  RefusedByName,
  RefusedInteraction,
  OutageStore,
  Sighting,
} from "./outages.ts";

/** Limits of what is kept in memory while Redis is unavailable. */
const maxRefused = 100;
const maxWords = 300;

/** What this process sees of its dependencies, in memory until `report` saves it in Redis. Times are monotonic. */
export interface Watch {
  /** Any answer counts as one; undefined is a call that shows neither. */
  saw(part: Exclude<Part, "redis">, what: "answer" | "silence" | undefined): void;
  /** Redis didn't take it, and the person read that nothing was done. */
  refused(interaction: RefusedInteraction): void;
  /** Taken after all: Slack redelivers events. */
  taken(interactionId: string): void;
  /** How long Redis has been unavailable to this process, if it is. */
  redisAwayMs(): number | undefined;
  /** Saves it in Redis; resolves with whether recaps are pending. Rejects while Redis is unavailable; nothing is lost then. */
  report(store: OutageStore): Promise<boolean>;
}

export function createDependencyMonitor(
  patience: OutageTiming,
  nameOf: (interaction: RefusedInteraction) => Promise<string | undefined>,
): Watch {
  const seen = new Map<Part, { firstFailedAt?: number; failedAt?: number; answeredAt?: number }>();
  const watched = ["slack", "service"] as const;
  const refused = new Map<string, { interaction: RefusedInteraction; at: number }>();
  let redisAway: { since: number; last: number } | undefined;

  function sightings(now: number): Sighting[] {
    const ago = (at: number | undefined) => (at === undefined ? undefined : now - at);
    return watched.flatMap((part) => {
      const was = seen.get(part);
      if (!was) return [];
      const { firstFailedAt, failedAt, answeredAt } = was;
      const last = { part, failedAgo: ago(failedAt), answeredAgo: ago(answeredAt) };
      if (firstFailedAt === undefined || firstFailedAt === failedAt) return [last];
      // An outage begins with the first failure, however late it is reported, unless an answer has ended what was before
      const isBefore = answeredAt !== undefined && answeredAt < firstFailedAt;
      const answeredAgo = isBefore ? ago(answeredAt) : undefined;
      return [{ part, failedAgo: ago(firstFailedAt), answeredAgo }, last];
    });
  }

  async function handOver({ since, last }: { since: number; last: number }, store: OutageStore) {
    const interactions = [...refused.values()];
    // Names may take long to read; a hiccup needs none
    const isOutage = last - since >= patience.outageMs;
    const named = await Promise.all(
      interactions.map(async ({ interaction }): Promise<RefusedByName> => {
        const name = isOutage ? await nameOf(interaction).catch(() => undefined) : undefined;
        return { ...interaction, name };
      }),
    );
    const now = performance.now();
    await store.cameBack({ sinceAgo: now - since, lastAgo: now - last, refused: named }, patience);
    for (const { interaction } of interactions) refused.delete(interaction.id);
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
    refused(interaction) {
      if (refused.size >= maxRefused) return;
      const words = interaction.words?.slice(0, maxWords);
      refused.set(interaction.id, {
        interaction: { ...interaction, words },
        at: performance.now(),
      });
    },
    taken: (interactionId) => void refused.delete(interactionId),
    redisAwayMs: () => (redisAway ? performance.now() - redisAway.since : undefined),
    async report(store) {
      const began = performance.now();
      const reported = new Map(seen);
      let isPending: boolean;
      try {
        isPending = await store.report(sightings(began), patience);
      } catch (error) {
        const last = performance.now();
        redisAway = { since: redisAway?.since ?? began, last };
        throw error;
      }
      for (const [part, was] of reported) if (seen.get(part) === was) seen.delete(part);
      if (redisAway) {
        await handOver(redisAway, store);
        redisAway = undefined;
        return true;
      }
      for (const [id, { at }] of refused) if (at < began) refused.delete(id);
      return isPending;
    },
  };
}
