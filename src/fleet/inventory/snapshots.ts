import * as z from "zod";
import type { Specs } from "../compute/compute.ts";
import { utcNear } from "../../text/time-words.ts";
import { batches } from "../../redis/batches.ts";
import { defineRecord, objectOf } from "../../redis/define-record.ts";
import { type Keys, type RedisClient, fromPairs } from "../../redis/redis.ts";

/** A snapshot that Gatehouse remembers, because the service can't list snapshots. */
export interface KnownSnapshot {
  /** Empty when the service's answer had no ID. Then the snapshot can't be restored. */
  id: string;
  name: string;
  vmId: string;
  vmName: string;
  projectId: string;
  /** The user ID of the requester. Empty for an ID that was typed by hand. */
  by: string;
  /** When it was taken (ms). */
  at: number;
  /** The VM's measurement when it was taken. */
  measurement?: string;
  /** The result of the VM's attestation when it was taken, in words. */
  attestation?: string;
  specs?: Specs;
  /** True when Gatehouse took it right before a restore. */
  isSafety?: boolean;
  /**
   * For a snapshot without an ID: the ID that somebody gave, which nobody who sees every VM has
   * confirmed yet.
   */
  claimed?: { id: string; by: string };
}

export const snapshotRecord = defineRecord({
  name: "snapshot",
  schema: objectOf<KnownSnapshot>({
    id: z.string(),
    name: z.string(),
    vmId: z.string(),
    vmName: z.string(),
    projectId: z.string(),
    by: z.string(),
    at: z.number(),
    measurement: z.string().exactOptional(),
    attestation: z.string().exactOptional(),
    specs: objectOf<Specs>({
      cpu: z.number().exactOptional(),
      memory: z.number().exactOptional(),
      disk: z.number().exactOptional(),
    }).exactOptional(),
    isSafety: z.boolean().exactOptional(),
    claimed: z.looseObject({ id: z.string(), by: z.string() }).exactOptional(),
  }),
});

/**
 * When a snapshot was taken, as seen from `now`: `11:48 AM UTC`. Its ID follows only where the time
 * doesn't tell it from the others.
 */
export function takenWords(
  snapshot: KnownSnapshot,
  others: readonly KnownSnapshot[],
  now: number,
): string {
  const words = utcNear(snapshot.at, now);
  const isAlone = others.every((other) => other === snapshot || utcNear(other.at, now) !== words);
  return isAlone ? words : `${words}, ${snapshot.id || "no ID"}`;
}

/**
 * The snapshot's name, with its time when another snapshot of the VM has the same name: `nightly of
 * 11:48 AM UTC`.
 */
export function snapshotName(
  snapshot: KnownSnapshot,
  all: readonly KnownSnapshot[],
  now: number,
): string {
  const alike = all.filter(({ name }) => name === snapshot.name);
  const isShared = snapshot.name !== "" && alike.length > 1;
  return isShared ? `${snapshot.name} of ${takenWords(snapshot, alike, now)}` : snapshot.name;
}

export type Snapshots = ReturnType<typeof createSnapshots>;

const readAtOnce = 20;
const ownersAtOnce = 500;
/** How long the snapshots of a VM are kept after it was last seen (ms). */
const keptMs = 90 * 86_400_000;

export function createSnapshots(redis: RedisClient, key: Keys) {
  const ownersKey = key("snapshot-owners");

  /** The snapshots of a VM, newest first. */
  async function of(vmId: string): Promise<KnownSnapshot[]> {
    const named = key("snapshots", vmId);
    const all = snapshotRecord.parseAll(await redis.hgetall(named), named);
    return all.toSorted((a, b) => b.at - a.at);
  }
  /** The IDs of snapshots with their VMs, in pages. */
  async function* owners(): AsyncGenerator<ReadonlyMap<string, string>> {
    for (let cursor = "0"; ;) {
      const [next, fields] = await redis.hscan(ownersKey, cursor, "COUNT", ownersAtOnce);
      yield new Map(Object.entries(fromPairs(fields)));
      if (next === "0") return;
      cursor = next;
    }
  }

  return {
    of,
    /** Finds a snapshot by ID, or by a name that only one snapshot with an ID has. */
    async find(vmId: string, words: string): Promise<KnownSnapshot | undefined> {
      const withId = (await of(vmId)).filter(({ id }) => id !== "");
      const byId = withId.find(({ id }) => id === words);
      if (byId) return byId;
      const named = withId.filter(({ name }) => name === words);
      return named.length === 1 ? named[0] : undefined;
    },
    /** Stores a snapshot. Storing the same one twice is harmless. */
    async remember(snapshot: KnownSnapshot): Promise<void> {
      const { id, vmId, name, at, claimed } = snapshot;
      const all = key("snapshots", vmId);
      // Without an ID, it is stored under its name and time.
      const nameless = `named ${name} ${at}`;
      const before = await redis.hget(all, nameless);
      // The facts from the time when it was taken are kept. Only its ID is added later.
      const first =
        (before === null ? undefined : snapshotRecord.parse(before, `${all} ${nameless}`)) ??
        snapshot;
      const { claimed: _former, ...known } = { ...first, id };
      if (id === "") {
        const now = { ...known, ...(claimed ? { claimed } : {}) };
        await redis.hset(all, nameless, snapshotRecord.write(now));
        await redis.pexpire(all, keptMs);
        return;
      }
      // The first record is kept, because one that was typed by hand later knows less.
      await redis.hsetnx(all, id, snapshotRecord.write(known));
      if (before !== null) await redis.hdel(all, nameless);
      await redis.pexpire(all, keptMs);
      await redis.hsetnx(ownersKey, id, vmId);
    },
    /** The VM that a snapshot ID belongs to, if Gatehouse knows it. */
    ownerOf: async (snapshotId: string): Promise<string | undefined> =>
      (await redis.hget(ownersKey, snapshotId)) ?? undefined,
    /**
     * When the newest snapshot that can be restored was taken, by VM (ms). VMs without one are left
     * out.
     */
    async newest(): Promise<ReadonlyMap<string, number>> {
      const known = new Set<string>();
      for await (const page of owners()) for (const vmId of page.values()) known.add(vmId);
      const vmIds = [...known];
      const newest = new Map<string, number>();
      for (let from = 0; from < vmIds.length; from += readAtOnce) {
        const some = vmIds.slice(from, from + readAtOnce);
        const all = await Promise.all(some.map((vmId) => of(vmId)));
        for (const [index, vmId] of some.entries()) {
          const at = all[index]?.find(({ id }) => id !== "")?.at;
          if (at !== undefined) newest.set(vmId, at);
        }
      }
      return newest;
    },
    /**
     * Keeps the snapshots of these VMs, which exist. Those of others are forgotten 90 days after
     * their VM was last seen.
     */
    async keepSeen(vmIds: readonly string[]): Promise<void> {
      for (const some of batches(vmIds))
        await Promise.all(some.map((vmId) => redis.pexpire(key("snapshots", vmId), keptMs)));
      for await (const page of owners()) {
        const gone = await Promise.all(
          [...page].map(async ([id, vmId]) => {
            const leftMs = await redis.pttl(key("snapshots", vmId));
            // A process that died right after it stored them gave them no end.
            if (leftMs === -1) await redis.pexpire(key("snapshots", vmId), keptMs);
            return leftMs === -2 ? [id] : [];
          }),
        );
        for (const some of batches(gone.flat())) await redis.hdel(ownersKey, ...some);
      }
    },
  };
}
