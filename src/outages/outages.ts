import { createDueList } from "../redis/due-list.ts";
import { type Keys, defineScript, type RedisClient } from "../redis/redis.ts";
import * as scripts from "./scripts.ts";

/** The dependencies. */
export const parts = ["slack", "redis", "service"] as const;
export type Part = (typeof parts)[number];

export const partNames: Readonly<Record<Part, string>> = {
  slack: "Slack",
  redis: "Redis",
  service: "The compute service",
};

/** A time in which one part was unavailable (Redis, ms). */
interface Outage {
  /** `slack-1763600000000` */
  id: string;
  part: Part;
  since: number;
  /** Undefined while it lasts. */
  until: number | undefined;
}

export type Past = Outage & { until: number };

/** An interaction refused while Redis was unavailable: nothing was done. */
export interface RefusedInteraction {
  id: string;
  channelId: string;
  userId: string;
  teamId: string;
  /** As typed; undefined for a button or form. */
  words?: string | undefined;
}

export type RefusedByName = RefusedInteraction & { name?: string | undefined };

/** All derived from one setting (ms). */
export interface OutageTiming {
  /** Anything shorter is a hiccup. */
  outageMs: number;
  /** An outage is over after this time without a failure in any process. */
  quietMs: number;
  /** How long a recap waits for its requests. */
  endsMs: number;
}

export function outageTimingFor(outageMs: number): OutageTiming {
  return { outageMs, quietMs: outageMs / 3, endsMs: 6 * outageMs };
}

/** How long ago this process saw a call of a part fail or answered (ms), if at all. */
export interface Sighting {
  part: Part;
  failedAgo: number | undefined;
  answeredAgo: number | undefined;
}

/** Retries come within seconds: failures further apart are separate. */
const gapMs = 60_000;
/** Failures that a process of an older version reported don't say that answers are wanted. */
const answersEveryMs = 60_000;
const keptMs = 24 * 3600_000;

/** Every call rejects while Redis is unavailable. */
export type OutageStore = ReturnType<typeof createOutageStore>;

export function createOutageStore(redis: RedisClient, key: Keys) {
  const runReport = defineScript(redis, "gatehouseOutageReport", scripts.report);
  const runCameBack = defineScript(redis, "gatehouseOutageCameBack", scripts.cameBack);
  const watch = key("outages", "watch");
  const records = key("outages", "records");
  const due = key("outages", "due");
  const failing = key("outages", "failing");
  const dueList = createDueList(redis, due);
  const refusedKey = (id: string) => key("outages", "refused", id);
  let answersAt = -Infinity;

  return {
    /**
     * Resolves with whether recaps are pending, due or not. It costs one command while nobody's calls fail: answers are told
     * only where a failure is on record.
     */
    async report(
      sightings: readonly Sighting[],
      { outageMs, quietMs }: { outageMs: number; quietMs: number },
    ): Promise<boolean> {
      const isNews =
        sightings.some(({ failedAgo }) => failedAgo !== undefined) ||
        (sightings.length > 0 && performance.now() >= answersAt);
      // Counts 2 for pending recaps
      const signs = isNews ? 1 : await redis.exists(due, due, failing);
      if (sightings.length === 0 || signs % 2 === 0) return signs > 1;
      answersAt = performance.now() + answersEveryMs;
      const seen = sightings.flatMap(({ part, failedAgo, answeredAgo }) => [
        part,
        failedAgo === undefined ? "" : Math.round(failedAgo),
        answeredAgo === undefined ? "" : Math.round(answeredAgo),
      ]);
      const limits = [outageMs, Math.round(quietMs), gapMs];
      return (await runReport([watch, records, due, failing], [...limits, ...seen])) === 1;
    },

    /** Redis was unavailable to this process. Returns the outage's ID; undefined for a hiccup. */
    async cameBack(
      away: { sinceAgo: number; lastAgo: number; refused: readonly RefusedByName[] },
      { outageMs, quietMs }: { outageMs: number; quietMs: number },
    ): Promise<string | undefined> {
      const id = await runCameBack(
        [watch, records, due],
        [
          Math.round(away.sinceAgo),
          Math.round(away.lastAgo),
          outageMs,
          Math.round(quietMs),
          refusedKey(""),
          keptMs,
          ...away.refused.flatMap((interaction) => [interaction.id, JSON.stringify(interaction)]),
        ],
      );
      return typeof id === "string" && id !== "" ? id : undefined;
    },

    async state(): Promise<{ open: Outage[]; last: Past | undefined }> {
      const fields = await redis.hgetall(watch);
      const open = parts.flatMap((part): Outage[] => {
        const id = fields[`${part}:open`];
        return id ? [{ id, part, since: Number(fields[`${part}:since`]), until: undefined }] : [];
      });
      return { open, last: fields["last"] ? (JSON.parse(fields["last"]) as Past) : undefined };
    },

    /** IDs of outages that are over, claimed under a visibility timeout. */
    takeDue: dueList.take,
    lookLater: dueList.later,
    async get(id: string): Promise<Past | undefined> {
      const text = await redis.hget(records, id);
      return text ? (JSON.parse(text) as Past) : undefined;
    },
    async refused(id: string): Promise<RefusedByName[]> {
      const texts = await redis.hvals(refusedKey(id));
      return texts.map((text) => JSON.parse(text) as RefusedByName);
    },
    async forget(id: string): Promise<void> {
      await redis.multi().zrem(due, id).hdel(records, id).del(refusedKey(id)).exec();
    },
  };
}
