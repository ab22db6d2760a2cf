import { isDeepStrictEqual } from "node:util";
import type { Keys, RedisClient } from "../redis/redis.ts";
import type { Alarms } from "./alarms.ts";
import type { Records } from "./monitor-records.ts";
import type { Follow } from "./subscriptions.ts";

/** What every monitor needs. */
export interface MonitorOptions<Known> {
  redis: RedisClient;
  key: Keys;
  records: Records<Known>;
  alarms: Alarms;
  /** Tells the channels that are subscribed. */
  follow: Follow;
  everyMs: number;
  now(): number;
}

/**
 * One look of a monitor: compares what is seen with what was known, tells what changed, and remembers it. In this order, and
 * under IDs made of what was known before: a process that dies in between leaves the same comparison to the next look, whose
 * news have the same IDs and are posted once.
 */
export async function watch<Known, Change>(monitor: {
  records: Records<Known>;
  /** Those to compare; by default all that are known. */
  ids?: readonly string[];
  /** Pure. `after` has the records that are new or differ. */
  compare(before: ReadonlyMap<string, Known>): {
    after: ReadonlyMap<string, Known>;
    changes: readonly Change[];
  };
  tell(changes: readonly Change[]): Promise<void>;
}): Promise<void> {
  const before = await monitor.records.read(monitor.ids);
  const { after, changes } = monitor.compare(before);
  await monitor.tell(changes);
  // Another process may have written the others meanwhile
  const differing = [...after].filter(([id, one]) => !isDeepStrictEqual(one, before.get(id)));
  await monitor.records.write(new Map(differing));
}
