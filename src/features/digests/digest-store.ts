import type { Config } from "../../config/config.ts";
import type { Keys, RedisClient } from "../../redis/redis.ts";
import { createSchedules, seriesOf } from "./schedules.ts";
import { createSnoozes } from "./snoozes.ts";

export type DigestStore = ReturnType<typeof createDigestStore>;

/** What digests keep in Redis: when they are posted, which lines wait, and how far each series got. */
export function createDigestStore(options: {
  redis: RedisClient;
  key: Keys;
  config: Pick<Config, "policy">;
  /** Called when people turn a digest on or off. */
  schedulesChanged?: (() => Promise<unknown>) | undefined;
}) {
  const { redis, key, config } = options;
  const reported = key("digest-told");
  return {
    schedules: createSchedules(redis, key, config, options.schedulesChanged),
    snoozes: createSnoozes(redis, key),
    /** Up to when the last digest of a series reported changes (ms). */
    async reportedUntil(series: Parameters<typeof seriesOf>[0]): Promise<number | undefined> {
      const until = await redis.hget(reported, seriesOf(series));
      return until === null ? undefined : Number(until);
    },
    /** Notes that the last digest of a series reported changes up to `until` (ms). */
    noteReported: (series: Parameters<typeof seriesOf>[0], until: number) =>
      redis.hset(reported, seriesOf(series), until),
  };
}
