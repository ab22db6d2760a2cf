import type { KnownVm } from "../fleet/inventory/inventory.ts";
import type { Keys, RedisClient } from "../redis/redis.ts";
import { createKnownRecords } from "./known-records.ts";

/**
 * The status in which a VM was last seen, since when (ms), and from which one it was seen to come.
 * Without that one, it had this status when it was first seen.
 */
export type SeenStatus = readonly [status: string, since: number, from?: string];
/** The statuses of all VMs of one project, by VM ID. */
export type SeenStatuses = Readonly<Record<string, SeenStatus>>;

/** The last seen status of every VM, by project. */
export function createStatusRecords(redis: RedisClient, key: Keys) {
  const records = createKnownRecords<SeenStatuses>(redis, key("seen-statuses"));
  return {
    ...records,
    /** Since when these VMs have been in their status, where that is known. */
    async since(vms: readonly KnownVm[]): Promise<Map<string, number>> {
      const seen = await records.readRecords([...new Set(vms.map(({ projectId }) => projectId))]);
      const known = vms.flatMap(({ id, projectId, status }) => {
        const [was, since] = seen.get(projectId)?.[id] ?? [];
        return was === status && since !== undefined ? [[id, since] as const] : [];
      });
      return new Map(known);
    },
  };
}
