import { hash } from "node:crypto";
import type { DigestRule } from "../config/policy-file.ts";
import { type Weekday, weekdays } from "../config/policy-schema.ts";
import type { Keys, RedisClient } from "../redis/redis.ts";

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

/** The newest slot that is due: at `now` or before. */
export function latestSlot(rule: DigestRule, now: number): Slot | undefined {
  // Tomorrow's date first: where clocks go back over midnight, its slot can be due already
  return slotsFrom(rule, localDate(rule, now).add({ days: 1 }), -1).find(({ at }) => at <= now);
}

/** The first slot after `now`. */
export function nextSlot(rule: DigestRule, now: number): Slot | undefined {
  return slotsFrom(rule, localDate(rule, now), 1).find(({ at }) => at > now);
}

function localDate({ timezone }: DigestRule, now: number): Temporal.PlainDate {
  return Temporal.Instant.fromEpochMilliseconds(now).toZonedDateTimeISO(timezone).toPlainDate();
}

function slotsFrom(rule: DigestRule, first: Temporal.PlainDate, step: 1 | -1): Slot[] {
  return Array.from({ length: longestDays + 1 }, (_, days) => first.add({ days: days * step }))
    .filter(({ dayOfWeek }) => rule.days.includes(weekdays[dayOfWeek - 1] ?? "mon"))
    .map((date) => slotOn(rule, date));
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
 * When a local time is. One that comes twice, as clocks go back, means the first; one that the clocks jump over means the
 * moment of the jump, the next that exists.
 */
function instantOf(local: Temporal.PlainDateTime, timezone: string): Temporal.Instant {
  const earlier = local.toZonedDateTime(timezone, { disambiguation: "earlier" });
  if (earlier.toPlainDateTime().equals(local)) return earlier.toInstant();
  const jump = earlier.getTimeZoneTransition("next");
  return (jump ?? local.toZonedDateTime(timezone)).toInstant();
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

const keptMs = 7 * 24 * 3600_000;
const maxStarts = 3;

/**
 * Keeps a slot from being begun twice at once, or more than three times in all: building it may crash processes. Its notice,
 * not this, makes it posted once.
 */
export function createSlotRecords(redis: RedisClient, key: Keys, leaseMs: number) {
  const named = (slotId: string) => key("digest-slot", slotId);
  return {
    /** `busy`: another process builds it, or has died or failed in it just now. `exhausted`: begun too often, without an end. */
    async begin(slotId: string): Promise<"yours" | "busy" | "over" | "exhausted"> {
      if ((await redis.hexists(named(slotId), "ended")) === 1) return "over";
      const lease = key("digest-slot", slotId, "lease");
      if ((await redis.set(lease, "held", "PX", leaseMs, "NX")) === null) return "busy";
      const starts = await redis.hincrby(named(slotId), "starts", 1);
      await redis.pexpire(named(slotId), keptMs);
      return starts > maxStarts ? "exhausted" : "yours";
    },
    async end(slotId: string, how: "posted" | "failed"): Promise<void> {
      await redis.hset(named(slotId), "ended", how);
      await redis.pexpire(named(slotId), keptMs);
    },
    /** Until when the last digest of this series reported changes (ms). */
    async lastTold(series: string): Promise<number | undefined> {
      const at = await redis.hget(key("digest-told"), series);
      return at === null ? undefined : Number(at);
    },
    async told(series: string, at: number): Promise<void> {
      await redis.hset(key("digest-told"), series, at);
    },
  };
}
