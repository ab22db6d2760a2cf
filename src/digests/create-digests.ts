import { messageOf } from "../errors.ts";
import type { Inventory, KnownVm } from "../inventory/inventory.ts";
import type { Snapshots } from "../inventory/snapshots.ts";
import type { Log } from "../log/log.ts";
import type { Policy } from "../config/policy-file.ts";
import type { Keys, RedisClient } from "../redis/redis.ts";
import { createUnverifiedRecords } from "./unverified-watch.ts";
import { createDriftRecords } from "./drift-monitor.ts";
import type { Facts, RequestSource } from "./facts.ts";
import { itemsOf } from "./items.ts";
import { lineOf } from "./line-buttons.ts";
import { type Digest, renderChanges, renderDigest, renderHandover } from "./render-digest.ts";
import { createSchedules } from "./schedules.ts";
import { createSlotRecords, localWords, type Slot } from "./slots.ts";
import { createStatusRecords } from "./status-monitor.ts";
import { isTransitional } from "../compute/compute.ts";

export type Digests = ReturnType<typeof createDigests>;

interface DigestsOptions {
  redis: RedisClient;
  key: Keys;
  /** Read at each use: it may change. */
  readonly policy: Pick<Policy, "digests" | "attestation" | "timing">;
  inventory: Pick<Inventory, "vms" | "state" | "upToDate">;
  snapshots: Pick<Snapshots, "newest">;
  requests: RequestSource;
  log: Log;
  now(): number;
  /** Lease of a slot while its digest is built (ms). */
  leaseMs?: number;
}

const dayMs = 24 * 3600_000;
/** How long a scheduled digest waits for it. */
const refreshMs = 15_000;
/** Where gatehouse.yml says nothing of snapshots. */
const snapshotOldMs = 7 * dayMs;
/** Up to this late counts as on time. */
const onTimeMs = 5 * 60_000;
/** Longer than building takes, short enough to retry soon after a process dies. */
const usualLeaseMs = 60_000;

export function createDigests(options: DigestsOptions) {
  const { redis, key, inventory, snapshots, requests, log, now } = options;
  const schedules = createSchedules(redis, key, () => options.policy.digests);
  const snoozes = createSnoozes(redis, key);
  const slots = createSlotRecords(redis, key, options.leaseMs ?? usualLeaseMs);
  const drift = createDriftRecords(redis, key);
  const unverified = createUnverifiedRecords(redis, key);
  const statuses = createStatusRecords(redis, key);

  /** A part that can't be read is named; the others are still reported. */
  async function facts(channel: string, isScheduled = false): Promise<Facts> {
    // No one waits for a scheduled digest: even a large fleet is read for it
    await inventory.upToDate(isScheduled ? { patience: refreshMs, evenLarge: true } : {});
    const since = (await slots.lastTold(channel)) ?? now() - dayMs;
    const readAt = now();
    const unread: string[] = [];
    async function read<T>(part: string, reading: Promise<T>): Promise<T | undefined> {
      try {
        return await reading;
      } catch (error) {
        log.warn("digest.unread", { part, why: messageOf(error) });
        unread.push(part);
        return undefined;
      }
    }

    const [state, vms, failing, ending, open, ended, reviews, newestSnapshots] = await Promise.all([
      read("how old the list of VMs is", inventory.state()),
      read("VMs", inventory.vms()),
      read("attestation", drift.all()),
      read("what keeps VMs from being verified", unverified.all()),
      read("open requests", requests.open()),
      read("what changed", requests.endedSince(since)),
      read("break-glass reviews", requests.reviews()),
      read("snapshots", snapshots.newest()),
    ]);
    const troubled = (vms ?? []).filter(isTroubled);
    const statusSince = await read("since when VMs are in trouble", statuses.since(troubled));
    return {
      now: readAt,
      since,
      vms,
      statusSince: statusSince ?? new Map(),
      refreshedAt: state?.refreshedAt,
      stale: state?.stale ?? true,
      unreadProjects: state?.unread ?? [],
      drift: failing,
      unverified: ending,
      open,
      ended,
      reviews,
      newestSnapshots,
      unread,
      stuckAfterMs: options.policy.timing.settleDeadlineMs,
      snapshotOldMs: options.policy.attestation.maxSnapshotAgeMs ?? snapshotOldMs,
    };
  }

  return {
    schedules,
    snoozes,
    slots,
    drift,
    unverified,
    statuses,
    /** Without a slot: a digest on request. */
    async build(channel: string, slot?: Slot): Promise<Digest> {
      const found = await facts(channel, slot !== undefined);
      // What can't be read may still be so: only a line that is gone for certain ends its snooze
      const isWhole = found.unread.length === 0 && !found.stale;
      if (isWhole) await snoozes.keepOnly(channel, new Set(itemsOf(found).map(lineOf)));
      const snoozed = await snoozes.quiet(channel, now());
      if (!slot) return renderDigest(found, { title: "Digest", snoozed });
      const dueAt = localWords(slot.at, slot.rule.timezone);
      const lateMs = now() - slot.at;
      return renderDigest(found, {
        title: `Digest, ${dueAt}`,
        snoozed,
        ...(lateMs > onTimeMs ? { lateMs, dueAt } : {}),
      });
    },
    /** Everything that ended since then (ms). */
    async changes(since: number): Promise<Digest["message"]> {
      return renderChanges(await requests.endedSince(since));
    },
    /** `note`: of who leaves. */
    async handover(
      channel: string,
      note?: { by: string; text: string },
    ): Promise<Digest["message"]> {
      const consoles = requests.consoles(now()).catch((error: unknown) => {
        log.warn("digest.unread", { part: "consoles", why: messageOf(error) });
        return undefined;
      });
      return renderHandover(await facts(channel), await consoles, note);
    },
  };
}

const longestMs = 8 * dayMs;

/** Lines that a channel doesn't show for a while. */
function createSnoozes(redis: RedisClient, key: Keys) {
  const named = (channel: string) => key("digest-snoozes", channel);
  return {
    /** Until a time (ms). */
    async snooze(channel: string, line: string, until: number, now: number): Promise<void> {
      await redis
        .pipeline()
        .zremrangebyscore(named(channel), "-inf", now)
        .zadd(named(channel), until, line)
        .pexpire(named(channel), longestMs)
        .exec();
    },
    /** One line, or all of the channel. */
    async unsnooze(channel: string, line?: string): Promise<void> {
      if (line === undefined) await redis.del(named(channel));
      else await redis.zrem(named(channel), line);
    },
    /** A line that is gone is no longer snoozed: when it comes back, it is news. */
    async keepOnly(channel: string, lines: ReadonlySet<string>): Promise<void> {
      const gone = (await redis.zrange(named(channel), "0", "-1")).filter(
        (line) => !lines.has(line),
      );
      if (gone.length > 0) await redis.zrem(named(channel), ...gone);
    },
    /** The lines that are snoozed now. */
    async quiet(channel: string, now: number): Promise<ReadonlySet<string>> {
      return new Set(await redis.zrangebyscore(named(channel), `(${now}`, "+inf"));
    },
  };
}

function isTroubled({ status }: Pick<KnownVm, "status">): boolean {
  return status === "ERROR" || isTransitional(status);
}
