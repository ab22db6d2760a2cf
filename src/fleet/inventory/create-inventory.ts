import { within } from "../../deadline.ts";
import type { Log } from "../../log/log.ts";
import type { RedisClient } from "../../redis/redis.ts";
import { type Repeated, repeatHere } from "../../redis/repeat.ts";
import { plainForm } from "../../text/fold.ts";
import type { Compute } from "../compute/compute.ts";
import type { Inventory } from "./inventory.ts";
import { KnownFleet } from "./known-fleet.ts";
import { noteRead } from "./note-read.ts";
import { FleetRefresh } from "./refresh.ts";
import { CopyFreshness } from "./copy-freshness.ts";
import { Replica } from "./replica.ts";
import { createScopes } from "./scopes.ts";
import { Seeker } from "./seek.ts";

const lookInBackgroundMs = 2_000;
const didYouMean = 5;

export interface InventoryOptions {
  redis: RedisClient;
  /** Builds a key in Redis. All keys must be in one hash slot. */
  key: (...parts: string[]) => string;
  compute: Compute;
  log: Log;
  refreshMs: number;
  /** The time between the starts of two refreshes for people, however many ask. */
  againMs: number;
  /** How many calls to the service run at a time. */
  concurrency?: number;
}

/**
 * One process at a time reads the service and writes what changed to Redis. Every process keeps a
 * copy in memory and answers from it without waiting.
 */
export function createInventory(options: InventoryOptions): Inventory {
  const { redis, key, compute, log, refreshMs, againMs, concurrency = 8 } = options;
  const closing = new AbortController();
  const { signal } = closing;
  const known = new KnownFleet();
  const scopes = createScopes(known);
  const replica = new Replica({ redis, key, known, log });
  const refresh = new FleetRefresh({
    compute,
    known,
    replica,
    log,
    concurrency,
    refreshMs,
    againMs,
    signal,
  });
  const seeker = new Seeker({ compute, known, replica, refresh });
  const copy = new CopyFreshness({ redis, key, replica, refresh, log, signal });
  let looking: Repeated | undefined;

  /** The answers from all that is known or from what a scope sees, for people or for programs. */
  function answersFrom(
    part: () => Promise<KnownFleet>,
    { isForPrograms = false } = {},
  ): Omit<Inventory, "start" | "close"> {
    const isDue = isForPrograms ? () => copy.isDueForPrograms() : async () => true;
    // A program must not get older data than what Gatehouse itself has learned since.
    const catchUp = async () => {
      if (isForPrograms || !copy.isReady()) await copy.look();
    };
    const ready = async () => {
      if (isForPrograms) await copy.look();
      const seen = await part();
      await copy.requireReady();
      return seen;
    };
    return {
      async findVm(words, { onlyKnown = false } = {}) {
        const name = words.trim();
        await catchUp();
        const seen = await part();
        // An ID can't become ambiguous through what isn't known yet.
        if (!seen.vm(name)) await copy.requireReady();
        if (!onlyKnown) await seeker.seek("vm", name, { seen, isDue });
        return seen.findVm(name) ?? { unknown: onlyKnown ? [] : seen.suggestVms(name, didYouMean) };
      },
      async findProject(words, { onlyKnown = false } = {}) {
        const name = words.trim();
        const seen = await ready();
        if (!onlyKnown) await seeker.seek("project", name, { seen, isDue });
        const unknown = () => (onlyKnown ? [] : seen.suggestProjects(name, didYouMean));
        return seen.findProject(name) ?? { unknown: unknown() };
      },
      async matchVms(words) {
        const glob = words.trim();
        const plain = plainForm(glob);
        const seen = await ready();
        if (await isDue())
          await (plain.includes("/") ? seeker.seekIn(plain, seen) : refresh.upToDate());
        return seen.matchVms(glob);
      },
      async upToDate(patience) {
        await catchUp();
        if (await isDue()) await refresh.upToDate(patience);
      },
      async suggestVms(typed, most = 10) {
        await copy.freshen();
        return (await part()).suggestVms(typed.trim(), most);
      },
      async suggestProjects(typed, most = 10) {
        await copy.freshen();
        return (await part()).suggestProjects(typed.trim(), most);
      },
      vms: async (filter) => (await ready()).vms(filter),
      projects: async () => (await ready()).projects(),
      note: (read) => noteRead(read, { replica }),
      async state() {
        await (copy.isReady() ? copy.freshen() : copy.look());
        const seen = await part();
        const { refreshedAt, version, failed, unread, gaps } = replica.head();
        // Somebody who sees only a part isn't told names of other projects.
        const ofList = seen === known ? gaps : "some of it can't be read";
        const all = [...(gaps === "" ? [] : [`the list of projects: ${ofList}`]), ...seen.gaps()];
        // Three intervals are the normal age, plus a failed refresh, plus a long one. A time in the
        // future doesn't tell an age.
        const isOverdue =
          refreshedAt === undefined || Math.abs(Date.now() - refreshedAt) > 3 * refreshMs;
        return {
          refreshedAt,
          version,
          stale: failed || isOverdue || !replica.isReachable(),
          ...seen.count(),
          unread: unread.filter((name) => seen === known || seen.findProject(name) !== undefined),
          gaps: all.length > 0 ? all : undefined,
        };
      },
      seenIn: (scope) => ({
        ...inventory,
        ...answersFrom(async () => {
          const viewerScope = await scope();
          return viewerScope ? await scopes(viewerScope) : known;
        }),
      }),
      forPrograms: () => ({ ...inventory, ...answersFrom(part, { isForPrograms: true }) }),
      refresh: () => refresh.run(),
    };
  }

  const inventory: Inventory = {
    ...answersFrom(async () => known),
    start() {
      looking = repeatHere("inventory-look", lookInBackgroundMs, () => copy.lookOrRead(), log);
      void looking.now();
    },
    async close() {
      closing.abort();
      // A call to the service may outlast this. Nothing is written after it.
      const ended = Promise.allSettled([refresh.idle(), looking?.close()]);
      await within(1_000, ended, () => undefined);
    },
  };
  return inventory;
}
