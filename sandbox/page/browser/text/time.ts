/** Times as a person reads them, in the browser's own zone. */

const formats = {
  time: new Intl.DateTimeFormat(undefined, { hour: "numeric", minute: "2-digit" }),
  timeWithSeconds: new Intl.DateTimeFormat(undefined, {
    hour: "numeric",
    minute: "2-digit",
    second: "2-digit",
  }),
  day: new Intl.DateTimeFormat(undefined, { weekday: "long", month: "long", day: "numeric" }),
  numeric: new Intl.DateTimeFormat("sv-SE"),
  date: new Intl.DateTimeFormat(undefined, { year: "numeric", month: "long", day: "numeric" }),
  short: new Intl.DateTimeFormat(undefined, { year: "numeric", month: "short", day: "numeric" }),
  long: new Intl.DateTimeFormat(undefined, {
    weekday: "long",
    year: "numeric",
    month: "long",
    day: "numeric",
  }),
  full: new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "medium" }),
};

/** A message's ts as milliseconds. For showing only: as a number it isn't exact. */
export function millisecondsOf(ts: string): number {
  return Math.floor(Number(ts) * 1000);
}

export const timeOf = (at: number) => formats.time.format(at);
/** A time without AM or PM, which has no room beside a follow-up. */
export const timeInMargin = (at: number) =>
  formats.time
    .formatToParts(at)
    .map(({ type, value }) => (type === "dayPeriod" ? "" : value))
    .join("")
    .trim();
export const fullTimeOf = (at: number) => formats.full.format(at);

export function dayOf(at: number): string {
  return near(at) ?? formats.day.format(at);
}

function near(at: number): string | undefined {
  const days = Math.round((startOfDay(Date.now()) - startOfDay(at)) / 86_400_000);
  return days === 0 ? "Today" : days === 1 ? "Yesterday" : days === -1 ? "Tomorrow" : undefined;
}

function startOfDay(at: number): number {
  return new Date(at).setHours(0, 0, 0, 0);
}

function ago(at: number): string {
  const seconds = Math.round((at - Date.now()) / 1000);
  const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" });
  if (Math.abs(seconds) < 60) return relative.format(seconds, "second");
  if (Math.abs(seconds) < 3600) return relative.format(Math.round(seconds / 60), "minute");
  if (Math.abs(seconds) < 86_400) return relative.format(Math.round(seconds / 3600), "hour");
  return relative.format(Math.round(seconds / 86_400), "day");
}

/** The tokens of `<!date^…>`. https://docs.slack.dev/messaging/formatting-message-text#date-formatting */
const tokens: Record<string, (at: number) => string> = {
  date_num: (at) => formats.numeric.format(at),
  date: (at) => formats.date.format(at),
  date_short: (at) => formats.short.format(at),
  date_long: (at) => formats.long.format(at),
  date_pretty: (at) => near(at)?.toLowerCase() ?? formats.date.format(at),
  date_short_pretty: (at) => near(at)?.toLowerCase() ?? formats.short.format(at),
  date_long_pretty: (at) => near(at)?.toLowerCase() ?? formats.long.format(at),
  date_long_full: (at) => formats.full.format(at),
  day_divider_pretty: (at) => near(at) ?? formats.day.format(at),
  time: (at) => formats.time.format(at),
  time_secs: (at) => formats.timeWithSeconds.format(at),
  ago,
};

/** The date in the wanted words; undefined when the format names something unknown. */
export function dateInWords(seconds: number, format: string): string | undefined {
  let known = true;
  const words = format.replaceAll(/\{(\w+)\}/g, (whole, name: string) => {
    const write = Object.hasOwn(tokens, name) ? tokens[name] : undefined;
    if (!write) known = false;
    return write?.(seconds * 1000) ?? whole;
  });
  return known ? words : undefined;
}
