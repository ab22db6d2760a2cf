import type { DigestRule } from "../policy-file.ts";
import type { Keys, RedisClient } from "../redis.ts";
import type { Slot } from "./slots.ts";

/** When which channel gets a digest: what was said in Slack, and for all other channels what gatehouse.yml says. */
export interface Schedules {
  all(): Promise<readonly DigestRule[]>;
  of(channel: string): Promise<readonly DigestRule[]>;
  /** Takes the place of everything else that is known about this channel. */
  set(rule: DigestRule): Promise<void>;
  /** False when there was none. Off stays off, whatever gatehouse.yml says. */
  clear(channel: string): Promise<boolean>;
  /** Whether the slot belongs to a schedule that was already there then: a new one does not begin in the past. */
  isOurs(slot: Slot, now: number): Promise<boolean>;
}

const off = "off";

export function createSchedules(
  redis: RedisClient,
  key: Keys,
  policy: readonly DigestRule[],
): Schedules {
  const said = key("digest-schedules");
  const known = key("digest-known");

  async function all(): Promise<DigestRule[]> {
    const own = await redis.hgetall(said);
    const ours = Object.values(own)
      .filter((text) => text !== off)
      .map((text) => JSON.parse(text) as DigestRule);
    return [...policy.filter(({ channel }) => own[channel] === undefined), ...ours];
  }
  const of = async (channel: string) => (await all()).filter((rule) => rule.channel === channel);

  return {
    all,
    of,
    async set(rule) {
      await redis.hset(said, rule.channel, JSON.stringify(rule));
    },
    async clear(channel) {
      const had = (await of(channel)).length > 0;
      await redis.hset(said, channel, off);
      return had;
    },
    async isOurs({ rule, at }, now) {
      const { channel, timezone, days } = rule;
      const name = [channel, rule.at, timezone, days.join(",")].join(" ");
      await redis.hsetnx(known, name, now);
      return at >= Number(await redis.hget(known, name));
    },
  };
}
