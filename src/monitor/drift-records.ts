import * as z from "zod";
import type { KnownVm } from "../fleet/inventory/inventory.ts";
import type { Failing } from "../fleet/inventory/status-order.ts";
import { type Markdown, counted, listed } from "../messages/markdown.ts";
import { defineRecord, objectOf } from "../redis/define-record.ts";
import type { Keys, RedisClient } from "../redis/redis.ts";
import type { Alarms } from "./alarms.ts";
import { createKnownRecords } from "./known-records.ts";

/** The last known state of a pinned VM. */
export interface DriftRecord {
  vm: Pick<KnownVm, "id" | "name" | "projectId" | "projectName">;
  /**
   * Identifies its failure as it was reported: equal marks are the same failure. Empty while it
   * doesn't fail.
   */
  mark: string;
  /** The ID of the alarm about that failure. */
  alarm?: string;
  /** Why it fails, as a sentence without full stop. */
  reason: string;
  /** Whether it would verify if what it measures were pinned. */
  isPinnable?: boolean;
  /** Since when this has been so (ms). */
  since: number;
  recoveredAt?: number;
  /** When it was verified, if that is what came of judging it last (ms). */
  verifiedAt?: number;
  /** The reasons that prevent it from being verified, or soon will. */
  lacks: readonly Lack[];
}

export interface Lack {
  /** A sentence without full stop if it can't be verified now; otherwise what ends. */
  what: string;
  /** What to do about it, as a sentence without full stop. */
  way?: string;
  /** It ran out, so it has to be renewed. */
  isExpired?: boolean;
  /** When it ends (ms). Undefined if it can't be verified already. */
  endsAt?: number;
  /** True if it is fine now and fails once Intel's next level counts. */
  isNextLevel?: boolean;
  /** Since when this has been so for any VM of the same owner (ms). */
  since: number;
}

export const driftRecord = defineRecord({
  name: "drift of a VM",
  schema: objectOf<DriftRecord>({
    vm: z.looseObject({
      id: z.string(),
      name: z.string(),
      projectId: z.string(),
      projectName: z.string(),
    }),
    mark: z.string(),
    alarm: z.string().exactOptional(),
    reason: z.string(),
    isPinnable: z.boolean().exactOptional(),
    since: z.number(),
    recoveredAt: z.number().exactOptional(),
    verifiedAt: z.number().exactOptional(),
    lacks: z.array(
      objectOf<Lack>({
        what: z.string(),
        way: z.string().exactOptional(),
        isExpired: z.boolean().exactOptional(),
        endsAt: z.number().exactOptional(),
        isNextLevel: z.boolean().exactOptional(),
        since: z.number(),
      }),
    ),
  }),
});

/** Something that several VMs lack together, because one list of a vendor's serves many VMs. */
export interface Lacking extends Lack {
  place: string;
  vms: readonly DriftRecord["vm"][];
}

export const dayMs = 86_400_000;
/**
 * The digest warns this many days before the end. A snooze ends when the next of these is reached.
 */
export const warnDays = [14, 7, 1] as const;

export type DriftRecords = ReturnType<typeof createDriftRecords>;

export function createDriftRecords(redis: RedisClient, key: Keys) {
  const records = createKnownRecords(redis, key("drift"), driftRecord);
  return {
    ...records,
    /** Why a VM fails, and since when. Undefined when it doesn't fail, or Redis can't say. */
    async failure(id: string): Promise<{ reason: string; since: number } | undefined> {
      const known = await records.readRecords([id]).catch(() => undefined);
      const { mark = "", reason = "", since = 0 } = known?.get(id) ?? {};
      return mark === "" ? undefined : { reason, since };
    },
    /** When a pinned VM was verified. Undefined when it wasn't by the last judgment, or Redis can't say. */
    async verifiedAt(id: string): Promise<number | undefined> {
      const known = await records.readRecords([id]).catch(() => undefined);
      return known?.get(id)?.verifiedAt;
    },
    /**
     * The VMs among these that can't be verified now, and why; by default among all. Empty when
     * Redis can't say.
     */
    async unverifiable(ids?: readonly string[]): Promise<Unverifiable> {
      const all = await records.readRecords(ids).catch(() => new Map<string, DriftRecord>());
      const lacking = [...all].flatMap(([id, { mark, lacks }]) => {
        const lack = mark === "" ? lacks.find(isMissing) : undefined;
        return lack ? [[id, lack.what] as const] : [];
      });
      return new Map(lacking);
    },
    /** The failing VMs among these, by default among all. Empty when Redis can't say. */
    async failing(ids?: readonly string[]): Promise<Failing> {
      const all = await records.readRecords(ids).catch(() => new Map<string, DriftRecord>());
      const failed = [...all].filter(([, { mark }]) => mark !== "");
      return new Map(failed.map(([id, { reason }]) => [id, reason.replace(/^the /, "")]));
    },
  };
}

/** The reasons why VMs can't be verified now, by VM ID. */
export type Unverifiable = ReadonlyMap<string, string>;

/** Equal for VMs of one owner that lack the same. */
export const lackKey = (
  { what: lacked, endsAt, isNextLevel = false }: Omit<Lack, "since">,
  place: string,
) => `${lacked} ${endsAt ?? ""} ${isNextLevel} ${place}`;

/** Whether this prevents VMs from being verified now. */
export const isMissing = ({ endsAt, isNextLevel }: Lack) => endsAt === undefined && !isNextLevel;

/** Collects what these VMs lack, by key. VMs of one owner that lack the same are combined. */
export function lackingIn(
  records: Iterable<DriftRecord>,
  placeOf: Alarms["placeOf"] = () => "",
): Map<string, Lacking> {
  const lackingByKey = new Map<string, Lacking & { vms: DriftRecord["vm"][] }>();
  for (const { vm, lacks } of records) {
    const place = placeOf(vm);
    for (const lack of lacks) {
      const none = () => ({ ...lack, place, vms: [] });
      lackingByKey.getOrInsertComputed(lackKey(lack, place), none).vms.push(vm);
    }
  }
  return lackingByKey;
}

export const vmsOf = ({ vms }: { vms: readonly unknown[] }): string =>
  counted(vms.length, "pinned VM");

export function vmNamesIn({ vms }: Pick<Lacking, "vms">): Markdown {
  const names = vms.map((vm) => vm.name);
  return listed(names, 3);
}
