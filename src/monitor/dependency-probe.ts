/** The dependencies by their names for people. */
export const partNames = {
  slack: "Slack",
  redis: "Redis",
  service: "The compute service",
} as const;
export type Part = keyof typeof partNames;
export const parts = Object.keys(partNames) as readonly Part[];

/** An interaction that was refused while Redis was unavailable, so that nothing was done. */
export interface RefusedInteraction {
  id: string;
  channelId: string;
  userId: string;
  teamId: string;
  /** The words as typed. Undefined for a button or form. */
  words?: string | undefined;
  /** The person's name, if Slack says it. */
  name?: string | undefined;
  /** True when it isn't known whether Redis stored it. In that case it ran once Redis was back. */
  mayRun?: boolean | undefined;
}

/**
 * A report of this process about a dependency: how long ago calls failed without an answer in
 * between, and how long ago one was answered (ms).
 */
export interface Sighting {
  part: Part;
  failedAgo?: { first: number; last: number } | undefined;
  answeredAgo?: number | undefined;
}

/** Combines what all processes saw (`createOutageStore`). */
export interface Outages {
  /**
   * Resolves with the ID of the dependency's outage, if one is going on or ends with this report.
   */
  addSighting(sighting: Sighting, outageMs: number): Promise<string | undefined>;
  /** Stores what a process had to refuse during this outage, each interaction once. */
  keepRefused(id: string, refused: readonly RefusedInteraction[]): Promise<void>;
}

/** Limits of what is kept in memory while Redis is unavailable. */
const maxRefused = 100;
const maxWords = 300;

export type DependencyProbe = ReturnType<typeof createDependencyProbe>;

/**
 * Collects what this process sees of its dependencies in memory, until `report` saves it in Redis.
 * Times are monotonic. A failure shorter than `outageMs` doesn't count as an outage.
 */
export function createDependencyProbe(
  outageMs: number,
  nameOf: (interaction: RefusedInteraction) => Promise<string | undefined>,
) {
  const seen = new Map<Part, { failed?: { first: number; last: number }; answeredAt?: number }>();
  const refused = new Map<string, RefusedInteraction>();
  /**
   * The dependencies that had an outage at the last report. They are reported again even if nothing calls them, because an outage
   * ends only after a quiet time.
   */
  let away: readonly Part[] = [];

  function failed(part: Part, first: number, last = first): void {
    const { failed: before, answeredAt = 0 } = seen.get(part) ?? {};
    // An outage begins with its first failure, however late that is reported. An answer ends it.
    const isSame = before && answeredAt <= before.last;
    const failures = { first: isSame ? before.first : first, last };
    seen.set(part, { ...seen.get(part), failed: failures });
  }

  /**
   * Interactions that are still refused belong to the outage of Redis. Without an outage they are
   * dropped.
   */
  async function handOver(those: readonly RefusedInteraction[], store: Outages, to?: string) {
    const named = those
      .filter(({ id }) => refused.has(id))
      .map(async (interaction) => ({
        ...interaction,
        name: await nameOf(interaction).catch(() => undefined),
      }));
    if (to !== undefined && named.length > 0) await store.keepRefused(to, await Promise.all(named));
    for (const { id } of those) refused.delete(id);
  }

  return {
    /** Any answer counts as `answer`. Undefined stands for a call that shows neither. */
    countCall(part: Exclude<Part, "redis">, sign: "answer" | "silence" | undefined): void {
      const now = performance.now();
      if (sign === "silence") failed(part, now);
      if (sign === "answer") seen.set(part, { ...seen.get(part), answeredAt: now });
    },
    /** Records an interaction that Redis didn't take or didn't confirm. The person was told so. */
    refused(interaction: RefusedInteraction): void {
      if (refused.size >= maxRefused) return;
      const words = interaction.words?.slice(0, maxWords);
      refused.set(interaction.id, { ...interaction, words });
    },
    /** Forgets an interaction that was stored after all, because Slack redelivers events. */
    taken: (interactionId: string): void => void refused.delete(interactionId),
    /**
     * How long Redis has been unavailable to this process (ms). Undefined while it is available.
     */
    redisAwayMs(): number | undefined {
      const first = seen.get("redis")?.failed?.first;
      return first === undefined ? undefined : performance.now() - first;
    },
    /** Saves everything in Redis. Rejects while Redis is unavailable; nothing is lost then. */
    async report(store: Outages): Promise<void> {
      const began = performance.now();
      const until = [...refused.values()];
      const reported: typeof seen = new Map(away.map((part) => [part, {}]));
      for (const [part, was] of seen) reported.set(part, was);
      // When Redis takes the report, that counts as its answer.
      reported.set("redis", { ...seen.get("redis"), answeredAt: began });
      try {
        const outageIds = [...reported].map(async ([part, { failed: was, answeredAt }]) => {
          const failedAgo = was && { first: began - was.first, last: began - was.last };
          const answeredAgo = answeredAt && began - answeredAt;
          return [
            part,
            await store.addSighting({ part, failedAgo, answeredAgo }, outageMs),
          ] as const;
        });
        const outages = new Map(await Promise.all(outageIds));
        away = [...outages].flatMap(([part, id]) => (id === undefined ? [] : [part]));
        await handOver(until, store, outages.get("redis"));
      } catch (error) {
        failed("redis", began, performance.now());
        throw error;
      }
      for (const [part, was] of reported)
        if (part === "redis" || seen.get(part) === was) seen.delete(part);
    },
  };
}
