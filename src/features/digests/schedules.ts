import { hash } from "node:crypto";
import * as z from "zod";
import type { Config } from "../../config/config.ts";
import {
  days as daysShape,
  timeOfDay,
  type Weekday,
  weekdays,
} from "../../config/policy-values.ts";
import { UserError } from "../../errors.ts";
import { defineRecord, objectOf } from "../../redis/define-record.ts";
import type { Keys, RedisClient } from "../../redis/redis.ts";
import { parseClock } from "../../text/parse-clock.ts";
import { plainForm } from "../../text/fold.ts";
import { clockWords, zoneWords } from "../../text/time-words.ts";
import { severalZones, zoneCalled } from "../../text/zone.ts";
import { type DigestRule, digestsIn } from "./digests-section.ts";

/** One moment at which one channel gets its digest. Equal IDs are the same digest. */
export interface Slot {
  /**
   * `digest-<series>-<date>-<HHMM>-<zone>`. It contains the local date and time, so a day has one
   * slot however its clocks change.
   */
  id: string;
  rule: DigestRule;
  /** When the digest is due (ms). */
  at: number;
}

/**
 * The name of a series: digests of a channel in which each continues the one before. It is the
 * channel's ID, with a hash of the targets if there are any.
 */
export function seriesOf({ channel, targets }: Pick<DigestRule, "channel" | "targets">): string {
  if (targets === undefined) return channel;
  return `${channel}-${hash("sha256", targets.join(" ")).slice(0, 8)}`;
}

/** Days to look through: a week without a slot means that no day was named. */
const longestDays = 8;

