import type { Specs } from "../compute/compute.ts";
import { utc } from "../../messages/message.ts";
import type { Keys, RedisClient } from "../../redis/redis.ts";

/** A snapshot as the bot remembers it: the service can't list them. */
export interface KnownSnapshot {
  /** Empty when the service answered without one: then it can't be restored. */
  id: string;
  name: string;
  vmId: string;
  vmName: string;
  projectId: string;
  /** User id of whoever asked for it; empty for an id that was typed by hand. */
  by: string;
  /** Milliseconds. */
  at: number;
  /** The VM's measurement when it was taken. */
  measurement?: string;
  /** What Gatehouse made of the VM's evidence then, in words. */
  attestation?: string;
  specs?: Specs;
  /** Taken by the bot right before a restore. */
  isSafety?: boolean;
  /** Without an ID: the one that somebody named, and that nobody who sees every VM has confirmed yet. */
  claimed?: { id: string; by: string };
}

export const takenAt = ({ at }: Pick<KnownSnapshot, "at">) => utc(at);

/** Its name, with time and ID where another of the VM has it too. */
export function snapshotName(one: KnownSnapshot, all: readonly KnownSnapshot[]): string {
  const isShared = one.name !== "" && all.filter(({ name }) => name === one.name).length > 1;
  return isShared ? `${one.name} (${takenAt(one)}, ${one.id || "no ID"})` : one.name;
}

export type Snapshots = ReturnType<typeof createSnapshots>;

const readAtOnce = 200;

export function createSnapshots(redis: RedisClient, key: Keys) {
  /** Newest first. */
  async function of(vmId: string): Promise<KnownSnapshot[]> {
    const all = Object.values(await redis.hgetall(key("snapshots", vmId)));
    return all.map((text) => JSON.parse(text) as KnownSnapshot).toSorted((a, b) => b.at - a.at);
  }
  return {
    of,
    /** By id, or by a name that only one snapshot with an id bears. */
    async find(vmId: string, words: string): Promise<KnownSnapshot | undefined> {
      const withId = (await of(vmId)).filter(({ id }) => id !== "");
      const byId = withId.find(({ id }) => id === words);
      if (byId) return byId;
      const named = withId.filter(({ name }) => name === words);
      return named.length === 1 ? named[0] : undefined;
    },
    /** Telling of the same one twice is harmless. */
    async remember(snapshot: KnownSnapshot): Promise<void> {
      const { id, vmId, name, at, claimed } = snapshot;
      const all = key("snapshots", vmId);
      // Without an ID it is kept under its name and time
      const nameless = `named ${name} ${at}`;
      const before = await redis.hget(all, nameless);
      // What was known when it was taken stands; what is found later is its ID
      const first = before === null ? snapshot : (JSON.parse(before) as KnownSnapshot);
      const { claimed: _former, ...known } = { ...first, id };
      if (id === "") {
        const now = { ...known, ...(claimed ? { claimed } : {}) };
        await redis.hset(all, nameless, JSON.stringify(now));
        return;
      }
      // The first word stands: what is typed by hand later knows less
      await redis.hsetnx(all, id, JSON.stringify(known));
      if (before !== null) await redis.hdel(all, nameless);
      await redis.hsetnx(key("snapshot-owners"), id, vmId);
    },
    /** Names the VM that a snapshot id belongs to, as far as we know. */
    ownerOf: async (snapshotId: string): Promise<string | undefined> =>
      (await redis.hget(key("snapshot-owners"), snapshotId)) ?? undefined,
    /** By VM, when the newest one that can be restored was taken (ms). A VM without one isn't in it. */
    async newest(): Promise<ReadonlyMap<string, number>> {
      const vmIds = [...new Set(await redis.hvals(key("snapshot-owners")))];
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
  };
}
