import { hash } from "node:crypto";
import type { Config } from "../../config/config.ts";
import {
  channel as channelShape,
  days as daysShape,
  timeOfDay,
  timezone as zoneShape,
  type Weekday,
  weekdays,
} from "../../config/policy-values.ts";
import { UserError } from "../../errors.ts";
import type { Keys, RedisClient } from "../../redis/redis.ts";
import { type DigestRule, digestsIn } from "./digests-section.ts";

/** One moment at which one channel gets its digest. Equal IDs are the same digest. */
export interface Slot {
  /** `digest-<series>-<date>-<HHMM>-<zone>`: local date and time, so that a day has one however its clocks change. */
  id: string;
  rule: DigestRule;
  /** Milliseconds. */
  at: number;
}

/** The digests of a channel that tell what came since the one before: by its ID, and by the targets of those that have some. */
export function seriesOf({ channel, targets }: Pick<DigestRule, "channel" | "targets">): string {
  if (targets === undefined) return channel;
  return `${channel}-${hash("sha256", targets.join(" ")).slice(0, 8)}`;
}

/** A week without a slot means that no day was named. */
const longestDays = 8;

/** The newest slot that was due at `now` or before it. */
export function latestSlot(rule: DigestRule, now: number): Slot | undefined {
  // Tomorrow's date first: where clocks go back over midnight, its slot can be due already
  const tomorrow = localDate(rule, now).add({ days: 1 });
  return slotsFrom(rule, tomorrow, -1).find(({ at }) => at <= now);
}

/** The first slot after `now`. */
export function nextSlot(rule: DigestRule, now: number): Slot | undefined {
  return slotsFrom(rule, localDate(rule, now), 1).find(({ at }) => at > now);
}

function localDate({ timezone }: DigestRule, now: number): Temporal.PlainDate {
  return Temporal.Instant.fromEpochMilliseconds(now).toZonedDateTimeISO(timezone).toPlainDate();
}

function* slotsFrom(rule: DigestRule, first: Temporal.PlainDate, step: 1 | -1) {
  for (let days = 0; days <= longestDays; days++) {
    const date = first.add({ days: days * step });
    if (rule.days.includes(weekdays[date.dayOfWeek - 1] ?? "mon")) yield slotOn(rule, date);
  }
}

function slotOn(rule: DigestRule, date: Temporal.PlainDate): Slot {
  const { at, timezone } = rule;
  return {
    id: `digest-${seriesOf(rule)}-${date.toString()}-${at.replace(":", "")}-${timezone}`,
    rule,
    at: instantOf(date.toPlainDateTime(at), timezone).epochMilliseconds,
  };
}

/**
 * When a local time is, as BullMQ's job schedulers have it: one that comes twice, as clocks go back, means the first; one that the
 * clocks jump over is as much later as they jump, 03:30 for 02:30.
 */
const instantOf = (local: Temporal.PlainDateTime, timezone: string): Temporal.Instant =>
  local.toZonedDateTime(timezone, { disambiguation: "compatible" }).toInstant();

/** As a cron expression: minute, hour, and days of the week, 0 for Sunday. */
export function cronOf({ at, days }: Pick<DigestRule, "at" | "days">): string {
  const [hour = "0", minute = "0"] = at.split(":");
  const numbers = days.map((day) => (weekdays.indexOf(day) + 1) % 7);
  return `${Number(minute)} ${Number(hour)} * * ${numbers.toSorted((a, b) => a - b).join(",")}`;
}

/** What dashboards call it. One channel may have several, about different targets or at different times. */
export function scheduleName(rule: DigestRule): string {
  const { at, timezone, days } = rule;
  return `digest ${seriesOf(rule)} ${at.replace(":", "")} ${timezone} ${days.join(",")}`;
}

