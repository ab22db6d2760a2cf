import { isTransitional } from "../compute/settle.ts";
import { messageOf } from "../errors.ts";
import type { Inventory, KnownVm } from "../inventory/inventory.ts";
import type { Snapshots } from "../inventory/snapshots.ts";
import type { Log } from "../log.ts";
import type { DriftRecords } from "./drift-records.ts";
import type { Facts, RequestSource } from "./facts.ts";
import type { StatusRecords } from "./status-records.ts";

export interface DigestSources {
  inventory: Pick<Inventory, "vms" | "state">;
  snapshots: Pick<Snapshots, "newest">;
  drift: Pick<DriftRecords, "all">;
  statuses: Pick<StatusRecords, "since">;
  requests: RequestSource;
  stuckAfterMs: number;
  snapshotOldMs: number;
  log: Log;
}

/** Reads everything at once. A part that can't be read is named; the others are told all the same. Never rejects. */
export async function gather(sources: DigestSources, now: number, since: number): Promise<Facts> {
  const { inventory, requests, stuckAfterMs, snapshotOldMs } = sources;
  const unread: string[] = [];

  async function read<T>(part: string, reading: Promise<T>): Promise<T | undefined> {
    try {
      return await reading;
    } catch (error) {
      sources.log.warn("digest.unread", { part, why: messageOf(error) });
      unread.push(part);
      return undefined;
    }
  }

  const [state, vms, drift, open, ended, reviews, newest] = await Promise.all([
    read("how old the list of VMs is", inventory.state()),
    read("VMs", inventory.vms()),
    read("attestation", sources.drift.all()),
    read("open requests", requests.open()),
    read("what changed", requests.endedSince(since)),
    read("break-glass reviews", requests.reviews()),
    read("snapshots", sources.snapshots.newest()),
  ]);
  const troubled = (vms ?? []).filter(isTroubled);
  const statusSince =
    (await read("since when VMs are in trouble", sources.statuses.since(troubled))) ?? new Map();
  return {
    now,
    since,
    statusSince,
    stale: state?.stale ?? true,
    unreadProjects: state?.unread ?? [],
    unread,
    stuckAfterMs,
    snapshotOldMs,
    ...(state?.refreshedAt === undefined ? {} : { refreshedAt: state.refreshedAt }),
    ...(vms ? { vms } : {}),
    ...(drift ? { drift } : {}),
    ...(open ? { open } : {}),
    ...(ended ? { ended } : {}),
    ...(reviews ? { reviews } : {}),
    ...(newest ? { newestSnapshots: newest } : {}),
  };
}

export function isTroubled({ status }: Pick<KnownVm, "status">): boolean {
  return status === "ERROR" || isTransitional(status);
}
