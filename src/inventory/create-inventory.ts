import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { Compute, Vm } from "../compute/compute.ts";
import { within } from "../deadline.ts";
import { messageOf, UserError } from "../errors.ts";
import type { Log } from "../log/log.ts";
import type { RedisClient } from "../redis/redis.ts";
import type { Inventory, KnownVm, Seen } from "./inventory.ts";
import { type Rounds, startRounds } from "../redis/rounds.ts";
import { createKnown, type Known } from "./known.ts";
import { readEverything } from "./refresh.ts";
import { createScopes } from "./scopes.ts";
import { createReplica, type Replica } from "./replica.ts";
import { createSeeker } from "./seek.ts";
import { createInventoryStore } from "./store.ts";
import { contentsOf } from "./packing.ts";

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
  const { compute, log, refreshMs, concurrency = 8 } = options;
  const store = createInventoryStore(options.redis, options.key);
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
    if (!isReady()) await becomeReady(performance.now() + patienceMs);
    else if (!closing.signal.aborted && performance.now() - lookedAt >= lookEveryMs) void look();
  }

  async function becomeReady(until: number): Promise<void> {
    const goesOn = () => !closing.signal.aborted && !isReady() && performance.now() < until;
    while (goesOn()) {
      const pause = delay(50, undefined, { ref: false });
      await within(until - performance.now(), look(), () => undefined);
      if (!isReady()) await pause;
    }
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
    const token = randomUUID();
    if (!(await store.claim(token, leaseMs, force))) return false;
    const renewal = setInterval(() => {
      store.renew(token, leaseMs).catch(() => {}); // lost: the writes notice
    }, leaseMs / 3);
    const late = performance.now() + Math.max(60_000, lateAfterIntervals * refreshMs);
    let ended: Parameters<typeof store.release>[1];
    try {
      await replica.sync();
      const result = await readEverything({
        compute,
        known,
        replica,
        log,
        concurrency,
        token,
        signal: closing.signal,
        isLate: () => performance.now() > late,
      });
      if (result) {
        tellOnce(result.reason);
        // A round starts after three quarters of its interval at the earliest: it must not find the last one recent
        const recentMs = (result.failed ? Math.min(refreshMs, retryAfterMs) : refreshMs) * 0.75;
        ended = { ...result, refreshedAt: Date.now(), recentMs };
        replica.ended(ended);
        known.tidy();
        log.debug("inventory.refreshed", {
          ...known.count(),
          failed: result.failed,
          unread: result.unread.length,
        });
      }
      return ended?.failed === false;
    } finally {
      clearInterval(renewal);
      await store.release(token, ended).catch(() => {}); // the lease ends by itself
    }
  }

  /** One at a time in this process too. */
  function refreshOnce(force: boolean): Promise<boolean> {
    refreshing ??= refresh(force).finally(() => (refreshing = undefined));
    return refreshing;
  }

  const note = (seen: Seen) => takeNote(seen, known, replica);
  const scopes = createScopes(known);
  const { seek, seekMatching, upToDate } = createSeeker({
    compute,
    known,
    note,
    refreshMs,
    noteVms: (projectId, vms) =>
      replica.change(projectId, (now) => now && contentsOf(now.project, vms)),
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

/**
 * A VM of an unknown project waits for the next refresh: without the project's name it can't be shown. Never rejects: when
 * Redis is unavailable, this process knows it and the next refresh tells the others.
 */
async function takeNote(seen: Seen, known: Known, replica: Replica): Promise<void> {
  const { vm, project, goneVmId, goneProjectId } = seen;
  if (project) {
    await replica.change(project.id, (now) =>
      contentsOf({ ...now?.project, ...project }, now?.vms ?? []),
    );
  }
  if (vm) {
    const before = known.vm(vm.id);
    if (before && before.projectId !== vm.projectId) await dropVm(vm.id, before.projectId, replica);
    await replica.change(
      vm.projectId,
      (now) => now && contentsOf(now.project, merged(vm, now.vms)),
    );
  }
  if (goneVmId !== undefined) {
    const projectId = known.vm(goneVmId)?.projectId;
    if (projectId !== undefined) await dropVm(goneVmId, projectId, replica);
  }
  if (goneProjectId !== undefined) await replica.change(goneProjectId, () => undefined);
}

async function dropVm(vmId: string, projectId: string, replica: Replica): Promise<void> {
  const others = (vms: readonly KnownVm[]) => vms.filter(({ id }) => id !== vmId);
  await replica.change(projectId, (now) => now && contentsOf(now.project, others(now.vms)));
}

/** What a record omits stays as it was. */
function merged(vm: Vm, vms: readonly KnownVm[]): (KnownVm | Vm)[] {
  const before = vms.find(({ id }) => id === vm.id);
  return before ? vms.map((old) => (old === before ? { ...old, ...vm } : old)) : [...vms, vm];
}
