import { type AuditEntry, parseRecord, readAudit } from "../../audit/read-audit.ts";
import { compareIds } from "../../audit/seal.ts";
import { recordedText } from "../../audit/render.ts";
import { Trail } from "../../audit/trail.ts";
import { messageOf } from "../../errors.ts";
import type { Inventory, Scope } from "../../fleet/inventory/inventory.ts";
import type { Log } from "../../log/log.ts";
import type { Keys, RedisClient } from "../../redis/redis.ts";
import type { ChangeCommand } from "../../registry/define.ts";
import { defineService } from "../../registry/service-key.ts";
import { sightOf } from "../permit/sight.ts";
import type { Journal } from "../request/journal.ts";
import type { Event, EventSight, EventSource, Topic } from "./event.ts";
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
export const eventsOf = defineService<Pick<Events, "since" | "of">>("events");

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

/** The events of one topic that a channel is told. */
interface ToldUnder {
  topic: Topic;
  scope: Scope | undefined;
  /** Globs of the targets that it is told about; undefined for all. */
  targets?: readonly string[];
}

/** The most records that a follower of the trail reads at a time. */
const followedAtOnce = 1_000;

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

  let trail: Trail | undefined;
  const openTrail = () => (trail ??= new Trail(redis, key));
  const underTopics = () => allSources().filter(({ topic }) => topic !== undefined);
  const kindsOf = (sources: readonly EventSource[]) => [
    ...new Set(sources.flatMap(({ recordKinds }) => recordKinds)),
  ];

  async function sightWithin(scope: Scope | undefined, targets: readonly string[] | undefined) {
    await inventory.upToDate();
    const sight = sightOf(inventory, scope, targets);
    const seesAll = scope === undefined && targets === undefined;
    return { vms: await sight.vms(), seesAll, only: sight.only };
  }

  /** The events of these records, and the names of the sources that could not be read. */
  async function tell(
    entries: readonly AuditEntry[],
    about: EventSight,
    sources: readonly EventSource[] = allSources(),
  ) {
    const unread: string[] = [];
    const read = sources.map(async ({ name, recordKinds, read: readSource }) => {
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
      const { entries, isCut } = await recordsSince(since, kindsOf(allSources()));
      const about = await sightWithin(scope, targets);
      return { ...(await tell(entries, about)), since, isCut };
    },

    /** Where somebody begins who follows the trail: the ID of its last record. */
    end: (): Promise<string> => openTrail().lastRecordId(),

    /**
     * The next records after this one, of the kinds that have a topic, oldest first; and the ID of
     * the last record that was read, undefined where there is none yet.
     */
    async recordsAfter(id: string) {
      const kinds = kindsOf(underTopics());
      const read = await openTrail().records({ after: id, most: followedAtOnce });
      const all = read.map((entry) => ({
        id: entry.id,
        at: Number(entry.at),
        record: parseRecord(entry),
      }));
      const entries = all.filter(({ record }) => kinds.includes(recordedText(record["what"])));
      return { entries, last: read.at(-1)?.id };
    },

    /** The records of the kinds that have a topic, from one time (ms) to another, oldest first. */
    async recordsBetween(since: number, until: number): Promise<readonly AuditEntry[]> {
      const { entries } = await recordsSince(since, kindsOf(underTopics()));
      return entries.filter(({ at }) => at <= until);
    },

    /** The events of one topic that these records, oldest first, tell somebody who sees a scope. */
    async underTopic(
      entries: readonly AuditEntry[],
      { topic, scope, targets }: ToldUnder,
    ): Promise<Pick<EventsSince, "events" | "unread">> {
      const sources = underTopics().filter((source) => source.topic === topic);
      const kinds = kindsOf(sources);
      if (!entries.some(({ record }) => kinds.includes(recordedText(record["what"]))))
        return { events: [], unread: [] };
      const about = await sightWithin(scope, targets);
      return tell(entries, { ...about, isExcerpt: true }, sources);
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
