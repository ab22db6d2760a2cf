import * as z from "zod";
import { isTransitional } from "../fleet/compute/compute.ts";
import type { KnownVm } from "../fleet/inventory/inventory.ts";
import { defineRecord } from "../redis/define-record.ts";
import type { Keys, RedisClient } from "../redis/redis.ts";
import { createKnownRecords } from "./known-records.ts";

/**
 * A request that ended this recently may explain a status, because lists are read about once a
 * minute (ms).
 */
export const echoMs = 5 * 60_000;

/**
 * The status in which a VM was last seen, since when (ms), from which one it was seen to come, and
 * since when it had that one (ms). Without these, it had this status when it was first seen.
 */
export type SeenStatus = readonly [
  status: string,
  since: number,
  from?: string | undefined,
  fromSince?: number | undefined,
];
/** The statuses of all VMs of one project, by VM ID. */
export type SeenStatuses = Readonly<Record<string, SeenStatus>>;

const seenStatus = z.tuple([z.string(), z.number(), z.string().optional(), z.number().optional()]);

export const seenStatusesRecord = defineRecord<SeenStatuses>({
  name: "seen statuses of a project",
  schema: z.record(z.string(), seenStatus),
});

/**
 * Whether a VM was seen to settle in another status than this one after a time (ms). What left it in
 * this status by then isn't why it has it now. Pure.
 */
export function wasSeenOtherwise(
  [seen, since, from, fromSince]: SeenStatus,
  { status, after }: { status: string; after: number },
): boolean {
  const [other, begun] = seen === status ? [from, fromSince] : [seen, since];
  return other !== undefined && !isTransitional(other) && begun !== undefined && begun > after;
}

/** The last seen status of every VM, by project. */
export function createStatusRecords(redis: RedisClient, key: Keys) {
  const records = createKnownRecords(redis, key("seen-statuses"), seenStatusesRecord);
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
