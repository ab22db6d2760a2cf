import { defineScript, type Keys, type RedisClient } from "../redis.ts";
import * as requestScripts from "../requests/scripts.ts";
import { type Outage, type Part, parts, type Past, type RefusedByName } from "./outage.ts";
import * as scripts from "./scripts.ts";

/** How long ago one process saw calls of a part fail or be answered (ms); undefined where it saw none. */
export interface Sighting {
  part: Part;
  failedAgo: number | undefined;
  answeredAgo: number | undefined;
}

/** What failed is tried again within seconds: failures further apart than this tell nothing about the time between them. */
const gapMs = 60_000;
const keptMs = 24 * 3600_000;

/** Outages in Redis. Every call rejects when Redis is away. */
export type OutageStore = ReturnType<typeof createOutageStore>;

export function createOutageStore(redis: RedisClient, key: Keys) {
  const runReport = defineScript(redis, "gatehouseOutageReport", scripts.report);
  const runCameBack = defineScript(redis, "gatehouseOutageCameBack", scripts.cameBack);
  const runTakeDue = defineScript(redis, "gatehouseTakeOutages", requestScripts.takeDue);
  const runLater = defineScript(redis, "gatehouseOutageLater", requestScripts.deliverLater);
  const [watch, records, due] = [
    key("outages", "watch"),
    key("outages", "records"),
    key("outages", "due"),
  ];
  const refusedKey = (id: string) => key("outages", "refused", id);

  return {
    async report(
      sightings: readonly Sighting[],
      { outageMs, quietMs }: { outageMs: number; quietMs: number },
    ): Promise<void> {
      const seen = sightings.flatMap(({ part, failedAgo, answeredAgo }) => [
        part,
        failedAgo === undefined ? "" : Math.round(failedAgo),
        answeredAgo === undefined ? "" : Math.round(answeredAgo),
      ]);
      await runReport([watch, records, due], [outageMs, Math.round(quietMs), gapMs, ...seen]);
    },

    /** Redis was away for us; what we had to refuse goes with it. The outage's id, or undefined when it was a hiccup. */
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
          ...away.refused.flatMap((ask) => [ask.id, JSON.stringify(ask)]),
        ],
      );
      return typeof id === "string" && id !== "" ? id : undefined;
    },

    /** What is away now, and what was away last. */
    async state(): Promise<{ open: Outage[]; last: Past | undefined }> {
      const fields = await redis.hgetall(watch);
      const open = parts.flatMap((part): Outage[] => {
        const id = fields[`${part}:open`];
        return id ? [{ id, part, since: Number(fields[`${part}:since`]), until: undefined }] : [];
      });
      return { open, last: fields["last"] ? (JSON.parse(fields["last"]) as Past) : undefined };
    },

    /** Ids of outages that are over and to be told of, out of sight of other processes for `hiddenMs`. */
    takeDue: async (most: number, hiddenMs: number): Promise<string[]> =>
      (await runTakeDue([due], [most, hiddenMs])) as string[],
    async lookLater(id: string, inMs: number): Promise<void> {
      await runLater([due], [id, Math.ceil(inMs)]);
    },
    async get(id: string): Promise<Past | undefined> {
      const text = await redis.hget(records, id);
      return text ? (JSON.parse(text) as Past) : undefined;
    },
    async refused(id: string): Promise<RefusedByName[]> {
      const texts = await redis.hvals(refusedKey(id));
      return texts.map((text) => JSON.parse(text) as RefusedByName);
    },
    /** Everything of it has been told. */
    async forget(id: string): Promise<void> {
      await redis.multi().zrem(due, id).hdel(records, id).del(refusedKey(id)).exec();
    },
  };
}
