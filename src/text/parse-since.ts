import { plainForm } from "./fold.ts";
import { parseClock } from "./parse-clock.ts";
import { parseIsoTime } from "./parse-time.ts";

const unitMs: Readonly<Record<string, number>> = {
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 7 * 86_400_000,
};
const weekdays = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/** Parts of a day by the time (`HH:MM`) at which they begin. A night begins on the evening before. */
const partsOfDay: Readonly<Record<string, string>> = {
  morning: "06:00",
  afternoon: "12:00",
  evening: "18:00",
  night: "18:00",
};

/**
 * The moment (ms) that people mean by `12h`, `8pm`, `yesterday 20:00`, `last night`, `Friday`,
 * `2026-11-26`, or an ISO 8601 time: the last one before `now`, in this time zone. Undefined for
 * anything else and for the future.
 */
export function parseSince(text: string, now: number, zone = "UTC"): number | undefined {
  const words = canonicalWords(text);
  const [, amount, unit = ""] =
    /^(\d{1,4}(?:\.\d)?)\s*(m|h|d|w)(?:in(?:ute)?s?|ours?|rs?|ays?|eeks?)?$/i.exec(words) ?? [];
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
    const clock = second === undefined ? "00:00" : (partsOfDay[second] ?? parseClock(second));
    return clock === undefined ? undefined : before(onDate(date, clock), now);
  }
  const clock = second === undefined ? parseClock(first) : undefined;
  if (clock === undefined) return undefined;
  const at = onDate(today, clock);
  return at <= now ? at : onDate(today.subtract({ days: 1 }), clock);
}

/** The forms that are parsed, for words as people say them: `during the last 12 hours`, `an hour ago`. */
const canonicalWords = (text: string): string =>
  plainForm(text)
    .trim()
    .replaceAll(/\s+/g, " ")
    .replaceAll(/(\d) (?=[ap]\.?m\b)/gi, "$1")
    .replace(/^(?:(?:since|from|in|for|over|during|within|on|at|the) )+/i, "")
    .replace(/^(?:last night|overnight|night)$/i, "yesterday night")
    .replace(/^tonight$/i, "18:00")
    .replace(/^this (morning|afternoon|evening)$/i, "today $1")
    .replace(/^(?:last |past )?weekend$/i, "saturday")
    .replace(/^this week$/i, "monday")
    .replace(/^(?:last|past) (?=[a-z\d])/i, "")
    .replace(/^(?:an?|one|few) (?=(?:minute|hour|day|week))/i, "1 ")
    .replace(/^(?=(?:hour|day|week)$)/i, "1 ")
    .replace(/ ago$/i, "")
    .replace(/^(\S+) at /i, "$1 ")
    .toLowerCase()
    .replace(/(?<=^\d{4}-\d\d-\d\d)t|z$/g, (letter) => letter.toUpperCase());

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