/** `Thu 25 Mar, 09:00`, as clocks show it there. */
export function localWords(at: number, timezone: string): string {
  return new Intl.DateTimeFormat("en-GB", {
    timeZone: timezone,
    weekday: "short",
    day: "numeric",
    month: "short",
    hour: "2-digit",
    minute: "2-digit",
    hourCycle: "h23",
  }).format(at);
}

/** `daily`, `mon-fri`, `mon, wed`. */
export function daysWords(days: readonly Weekday[]): string {
  const named = weekdays.filter((day) => days.includes(day));
  if (named.length === 7) return "daily";
  const first = named[0] ?? "mon";
  const last = named.at(-1) ?? "mon";
  const isRun = weekdays.indexOf(last) - weekdays.indexOf(first) === named.length - 1;
  return isRun && named.length > 2 ? `${first}-${last}` : named.join(", ");
}

const off = "off";

/** Schedules set in Slack, and gatehouse.yml's for all other channels. `changed` is called after each change. */
export function createSchedules(
  redis: RedisClient,
  key: Keys,
  config: Pick<Config, "policy">,
  changed: () => Promise<unknown> = async () => undefined,
) {
  const said = key("digest-schedules");
  const known = key("digest-known");

  async function all(): Promise<DigestRule[]> {
    const own = await redis.hgetall(said);
    const ours = Object.values(own).filter((text) => text !== off);
    return [
      ...digestsIn(config.policy).filter(({ channel }) => own[channel] === undefined),
      ...ours.map((text) => JSON.parse(text) as DigestRule),
    ];
  }
  const of = async (channel: string) => (await all()).filter((rule) => rule.channel === channel);

  return {
    all,
    of,
    /** Replaces every schedule of this channel. */
    async set(rule: DigestRule): Promise<void> {
      await redis.hset(said, rule.channel, JSON.stringify(rule));
      await changed();
    },
    /** False when there was none. Off stays off, whatever gatehouse.yml says. */
    async clear(channel: string): Promise<boolean> {
      const had = (await of(channel)).length > 0;
      await redis.hset(said, channel, off);
      await changed();
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

type ScheduleWords = Partial<Pick<DigestRule, "channel" | "at" | "timezone" | "days">>;

/**
 * `09:00 Europe/Paris mon-fri`, in any order, every part optional, a channel too (`C02STATUS`, or as Slack writes a link
 * to one). Throws UserError for a word that is none of them, or a second one of its kind.
 */
export function readSchedule(text: string): ScheduleWords {
  const words: ScheduleWords = {};
  const joined = text.replaceAll(/(\d)\s+(?=[ap]\.?m\b)/gi, "$1");
  for (const word of joined.split(/\s+/).filter(Boolean)) {
    const [key, value] = partOf(word);
    if (key in words) throw new UserError(`${word.slice(0, 40)} repeats a setting.`, usage);
    Object.assign(words, { [key]: value });
  }
  return words;
}

const usage =
  "Use `/gatehouse digest on 09:00 Europe/Paris mon-fri`; name another channel last, by its ID.";

function partOf(word: string): readonly [keyof ScheduleWords, unknown] {
  const link = /^<#([CG][A-Z0-9]+)(?:\|[^>]*)?>$/.exec(word);
  const read = {
    at: timeOfDay.safeParse(clock(word)).data,
    channel: channelShape.safeParse(link?.[1] ?? word).data,
    days: daysShape.safeParse(word).data,
    timezone: zoneShape.safeParse(word).data,
  };
  if (read.at) return ["at", read.at];
  if (read.channel) return ["channel", read.channel];
  if (read.days) return ["days", read.days];
  if (read.timezone) {
    const named = new Intl.DateTimeFormat("en", { timeZone: read.timezone });
    return ["timezone", named.resolvedOptions().timeZone];
  }
  const shown = word.slice(0, 40);
  if (!/^[#@]/.test(word))
    throw new UserError(`${shown} is not a time, time zone, day, or channel.`, usage);
  throw new UserError(
    `Can't tell which channel ${shown} is.`,
    "Its ID is at the end of the channel's details: `C02STATUS`.",
  );
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
