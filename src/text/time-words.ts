/**
 * Times in words, in US English and in one form: `Fri, Nov 27, 9:00 AM (Paris)` and its parts.
 * Everything that people read uses these; files and programs get ISO 8601.
 */

/** `9:00 AM`, or `9:00:07 AM`. */
export function clockWords(at: number, zone = "UTC", { hasSeconds = false } = {}): string {
  const seconds = hasSeconds ? ({ second: "2-digit" } as const) : {};
  return words(at, zone, { hour: "numeric", minute: "2-digit", ...seconds });
}

/** `Nov 27`, or `Nov 27, 2026` if it is named for more than this year. */
export function dayWords(at: number, zone = "UTC", { hasYear = false } = {}): string {
  const year = hasYear ? ({ year: "numeric" } as const) : {};
  return words(at, zone, { month: "short", day: "numeric", ...year });
}

/** Days this near have no other of the same name near them (ms). */
const nearMs = 300 * 24 * 3600_000;

/** A day as seen from `now`: `Dec 26`, and with its year if it is far away. */
export const dayNear = (at: number, now: number): string =>
  dayWords(at, "UTC", { hasYear: Math.abs(at - now) > nearMs });

/** `Nov 27, 9:00 AM UTC`: where the reader's time zone isn't known. */
export const utcWords = (at: number, { hasYear = false } = {}): string =>
  `${dayWords(at, "UTC", { hasYear })}, ${clockWords(at)} UTC`;

/** A time of day alone is clear for this long (ms). */
export const clearForMs = 12 * 3600_000;

/** As seen from `now`, as short as is clear: `9:00 AM UTC`, `Nov 27, 9:00 AM UTC`. */
export function utcNear(at: number, now: number): string {
  const agoMs = Math.abs(now - at);
  return agoMs < clearForMs ? `${clockWords(at)} UTC` : utcWords(at, { hasYear: agoMs > nearMs });
}

/** `Fri, Nov 27, 9:00 AM (Paris)`: a moment in a time zone that somebody chose. */
export function momentWords(at: number, zone: string): string {
  const weekday = words(at, zone, { weekday: "short" });
  return `${weekday}, ${dayWords(at, zone)}, ${clockWords(at, zone)} (${zoneWords(zone)})`;
}

/** `Europe/Paris` is `Paris`. */
export const zoneWords = (zone: string): string =>
  (zone.split("/").at(-1) ?? zone).replaceAll("_", " ");

/** Formats by zone and parts. Making one takes as long as rendering the rest of a card. */
const formats = new Map<string, Intl.DateTimeFormat>();
/** The parts above in more zones than a company's people live in. */
const mostFormats = 1_000;

function formatOf(timeZone: string, parts: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const named = `${timeZone} ${JSON.stringify(parts)}`;
  const known = formats.get(named);
  if (known) return known;
  const format = new Intl.DateTimeFormat("en-US", { timeZone, ...parts });
  if (formats.size >= mostFormats) formats.clear();
  formats.set(named, format);
  return format;
}

function words(at: number, timeZone: string, parts: Intl.DateTimeFormatOptions): string {
  // Intl puts a narrow space before AM and PM, which some fonts don't have.
  return formatOf(timeZone, parts).format(at).replaceAll("\u202F", " ");
}
