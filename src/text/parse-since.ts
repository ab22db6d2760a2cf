import { parseClock } from "./parse-clock.ts";
import { parseIsoTime } from "./parse-time.ts";

const unitMs: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 };
const weekdays = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/**
 * The moment (ms) that people mean by `12h`, `8pm`, `yesterday 20:00`, `Friday`, `2026-11-26`, or an
 * ISO 8601 time: the last one before `now`, in this time zone. Undefined for anything else and for
 * the future.
 */
export function parseSince(text: string, now: number, zone = "UTC"): number | undefined {
  const words = text
    .trim()
    .replaceAll(/(\d)\s+(?=[ap]\.?m\b)/gi, "$1")
    .replace(/^since\s+/i, "");
  const [, amount, unit = ""] =
    /^(\d{1,4}(?:\.\d)?)\s*(m|h|d)(?:in(?:utes?)?|ours?|rs?|ays?)?$/i.exec(words) ?? [];
  const lasting = Number(amount ?? 0) * (unitMs[unit.toLowerCase()] ?? 0);
  if (lasting > 0) return now - lasting;
  if (/T.*(?:Z|[+-]\d\d:?\d\d)$/.test(words)) return before(parseIsoTime(words), now);
  const [first = "", second, ...more] = words.split(/[\sT]+/);
  if (more.length > 0) return undefined;
  const today = Temporal.Instant.fromEpochMilliseconds(now).toZonedDateTimeISO(zone).toPlainDate();
  const onDate = (date: Temporal.PlainDate, clock = "00:00") =>
    date.toPlainDateTime(clock).toZonedDateTime(zone).epochMilliseconds;
  const date = dateOf(first.toLowerCase(), today);
  if (date) {
    const clock = second === undefined ? "00:00" : parseClock(second);
    return clock === undefined ? undefined : before(onDate(date, clock), now);
  }
  const clock = second === undefined ? parseClock(first) : undefined;
  if (clock === undefined) return undefined;
  const at = onDate(today, clock);
  return at <= now ? at : onDate(today.subtract({ days: 1 }), clock);
}

const before = (at: number | undefined, now: number) =>
  at !== undefined && at <= now ? at : undefined;

function dateOf(word: string, today: Temporal.PlainDate): Temporal.PlainDate | undefined {
  if (word === "today") return today;
  if (word === "yesterday") return today.subtract({ days: 1 });
  const weekday = /^[a-z]{3,9}$/.test(word) ? weekdays.indexOf(word.slice(0, 3)) + 1 : 0;
  if (weekday > 0) {
    const days = (today.dayOfWeek - weekday + 7) % 7;
    return today.subtract({ days });
  }
  if (parseIsoTime(word) === undefined || !/^\d{4}-\d\d-\d\d$/.test(word)) return undefined;
  return Temporal.PlainDate.from(word);
}
