import type { Config } from "../config/config.ts";
import type { KnownVm } from "../inventory/inventory.ts";
import type { Message } from "../messages/message.ts";
import { alertChannel, placeOf } from "../policy/scope.ts";
import type { Keys, RedisClient } from "../redis/redis.ts";
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
 * One round of a monitor: compares what is seen with what was known, tells what changed, and remembers it. In this order, and
 * under IDs made of what was known before: a process that dies in between leaves the same comparison to the next round, whose
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
  const { after, changes } = monitor.compare(await monitor.records.read(monitor.ids));
  await monitor.tell(changes);
  await monitor.records.write(after);
}

export type Records<Known> = ReturnType<typeof createRecords<Known>>;

/** What a monitor knows, for all processes: a record for each ID, in one hash. */
export function createRecords<Known>(redis: RedisClient, named: string) {
  return {
    /** Of these IDs, by default of all. */
    async read(ids?: readonly string[]): Promise<Map<string, Known>> {
      const found = new Map<string, Known>();
      for (const some of batches(ids ?? (await redis.hkeys(named))))
        for (const [n, text] of (await redis.hmget(named, ...some)).entries())
          if (text !== null) found.set(some[n] ?? "", JSON.parse(text) as Known);
      return found;
    },
    async write(records: ReadonlyMap<string, Known>): Promise<void> {
      for (const some of batches([...records]))
        await redis.hset(named, new Map(some.map(([id, record]) => [id, JSON.stringify(record)])));
    },
    /** Forgets what is about something that is gone. */
    async keepOnly(ids: ReadonlySet<string>): Promise<void> {
      const gone = (await redis.hkeys(named)).filter((id) => !ids.has(id));
      for (const some of batches(gone)) await redis.hdel(named, ...some);
    },
  };
}

/** Few enough per call that neither Redis nor this process blocks. */
function* batches<T>(all: readonly T[], atOnce = 100): Iterable<readonly T[]> {
  for (let from = 0; from < all.length; from += atOnce) yield all.slice(from, from + atOnce);
}

export type Alarms = ReturnType<typeof createAlarms>;

/** Where what nobody asked for is told: to the team that has it, else to `alerts`. */
export function createAlarms(options: {
  /** Its policy is read at each use: it may be another one by then. */
  config: Pick<Config, "policy">;
  announce(notice: { id: string; channelId: string; message: Message }): Promise<unknown>;
}) {
  const { config, announce } = options;
  return {
    /** Whose a VM is: what is told together is of one place. */
    placeOf: ({ projectId, projectName }: Pick<KnownVm, "projectId" | "projectName">): string =>
      placeOf(config.policy, { id: projectId, name: projectName }),
    /** Once per ID; returns the channel, where there is one for it. */
    async tell(id: string, message: Message, place: string): Promise<string | undefined> {
      const channelId = alertChannel(config.policy, place);
      if (channelId !== undefined) await announce({ id, channelId, message });
      return channelId;
    },
  };
}
