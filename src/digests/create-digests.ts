import { messageOf } from "../errors.ts";
import type { Inventory } from "../inventory/inventory.ts";
import type { Snapshots } from "../inventory/snapshots.ts";
import type { Log } from "../log.ts";
import type { Policy } from "../policy-file.ts";
import type { Keys, RedisClient } from "../redis.ts";
import { createDriftRecords, type DriftRecords } from "./drift-records.ts";
import type { RequestSource } from "./facts.ts";
import { gather } from "./gather.ts";
import { type Digest, renderDigest } from "./render-digest.ts";
import { createSchedules, type Schedules } from "./schedules.ts";
import { createSlotRecords, type SlotRecords } from "./slot-record.ts";
import { localWords, type Slot } from "./slots.ts";
import { createSnoozes, type Snoozes } from "./snoozes.ts";
import { createStatusRecords, type StatusRecords } from "./status-records.ts";
import { renderHandover } from "./handover.ts";

/** What digests are made of and what is remembered of them; the same in every process. */
export interface Digests {
  schedules: Schedules;
  snoozes: Snoozes;
  slots: SlotRecords;
  drift: DriftRecords;
  statuses: StatusRecords;
  requests: RequestSource;
  /** The digest of a slot, or one that somebody asked for now. */
  build(channel: string, slot?: Slot): Promise<Digest>;
  /** For the person who takes the shift. */
  handover(channel: string): Promise<Digest["message"]>;
}

export interface DigestsOptions {
  redis: RedisClient;
  key: Keys;
  policy: Pick<Policy, "digests" | "attestation" | "timing">;
  inventory: Pick<Inventory, "vms" | "state">;
  snapshots: Pick<Snapshots, "newest">;
  requests: RequestSource;
  log: Log;
  now(): number;
  /** How long a slot that is being made is left to whoever makes it (ms). */
  leaseMs?: number;
}

const dayMs = 24 * 3600_000;
/** Where gatehouse.yml says nothing of snapshots. */
const snapshotOldMs = 7 * dayMs;
/** A digest that comes a few minutes after its time is on time. */
const onTimeMs = 5 * 60_000;
/** Longer than reading and drawing take, short enough that a digest isn't missed when a process dies. */
const usualLeaseMs = 60_000;

export function createDigests(options: DigestsOptions): Digests {
  const { redis, key, policy, inventory, snapshots, requests, log, now } = options;
  const schedules = createSchedules(redis, key, policy.digests);
  const snoozes = createSnoozes(redis, key);
  const slots = createSlotRecords(redis, key, options.leaseMs ?? usualLeaseMs);
  const drift = createDriftRecords(redis, key);
  const statuses = createStatusRecords(redis, key);

  async function facts(channel: string) {
    const since = (await slots.lastTold(channel)) ?? now() - dayMs;
    const sources = {
      inventory,
      snapshots,
      drift,
      statuses,
      requests,
      stuckAfterMs: policy.timing.settleDeadlineMs,
      snapshotOldMs: policy.attestation.maxSnapshotAgeMs ?? snapshotOldMs,
      log,
    };
    return gather(sources, now(), since);
  }

  return {
    schedules,
    snoozes,
    slots,
    drift,
    statuses,
    requests,
    async build(channel, slot) {
      const found = await facts(channel);
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
    async handover(channel) {
      const consoles = requests.consoles(now()).catch((error: unknown) => {
        log.warn("digest.unread", { part: "consoles", why: messageOf(error) });
        return undefined;
      });
      return renderHandover(await facts(channel), await consoles);
    },
  };
}
