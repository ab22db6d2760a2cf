import type { RedisClient } from "../redis.ts";

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
  specs?: { cpu?: number; memory?: number; disk?: number };
  /** Taken by the bot right before a restore. */
  isSafety?: boolean;
}

export interface Snapshots {
  /** Newest first. */
  of(vmId: string): Promise<readonly KnownSnapshot[]>;
  /** By id, or by a name that only one snapshot with an id bears. */
  find(vmId: string, words: string): Promise<KnownSnapshot | undefined>;
  /** Telling of the same one twice is harmless. */
  remember(snapshot: KnownSnapshot): Promise<void>;
  /** Names the VM that a snapshot id belongs to, as far as we know. */
  ownerOf(snapshotId: string): Promise<string | undefined>;
  /** By VM, when the newest one that can be restored was taken (ms). A VM without one isn't in it. */
  newest(): Promise<ReadonlyMap<string, number>>;
}

const readAtOnce = 200;

/** A snapshot without an id is kept under its name and time. */
const fieldOf = (snapshot: KnownSnapshot) =>
  snapshot.id === "" ? `named ${snapshot.name} ${snapshot.at}` : snapshot.id;

export function createSnapshots(
  redis: RedisClient,
  key: (...parts: string[]) => string,
): Snapshots {
  async function of(vmId: string): Promise<KnownSnapshot[]> {
    const all = Object.values(await redis.hgetall(key("snapshots", vmId)));
    return all.map((text) => JSON.parse(text) as KnownSnapshot).toSorted((a, b) => b.at - a.at);
  }
  return {
    of,
    async find(vmId, words) {
      const withId = (await of(vmId)).filter(({ id }) => id !== "");
      const byId = withId.find(({ id }) => id === words);
      if (byId) return byId;
      const named = withId.filter(({ name }) => name === words);
      return named.length === 1 ? named[0] : undefined;
    },
    async remember(snapshot) {
      const field = fieldOf(snapshot);
      // The first word stands: what is typed by hand later knows less
      await redis.hsetnx(key("snapshots", snapshot.vmId), field, JSON.stringify(snapshot));
      if (snapshot.id !== "")
        await redis.hsetnx(key("snapshot-owners"), snapshot.id, snapshot.vmId);
    },
    ownerOf: async (snapshotId) =>
      (await redis.hget(key("snapshot-owners"), snapshotId)) ?? undefined,
    async newest() {
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
