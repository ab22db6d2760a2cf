import type { OutageTiming, Part, RefusedInteraction, OutageStore, Sighting } from "./outages.ts";

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

interface Seen {
  failed?: { first: number; last: number } | undefined;
  answeredAt?: number | undefined;
}

export function createDependencyMonitor(
  patience: OutageTiming,
  nameOf: (interaction: RefusedInteraction) => Promise<string | undefined>,
): Watch {
  const seen = new Map<Part, Seen>();
  const refused = new Map<string, { interaction: RefusedInteraction; at: number }>();

  function failed(part: Part, first: number, last = first): void {
    const { failed: before, answeredAt } = seen.get(part) ?? {};
    // An outage begins with its first failure, however late that is reported; an answer has ended what failed before
    const isSame = before && !(answeredAt !== undefined && answeredAt > before.last);
    seen.set(part, { failed: { first: isSame ? before.first : first, last }, answeredAt });
  }

  const sightingOf = (part: Part, was: Seen | undefined, now: number): Sighting => ({
    part,
    failedAgo: was?.failed && { first: now - was.failed.first, last: now - was.failed.last },
    answeredAgo: was?.answeredAt === undefined ? undefined : now - was.answeredAt,
  });

  /** What had to be refused until then belongs to the outage of Redis; where there is none, that was a hiccup. */
  async function handOver(store: OutageStore, outage: string | undefined, until: number) {
    const all = [...refused.values()].filter(({ at }) => at < until);
    if (all.length > 0 && outage !== undefined) {
      const named = all.map(async ({ interaction }) => ({
        ...interaction,
        name: await nameOf(interaction).catch(() => undefined),
      }));
      await store.keepRefused(outage, await Promise.all(named));
    }
    for (const { interaction } of all) refused.delete(interaction.id);
  }

  return {
    saw(part, what) {
      const now = performance.now();
      if (what === "silence") failed(part, now);
      if (what === "answer") seen.set(part, { ...seen.get(part), answeredAt: now });
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
    redisAwayMs() {
      const first = seen.get("redis")?.failed?.first;
      return first === undefined ? undefined : performance.now() - first;
    },
    async report(store) {
      const began = performance.now();
      // That Redis takes a report is its answer
      const reported = new Map(seen);
      reported.set("redis", { ...seen.get("redis"), answeredAt: began });
      try {
        const told = [...reported].map(async ([part, was]) => {
          const outage = await store.saw(sightingOf(part, was, began), patience);
          return [part, outage] as const;
        });
        const outages = new Map(await Promise.all(told));
        await handOver(store, outages.get("redis"), began);
      } catch (error) {
        failed("redis", began, performance.now());
        throw error;
      }
      for (const [part, was] of reported)
        if (part === "redis" || seen.get(part) === was) seen.delete(part);
      return store.isPending();
    },
  };
}
