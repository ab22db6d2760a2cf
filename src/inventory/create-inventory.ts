import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { Compute, Vm } from "../compute/compute.ts";
import { within } from "../deadline.ts";
import { messageOf, UserError } from "../errors.ts";
import type { Log } from "../log/log.ts";
import type { RedisClient } from "../redis/redis.ts";
import { createLeases } from "../redis/lease.ts";
import { type Rounds, startRounds } from "../redis/rounds.ts";
import type { Inventory, KnownVm, Seen } from "./inventory.ts";
import { contentsOf, createKnown, createScopes, type Known } from "./known.ts";
import { readEverything } from "./refresh.ts";
import { createReplica } from "./replica.ts";
import { createSeeker } from "./seek.ts";
import { createInventoryStore } from "./store.ts";

const leaseMs = 30_000;
/** Redis is read at most this often, in the background. */
const lookEveryMs = 500;
const lookInBackgroundMs = 2_000;
/** A slash command's answer is due in three seconds. */
const patienceMs = 2_000;
const didYouMean = 5;
/** After a failure the service is read again sooner, but not at once. */
const retryAfterMs = 10_000;
/** A refresh that takes this many intervals, and at least a minute, leaves the rest unread. */
const lateAfterIntervals = 5;

const pause = (ms: number) => delay(Math.max(0, ms), undefined, { ref: false });

export interface InventoryOptions {
  redis: RedisClient;
  /** Names a key in Redis; all must be in one hash slot. */
  key: (...parts: string[]) => string;
  compute: Compute;
  log: Log;
  refreshMs: number;
  /** Calls to the service at a time. */
  concurrency?: number;
}

/**
 * The process with the lease reads the service and writes what changed to Redis; every process keeps a copy in memory and
 * answers from it without waiting.
 */
