import { type AuditEntry, readAudit } from "../../audit/read-audit.ts";
import { compareIds } from "../../audit/seal.ts";
import { recordedText } from "../../audit/render.ts";
import { messageOf } from "../../errors.ts";
import type { Inventory, Scope } from "../../fleet/inventory/inventory.ts";
import type { Log } from "../../log/log.ts";
import type { Keys, RedisClient } from "../../redis/redis.ts";
import type { ChangeCommand } from "../../registry/define.ts";
import { defineService } from "../../registry/service-key.ts";
import { sightOf } from "../permit/sight.ts";
import type { Journal } from "../request/journal.ts";
import type { Event, EventSight, EventSource } from "./event.ts";
import { requestEvents } from "./request-events.ts";
import { statusEvents } from "./status-events.ts";
import { switchEvents } from "./switch-events.ts";

/** The events since a time, as far as the reader sees them. */
export interface EventsSince {
  /** In the order in which they happened. */
  events: readonly Event[];
  since: number;
  /** Only the newest records of that time were read. */
  isCut: boolean;
  /** The names of the sources that could not be read. */
  unread: readonly string[];
}

export type Events = ReturnType<typeof createEvents>;
export const eventsOf = defineService<Events>("events");

interface EventsOptions {
  redis: RedisClient;
  key: Keys;
  inventory: Inventory;
  store: Pick<Journal, "getMany">;
  changes: readonly ChangeCommand[];
  /** Returns the sources of features. */
  sources(): readonly EventSource[];
  personName(id: string): Promise<string>;
  log: Log;
}

/** More than a busy night has, and read in a fraction of a second. */
const mostRecords = 10_000;

/** Reads what happened from the audit trail, so that each event names the records that prove it. */
export function createEvents(options: EventsOptions) {
  const { redis, key, inventory, store, changes, personName, log } = options;

  async function recordsSince(at: number, recordKinds: readonly string[]) {
    const read = await readAudit({
      redis,
      key,
      recordKinds,
      after: at - 1,
      most: mostRecords,
    });
    return { entries: read.entries.toReversed(), isCut: read.isMore === true };
  }

  const own = [
    requestEvents({
      store,
      changes,
      recordsSince: async (at, recordKinds) => (await recordsSince(at, recordKinds)).entries,
    }),
    switchEvents(personName),
    statusEvents,
  ];
  // The sources of features come last, because they know more of the same event.
  const allSources = () => [...own, ...options.sources()];

  /** The events of these records, and the names of the sources that could not be read. */
  async function tell(entries: readonly AuditEntry[], about: EventSight) {
    const unread: string[] = [];
    const read = allSources().map(async ({ name, recordKinds, read: readSource }) => {
      const ofKinds = entries.filter(({ record }) =>
        recordKinds.includes(recordedText(record["what"])),
      );
      try {
        return await readSource(ofKinds, about);
      } catch (error) {
        log.warn("events.unread", { source: name, why: messageOf(error) });
        unread.push(name);
        return [];
      }
    });
    const all = (await Promise.all(read)).flat();
    const events = [...Map.groupBy(all, ({ id }) => id).values()].flatMap(merge);
    return { events: events.toSorted((a, b) => a.at - b.at), unread };
  }

  return {
    /** Everything since a time (ms) that a scope sees of the targets that globs name. */
    async since(
      since: number,
      scope: Scope | undefined,
      targets?: readonly string[],
    ): Promise<EventsSince> {
      const kinds = [...new Set(allSources().flatMap(({ recordKinds }) => recordKinds))];
      const { entries, isCut } = await recordsSince(since, kinds);
      await inventory.upToDate();
      const sight = sightOf(inventory, scope, targets);
      const about = {
        vms: await sight.vms(),
        seesAll: scope === undefined && targets === undefined,
        only: sight.only,
      };
      return { ...(await tell(entries, about)), since, isCut };
    },

    /** The events of these records, oldest first, for who may read the whole trail. */
    async of(entries: readonly AuditEntry[]): Promise<readonly Event[]> {
      const { vms, only } = sightOf(inventory, undefined);
      const about = { vms: await vms(), seesAll: true, only, isExcerpt: true };
      return (await tell(entries, about)).events;
    },
  };
}

/** One event of those with the same ID: the last knows most, and each has records of its own. */
function merge(same: readonly Event[]): readonly Event[] {
  const last = same.at(-1);
  if (!last) return [];
  const records = new Set(same.flatMap((event) => event.records));
  return [{ ...last, records: [...records].toSorted(compareIds) }];
}
