import { batches } from "../redis/batches.ts";
import type { StoredRecord } from "../redis/define-record.ts";
import type { RedisClient } from "../redis/redis.ts";

export type KnownRecords<Known> = ReturnType<typeof createKnownRecords<Known>>;

/**
 * Stores what a probe of the monitor knows, shared by all processes: one record for each ID, in one
 * hash. A record that can't be read isn't known, so the probe looks again and replaces it.
 */
export function createKnownRecords<Known>(
  redis: RedisClient,
  named: string,
  definition: StoredRecord<Known>,
) {
  return {
    /** The records of these IDs, by default of all. */
    async readRecords(ids?: readonly string[]): Promise<Map<string, Known>> {
      const records = new Map<string, Known>();
      for (const some of batches(ids ?? (await redis.hkeys(named))))
        for (const [n, text] of (await redis.hmget(named, ...some)).entries()) {
          const id = some[n] ?? "";
          const record = text === null ? undefined : definition.parse(text, `${named} ${id}`);
          if (record !== undefined) records.set(id, record);
        }
      return records;
    },
    async writeRecords(records: ReadonlyMap<string, Known>): Promise<void> {
      for (const some of batches([...records]))
        await redis.hset(
          named,
          new Map(some.map(([id, record]) => [id, definition.write(record)])),
        );
    },
    /** Forgets the records of everything that is gone. */
    async keepOnly(ids: ReadonlySet<string>): Promise<void> {
      const gone = (await redis.hkeys(named)).filter((id) => !ids.has(id));
      for (const some of batches(gone)) await redis.hdel(named, ...some);
    },
  };
}
