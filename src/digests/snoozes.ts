import type { Keys, RedisClient } from "../redis.ts";

/** Lines that a channel doesn't want to read for a while. */
export interface Snoozes {
  snooze(channel: string, line: string, now: number): Promise<void>;
  /** Keys of the lines that are quiet there now. */
  quiet(channel: string, now: number): Promise<ReadonlySet<string>>;
}

export const snoozedMs = 24 * 3600_000;

export function createSnoozes(redis: RedisClient, key: Keys): Snoozes {
  const named = (channel: string) => key("digest-snoozes", channel);
  return {
    async snooze(channel, line, now) {
      await redis
        .pipeline()
        .zremrangebyscore(named(channel), "-inf", now)
        .zadd(named(channel), now + snoozedMs, line)
        .pexpire(named(channel), 2 * snoozedMs)
        .exec();
    },
    async quiet(channel, now) {
      return new Set(await redis.zrangebyscore(named(channel), `(${now}`, "+inf"));
    },
  };
}