/** The newest slot that was due at `now` or before it. */
export function latestSlot(rule: DigestRule, now: number): Slot | undefined {
  // Begin with tomorrow's date: where clocks go back over midnight, its slot can be due already.
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
 * The instant of a local time, as BullMQ's job schedulers define it: a time that occurs twice as
 * clocks go back means the first; a time that the clocks skip is shifted by the same amount, 02:30
 * to 03:30.
 */
const instantOf = (local: Temporal.PlainDateTime, timezone: string): Temporal.Instant =>
  local.toZonedDateTime(timezone, { disambiguation: "compatible" }).toInstant();

/** The schedule as a cron expression: minute, hour, and days of the week, with 0 for Sunday. */
export function cronOf({ at, days }: Pick<DigestRule, "at" | "days">): string {
  const [hour = "0", minute = "0"] = at.split(":");
  const numbers = days.map((day) => (weekdays.indexOf(day) + 1) % 7);
  return `${Number(minute)} ${Number(hour)} * * ${numbers.toSorted((a, b) => a - b).join(",")}`;
}

/**
 * Name of the job in dashboards. A channel may have several, about different targets or at
 * different times.
 */
export function scheduleName(rule: DigestRule): string {
  const { at, timezone, days } = rule;
  return `digest ${seriesOf(rule)} ${at.replace(":", "")} ${timezone} ${days.join(",")}`;
}

/** The rule's time of day: `9:00 AM (Paris)`. */
export const timeOfRule = ({ at, timezone }: Pick<DigestRule, "at" | "timezone">): string => {
  const local = Temporal.PlainDate.from("2000-01-01").toPlainDateTime(at);
  return `${clockWords(local.toZonedDateTime("UTC").epochMilliseconds)} (${zoneWords(timezone)})`;
};

/** The days as text: `daily`, `mon-fri`, or `mon, wed`. */
export function daysWords(days: readonly Weekday[]): string {
  const named = weekdays.filter((day) => days.includes(day));
  if (named.length === 7) return "daily";
  const first = named[0] ?? "mon";
  const last = named.at(-1) ?? "mon";
  const isRun = weekdays.indexOf(last) - weekdays.indexOf(first) === named.length - 1;
  return isRun && named.length > 2 ? `${first}-${last}` : named.join(", ");
}

const off = "off";

export const scheduleRecord = defineRecord({
  name: "schedule of a digest",
  schema: objectOf<DigestRule>({
    channel: z.string(),
    at: timeOfDay,
    timezone: z.string().refine(isTimeZone),
    days: z.array(z.enum(weekdays)),
    targets: z.array(z.string()).exactOptional(),
  }),
});

function isTimeZone(timeZone: string): boolean {
  try {
    return Temporal.Now.zonedDateTimeISO(timeZone) !== undefined;
  } catch {
    return false;
  }
}

/**
 * Stores schedules set in Slack, which replace those of gatehouse.yml for their channel. One that
 * can't be read replaces nothing. `changed` is called after each change.
 */
export function createSchedules(
  redis: RedisClient,
  key: Keys,
  config: Pick<Config, "policy">,
  changed: () => Promise<unknown> = async () => undefined,
) {
  const schedulesKey = key("digest-schedules");
  const known = key("digest-known");

  async function all(): Promise<DigestRule[]> {
    const texts = Object.entries(await redis.hgetall(schedulesKey));
    const silenced = texts.filter(([, text]) => text === off).map(([channel]) => channel);
    const others = texts.filter(([, text]) => text !== off);
    const own = scheduleRecord.parseAll(Object.fromEntries(others), schedulesKey);
    const replaced = new Set([...silenced, ...own.map(({ channel }) => channel)]);
    return [...digestsIn(config.policy).filter(({ channel }) => !replaced.has(channel)), ...own];
  }
  const of = async (channel: string) => (await all()).filter((rule) => rule.channel === channel);

  return {
    all,
    of,
    /** Replaces every schedule of this channel. */
    async set(rule: DigestRule): Promise<void> {
      await redis.hset(schedulesKey, rule.channel, scheduleRecord.write(rule));
      await changed();
    },
    /**
     * Turns digests of a channel off; false when there was none. They stay off whatever
     * gatehouse.yml says.
     */
    async clear(channel: string): Promise<boolean> {
      const had = (await of(channel)).length > 0;
      await redis.hset(schedulesKey, channel, off);
      await changed();
      return had;
    },
    /**
     * Whether the slot's schedule existed at that time: a new schedule doesn't begin in the past.
     */
    async isOurs({ rule, at }: Slot, now: number): Promise<boolean> {
      const { timezone, days } = rule;
      const name = [seriesOf(rule), rule.at, timezone, days.join(",")].join(" ");
      await redis.hsetnx(known, name, now);
      return at >= Number(await redis.hget(known, name));
    },
  };
}

interface ScheduleWords extends Partial<Pick<DigestRule, "at" | "timezone" | "days">> {
  /** The word for a channel. Slack knows whether there is one. */
  channel?: string;
  /** What the zone is called, where it was an abbreviation: `CET is Central European time`. */
  zoneName?: string;
}

/**
 * Reads a schedule like `09:00 Europe/Paris mon-fri`. The parts come in any order, each optional,
 * and may include a channel (`C02STATUS`, `#status`, or a link as Slack writes it). Throws UserError
 * for a word that is none of them, for a second one of its kind, and for an abbreviation of several
 * time zones.
 */
export function readSchedule(text: string): ScheduleWords {
  const words: ScheduleWords = {};
  const joined = plainForm(text).replaceAll(/(\d)\s+(?=[ap]\.?m\b)/gi, "$1");
  for (const written of joined.split(/\s+/)) {
    const word = written.replace(/,$/, "");
    if (word === "" || filler.test(word)) continue;
    const part = partOf(word, joined);
    if (Object.keys(part).some((key) => key in words))
      throw new UserError(`${word.slice(0, 40)} repeats a setting.`, usage);
    Object.assign(words, part);
  }
  return words;
}

/** Words of a sentence: `at 9am in #status`. */
const filler = /^(?:at|in|to|every|time)$/i;

const usage =
  "Use `/gatehouse digest on 09:00 Europe/Paris mon-fri`; name another channel last, as `#status` or by its ID.";

/** The IDs of Slack have digits. A word of letters alone, like `CET`, is none. */
const channelId = /^[CG](?=[A-Z0-9]*\d)[A-Z0-9]{2,20}$/;

/** `text` is the whole schedule, which is repeated where a part of it isn't clear. */
function partOf(word: string, text: string): ScheduleWords {
  const link = /^<#([CG][A-Z0-9]+)(?:\|[^>]*)?>$/.exec(word)?.[1];
  const channel = link ?? (/^#./.test(word) || channelId.test(word) ? word : undefined);
  if (channel !== undefined) return { channel };
  const at = timeOfDay.safeParse(parseClock(word)).data;
  if (at !== undefined) return { at };
  const days = daysShape.safeParse(word).data;
  if (days) return { days };
  const meant = zoneCalled(word);
  if (meant?.match === "several")
    throw severalZones(word, meant.zones, (zone) => {
      const words = text
        .split(/\s+/)
        .map((part) => (part.replace(/,$/, "") === word ? zone : part));
      return `/gatehouse digest on ${words.join(" ")}`;
    });
  if (meant) {
    const { zone, name } = meant;
    return { timezone: zone, ...(name === undefined ? {} : { zoneName: `${word} is ${name}` }) };
  }
  throw new UserError(`${word.slice(0, 40)} is not a time, time zone, day, or channel.`, usage);
}
