import type { DigestRule, Policy } from "../config/policy-file.ts";
import type { Keys, RedisClient } from "../redis/redis.ts";
import { seriesOf, type Slot } from "./slots.ts";
import { UserError } from "../errors.ts";
import {
  channel as channelShape,
  days as daysShape,
  timeOfDay,
  timezone as zoneShape,
} from "../config/policy-schema.ts";

const off = "off";

/** Every digest that gatehouse.yml asks for: of `digests`, and of each team in its channel. */
export function digestsIn({ digests, teams }: Pick<Policy, "digests" | "teams">): DigestRule[] {
  const ofTeams = Object.values(teams).flatMap((team) =>
    team.digests.flatMap((rule) => (team.channel ? { ...rule, channel: team.channel } : [])),
  );
  return [...digests, ...ofTeams];
}

/** Schedules set in Slack, and gatehouse.yml's for all other channels. */
export function createSchedules(
  redis: RedisClient,
  key: Keys,
  ofPolicy: () => readonly DigestRule[],
) {
  const said = key("digest-schedules");
  const known = key("digest-known");

  async function all(): Promise<DigestRule[]> {
    const own = await redis.hgetall(said);
    const ours = Object.values(own)
      .filter((text) => text !== off)
      .map((text) => JSON.parse(text) as DigestRule);
    return [...ofPolicy().filter(({ channel }) => own[channel] === undefined), ...ours];
  }
  const of = async (channel: string) => (await all()).filter((rule) => rule.channel === channel);

  return {
    all,
    of,
    /** Replaces every schedule of this channel. */
    async set(rule: DigestRule): Promise<void> {
      await redis.hset(said, rule.channel, JSON.stringify(rule));
    },
    /** False when there was none. Off stays off, whatever gatehouse.yml says. */
    async clear(channel: string): Promise<boolean> {
      const had = (await of(channel)).length > 0;
      await redis.hset(said, channel, off);
      return had;
    },
    /** Whether its schedule existed at that time: a new one does not begin in the past. */
    async isOurs({ rule, at }: Slot, now: number): Promise<boolean> {
      const { timezone, days } = rule;
      const name = [seriesOf(rule), rule.at, timezone, days.join(",")].join(" ");
      await redis.hsetnx(known, name, now);
      return at >= Number(await redis.hget(known, name));
    },
  };
}

interface ScheduleWords {
  channel?: string;
  at?: string;
  timezone?: string;
  days?: DigestRule["days"];
}

/**
 * `09:00 Europe/Paris mon-fri`, in any order, every part optional, a channel too (`C02STATUS`, or as Slack writes a link
 * to one). Throws UserError for a word that is none of them, or a second one of its kind.
 */
export function readSchedule(text: string): ScheduleWords {
  const words: ScheduleWords = {};
  const joined = text.replaceAll(/(\d)\s+(?=[ap]\.?m\b)/gi, "$1");
  for (const word of joined.split(/\s+/).filter(Boolean)) {
    const part = partOf(word);
    if (!part) throw wrong(word);
    const [key = ""] = Object.keys(part);
    if (Object.hasOwn(words, key))
      throw new UserError(`${word.slice(0, 40)} repeats a setting.`, usage);
    Object.assign(words, part);
  }
  return words;
}

const usage =
  "Use `/gatehouse digest on 09:00 Europe/Paris mon-fri`; name another channel last, by its ID.";

function wrong(word: string): UserError {
  const shown = word.slice(0, 40);
  if (word.startsWith("#") || word.startsWith("@")) {
    return new UserError(
      `Can't tell which channel ${shown} is.`,
      "Its ID is at the end of the channel's details: `C02STATUS`.",
    );
  }
  return new UserError(`${shown} is not a time, time zone, day, or channel.`, usage);
}

function partOf(word: string): ScheduleWords | undefined {
  const time = timeOfDay.safeParse(clock(word));
  if (time.success) return { at: time.data };
  const place = channelShape.safeParse(/^<#([CG][A-Z0-9]+)(?:\|[^>]*)?>$/.exec(word)?.[1] ?? word);
  if (place.success) return { channel: place.data };
  const named = daysShape.safeParse(word);
  if (named.success) return { days: named.data };
  const zone = zoneShape.safeParse(word);
  if (!zone.success) return undefined;
  return {
    timezone: new Intl.DateTimeFormat("en", { timeZone: zone.data }).resolvedOptions().timeZone,
  };
}

/** `9am`, `9`, `0900`, `9.30pm`, `9h30`, and `noon` as `09:00`; as written where it isn't a time. */
function clock(word: string): string {
  if (/^noon$/i.test(word)) return "12:00";
  const read = /^(\d{1,2})(?:[:.h]?(\d\d)|h)?(?:([ap])\.?m\.?)?$/i.exec(word);
  if (!read) return word;
  const [, hours = "", minutes = "00", half] = read;
  // 930 could be a slip for 1930
  if (/^\d{3}$/.test(word)) return word;
  if (half === undefined) return `${hours.padStart(2, "0")}:${minutes}`;
  const hour = Number(hours);
  if (hour < 1 || hour > 12) return word;
  return `${String((hour % 12) + (/p/i.test(half) ? 12 : 0)).padStart(2, "0")}:${minutes}`;
}
