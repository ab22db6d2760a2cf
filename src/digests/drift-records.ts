import type { Keys, RedisClient } from "../redis.ts";

/** What the last attestation of a pinned VM said, and what was told of it. */
export interface DriftRecord {
  vmId: string;
  vmName: string;
  projectName: string;
  /** What could not be verified leaves the last verdict standing. */
  verdict: "verified" | "failed";
  /** Names a failure: equal marks are the same failure. Empty when verified. */
  mark: string;
  /** Why it fails, as a sentence without full stop. */
  reason: string;
  /** Milliseconds: since when it stands like that. */
  since: number;
  /** Grows with each recovery, so that the same failure is told anew after one. */
  episode: number;
  recoveredAt?: number;
}

export interface DriftRecords {
  all(): Promise<DriftRecord[]>;
  get(vmId: string): Promise<DriftRecord | undefined>;
  set(record: DriftRecord): Promise<void>;
  /** Forgets VMs that are gone or that no pin speaks of any more. */
  keepOnly(vmIds: ReadonlySet<string>): Promise<void>;
}

export function createDriftRecords(redis: RedisClient, key: Keys): DriftRecords {
  const named = key("drift");
  return {
    async all() {
      const rows = await redis.hvals(named);
      return rows
        .map((text) => JSON.parse(text) as DriftRecord)
        .toSorted((a, b) => a.since - b.since);
    },
    async get(vmId) {
      const text = await redis.hget(named, vmId);
      return text === null ? undefined : (JSON.parse(text) as DriftRecord);
    },
    async set(record) {
      await redis.hset(named, record.vmId, JSON.stringify(record));
    },
    async keepOnly(vmIds) {
      const gone = (await redis.hkeys(named)).filter((id) => !vmIds.has(id));
      if (gone.length > 0) await redis.hdel(named, ...gone);
    },
  };
}
