import type { Keys, RedisClient } from "../../redis/redis.ts";

const longestMs = 8 * 24 * 3600_000;

/** Stores which lines a channel doesn't show for a while. */
export function createSnoozes(redis: RedisClient, key: Keys) {
  const named = (channel: string) => key("digest-snoozes", channel);
  return {
    /** Snoozes a line until a time (ms). */
    async snooze(channel: string, line: string, until: number): Promise<void> {
      const snoozed = named(channel);
      await redis.pipeline().zadd(snoozed, until, line).pexpire(snoozed, longestMs).exec();
    },
    /** Ends the snooze of one line, or of all lines of the channel. */
    async unsnooze(channel: string, line?: string): Promise<void> {
      if (line === undefined) await redis.del(named(channel));
      else await redis.zrem(named(channel), line);
    },
    /**
     * The lines that are snoozed now. If `all` lines are given, snoozed lines that aren't among
     * them lose their snooze: when such a line comes back, it is news.
     */
    async quiet(channel: string, now: number, all?: ReadonlySet<string>) {
      const quiet = await redis.zrangebyscore(named(channel), `(${now}`, "+inf");
      const gone = quiet.filter((line) => all?.has(line) === false);
      if (gone.length > 0) await redis.zrem(named(channel), ...gone);
      return new Set(quiet);
    },
  };
}