export function createInventory(options: InventoryOptions): Inventory {
  const { redis, key, compute, log, refreshMs, concurrency = 8 } = options;
  const store = createInventoryStore(redis, key);
  const leases = createLeases(redis);
  const lease = key("inventory", "lease");
  /** There for a while after each refresh: the usual ones skip then. */
  const recent = key("inventory", "recent");
  const known = createKnown();
  const replica = createReplica({ store, known, log });
  const rounds: Rounds[] = [];
  let lookedAt = -Infinity;
  const closing = new AbortController();
  let refreshing: Promise<boolean> | undefined;
  let failing: string | undefined;

  const isReady = () => replica.head().refreshedAt !== undefined;

  async function look(): Promise<void> {
    lookedAt = performance.now();
    try {
      await replica.sync();
    } catch (error) {
      log.debug("inventory.redis-away", { reason: messageOf(error) });
    }
  }

  /** Syncs in the background. Only the first sync is waited for, and briefly. */
  async function freshen(): Promise<void> {
    const isOpen = () => !closing.signal.aborted;
    if (!isReady()) {
      const until = performance.now() + patienceMs;
      while (isOpen() && !isReady() && performance.now() < until)
        await Promise.race([Promise.all([look(), pause(50)]), pause(until - performance.now())]);
    } else if (isOpen() && performance.now() - lookedAt >= lookEveryMs) void look();
  }

  async function knowing<T>(what: T): Promise<T> {
    await freshen();
    if (isReady()) return what;
    throw new UserError(
      "The VMs aren't known yet: Gatehouse is still reading the list from the compute service.",
      "Try again in a moment. If this continues, `/gatehouse status` says what is wrong.",
    );
  }

  /** It is tried every ten seconds: one line when it fails, for another reason, or works again. */
  function tellOnce(reason: string | undefined): void {
    if (reason === failing) return;
    failing = reason;
    if (reason === undefined) log.info("inventory.list-read-again");
    else log.warn("inventory.list-failed", { reason });
  }

  async function refresh(force: boolean): Promise<boolean> {
    if (!force && (await redis.exists(recent)) === 1) return false;
    const token = randomUUID();
    // Only spares the service: refreshes of two processes at a time are harmless
    if (!(await leases.take(lease, token, leaseMs))) return false;
    const renewal = setInterval(
      () => void leases.extend(lease, token, leaseMs).catch(() => {}),
      leaseMs / 3,
    );
    try {
      return await readAll();
    } finally {
      clearInterval(renewal);
      await leases.release(lease, token).catch(() => {}); // it ends by itself
    }
  }

  async function readAll(): Promise<boolean> {
    await replica.sync();
    const late = performance.now() + Math.max(60_000, lateAfterIntervals * refreshMs);
    const result = await readEverything({
      compute,
      known,
      replica,
      log,
      concurrency,
      signal: closing.signal,
      isLate: () => performance.now() > late,
    });
    if (!result) return false;
    const { failed, reason, unread } = result;
    tellOnce(reason);
    if (failed) await store.failed();
    else if (!(await replica.complete(Date.now(), unread))) return false;
    // A round starts after three quarters of its interval at the earliest: it must not find the last one recent
    const recentMs = (failed ? Math.min(refreshMs, retryAfterMs) : refreshMs) * 0.75;
    await redis.set(recent, "1", "PX", Math.ceil(recentMs));
    await replica.sync();
    log.debug("inventory.refreshed", { ...known.count(), failed, unread: unread.length });
    return !failed;
  }

  /** One at a time in this process too. */
  function refreshOnce(force: boolean): Promise<boolean> {
    refreshing ??= refresh(force).finally(() => (refreshing = undefined));
    return refreshing;
  }

  /** Never rejects: when Redis is unavailable, this process knows it and the next refresh tells the others. */
  async function note({ vm, project, goneProjectId }: Seen): Promise<void> {
    if (project)
      await replica.change(project.id, (now) =>
        contentsOf({ ...now?.project, ...project }, now?.vms ?? []),
      );
    // A VM of an unknown project waits for the next refresh: without the project's name it can't be shown
    if (vm)
      await replica.change(
        vm.projectId,
        (now) => now && contentsOf(now.project, merged(vm, now.vms)),
      );
    if (goneProjectId !== undefined) await replica.change(goneProjectId, () => undefined);
  }

  const scopes = createScopes(known);
  const { seek, seekMatching, upToDate } = createSeeker({
    compute,
    known,
    replica,
    note,
    refreshMs,
    async refresh() {
      await refreshing?.catch(() => undefined);
      return refreshOnce(true);
    },
  });

  /** What is answered, from all that is known or from what a scope sees of it. */
  function answersFrom(part: () => Promise<Known>): Omit<Inventory, "start" | "close"> {
    const ready = async () => knowing(await part());
    return {
      async findVm(words, { onlyKnown = false } = {}) {
        const name = words.trim();
        if (!isReady()) await look();
        const seen = await part();
        const byId = seen.vm(name); // an id can't become ambiguous by what is not known yet
        if (byId) {
          void freshen();
          return { found: byId };
        }
        await knowing(seen);
        const isKnown = () => seen.findVm(name) !== undefined;
        if (!onlyKnown && !isKnown()) await seek("vm", name, isKnown, seen);
        return seen.findVm(name) ?? { unknown: seen.suggestVms(name, didYouMean) };
      },
      async findProject(words, { onlyKnown = false } = {}) {
        const name = words.trim();
        const seen = await ready();
        const isKnown = () => seen.findProject(name) !== undefined;
        if (!onlyKnown && !isKnown()) await seek("project", name, isKnown, seen);
        return seen.findProject(name) ?? { unknown: seen.suggestProjects(name, didYouMean) };
      },
      async matchVms(glob) {
        const seen = await ready();
        await seekMatching(glob.trim(), seen);
        return seen.matchVms(glob.trim());
      },
      upToDate,
      async suggestVms(typed, most = 10) {
        await freshen();
        return (await part()).suggestVms(typed.trim(), most);
      },
      async suggestProjects(typed, most = 10) {
        await freshen();
        return (await part()).suggestProjects(typed.trim(), most);
      },
      vms: async (filter) => (await ready()).vms(filter),
      projects: async () => (await ready()).projects(),
      note,
      async state() {
        if (isReady()) await freshen();
        else await look();
        const seen = await part();
        const { refreshedAt, failed, unread } = replica.head();
        // Three intervals: the normal age, a failed refresh, and the time of a long one
        const isOverdue = refreshedAt === undefined || Date.now() - refreshedAt > 3 * refreshMs;
        const isSeen = (name: string) => seen === known || seen.findProject(name) !== undefined;
        return {
          refreshedAt,
          stale: failed || isOverdue || !replica.isReachable(),
          ...seen.count(),
          unread: unread.filter(isSeen),
        };
      },
      seenIn(scope) {
        const inScope = async () => {
          const one = await scope();
          return one ? scopes(one) : known;
        };
        return { ...inventory, ...answersFrom(inScope) };
      },
      refresh: () => refreshOnce(true),
    };
  }

  const inventory: Inventory = {
    ...answersFrom(async () => known),
    start() {
      const tryEveryMs = Math.min(refreshMs, retryAfterMs);
      rounds.push(
        startRounds("inventory-refresh", tryEveryMs, () => refreshOnce(false), log),
        startRounds("inventory-look", lookInBackgroundMs, look, log),
      );
      for (const round of rounds) void round.now();
    },
    async close() {
      closing.abort();
      // A call to the service may outlast this; nothing is written after it
      const ended = Promise.allSettled([refreshing, ...rounds.map((round) => round.close())]);
      await within(1_000, ended, () => undefined);
    },
  };
  return inventory;
}

/** What a record omits stays as it was. */
function merged(vm: Vm, vms: readonly KnownVm[]): (KnownVm | Vm)[] {
  const before = vms.find(({ id }) => id === vm.id);
  return before ? vms.map((old) => (old === before ? { ...old, ...vm } : old)) : [...vms, vm];
}
