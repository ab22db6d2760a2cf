import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { Compute } from "../compute/compute.ts";
import { messageOf, UserError } from "../errors.ts";
import type { Log } from "../log.ts";
import type { RedisClient } from "../redis.ts";
import type { Inventory } from "./inventory.ts";
import { createKnown } from "./known.ts";
import { takeNote } from "./note.ts";
import { readEverything } from "./refresh.ts";
import { createReplica } from "./replica.ts";
import { createStore } from "./store.ts";

const leaseMs = 30_000;
/** How old an answer may be: Redis is asked at most this often, and nobody waits for it. */
const lookEveryMs = 500;
const lookInBackgroundMs = 2_000;
/** A slash command's answer is due in three seconds. */
const patienceMs = 2_000;
const didYouMean = 5;
/** After a failure the service is asked again sooner, but not at once. */
const retryAfterMs = 10_000;
/** A refresh that takes this many times its interval leaves the rest unread; less than a minute is never too long. */
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
  /** Milliseconds since the epoch, for `refreshedAt` and what counts as stale. */
  now?: () => number;
}

/**
 * The inventory of all processes. One of them, whoever holds the lease, reads the service and writes what changed to
 * Redis; each keeps a copy in memory and answers from it, so that a lookup waits for nothing once the copy is there.
 */
export function createInventory(options: InventoryOptions): Inventory {
  const { compute, log, refreshMs, concurrency = 8, now = Date.now } = options;
  const store = createStore(options.redis, options.key);
  const known = createKnown();
  const replica = createReplica({ store, known, log });
  const timers = new Set<NodeJS.Timeout>();
  let lookedAt = -Infinity;
  const closing = new AbortController();
  let refreshing: Promise<boolean> | undefined;

  const isReady = () => replica.head().refreshedAt !== undefined;

  async function look(): Promise<void> {
    lookedAt = performance.now();
    try {
      await replica.sync();
    } catch (error) {
      log.debug("inventory.redis-away", { reason: messageOf(error) });
    }
  }

  /** Takes over what others wrote, a moment later. Only who knows nothing at all yet waits, and not for long. */
  async function freshen(): Promise<void> {
    if (!isReady()) await becomeReady(performance.now() + patienceMs);
    else if (!closing.signal.aborted && performance.now() - lookedAt >= lookEveryMs) void look();
  }

  async function becomeReady(until: number): Promise<void> {
    const goesOn = () => !closing.signal.aborted && !isReady() && performance.now() < until;
    while (goesOn()) {
      const pause = delay(50, undefined, { ref: false });
      // oxlint-disable-next-line no-await-in-loop -- looks again until it is there
      await Promise.race([
        look(),
        delay(Math.max(0, until - performance.now()), undefined, { ref: false }),
      ]);
      // oxlint-disable-next-line no-await-in-loop
      if (!isReady()) await pause;
    }
  }

  async function knowing(): Promise<typeof known> {
    await freshen();
    if (isReady()) return known;
    throw new UserError(
      "I don't know the VMs yet: I am still reading the list from the service.",
      "Try again in a moment. If this stays, `/gatehouse status` says what is wrong.",
    );
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
        const recentMs = (result.failed ? Math.min(refreshMs, retryAfterMs) : refreshMs) * 0.8;
        ended = { ...result, refreshedAt: now(), recentMs };
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

  function every(ms: number, work: () => Promise<unknown>): void {
    const again = async (): Promise<void> => {
      await work();
      if (closing.signal.aborted) return;
      const timer = setTimeout(
        () => {
          timers.delete(timer);
          void again();
        },
        ms * (0.9 + Math.random() * 0.2),
      );
      timers.add(timer.unref());
    };
    void again();
  }

  /** One at a time in this process too. */
  function refreshOnce(force: boolean): Promise<boolean> {
    refreshing ??= refresh(force).finally(() => (refreshing = undefined));
    return refreshing;
  }

  return {
    async findVm(words) {
      const name = words.trim();
      if (!isReady()) await look();
      const byId = known.vm(name); // an id can't become ambiguous by what is not known yet
      if (byId) {
        void freshen();
        return { found: byId };
      }
      const all = await knowing();
      return all.findVm(name) ?? { unknown: all.suggestVms(name, didYouMean) };
    },
    async findProject(words) {
      const all = await knowing();
      return (
        all.findProject(words.trim()) ?? { unknown: all.suggestProjects(words.trim(), didYouMean) }
      );
    },
    matchVms: async (glob) => (await knowing()).matchVms(glob.trim()),
    async suggestVms(typed, most = 10) {
      await freshen();
      return known.suggestVms(typed.trim(), most);
    },
    async suggestProjects(typed, most = 10) {
      await freshen();
      return known.suggestProjects(typed.trim(), most);
    },
    vms: async (filter) => (await knowing()).vms(filter),
    projects: async () => (await knowing()).projects(),
    note: (seen) => takeNote(seen, known, replica),
    async state() {
      if (isReady()) await freshen();
      else await look();
      const { refreshedAt, failed, unread } = replica.head();
      // Three intervals: one is the normal age, one a refresh that fails, one the time a long refresh takes
      const isOverdue = refreshedAt === undefined || now() - refreshedAt > 3 * refreshMs;
      return {
        refreshedAt,
        stale: failed || isOverdue || !replica.isReachable(),
        ...known.count(),
        unread,
      };
    },
    refresh: () => refreshOnce(true),
    start() {
      every(Math.min(refreshMs, retryAfterMs), () =>
        refreshOnce(false).catch((error: unknown) =>
          log.warn("inventory.refresh-broke", { reason: messageOf(error) }),
        ),
      );
      every(lookInBackgroundMs, look);
    },
    async close() {
      closing.abort();
      for (const timer of timers) clearTimeout(timer);
      // A call to the service may take long to end: what comes after it no longer writes
      await Promise.race([refreshing?.catch(() => false), delay(1_000, undefined, { ref: false })]);
    },
  };
}
