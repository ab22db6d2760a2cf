import { hash } from "node:crypto";
import type { DigestRule, Weekday } from "../config/policy-file.ts";
import { weekdays } from "../config/policy-values.ts";

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
