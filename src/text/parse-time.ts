const isoTime =
  /^(\d{4})-(\d\d)-(\d\d)(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?\s?(Z|z|UTC|[+-]\d\d(?::?\d\d)?)?)?$/;

/**
 * Parses an ISO 8601 time to milliseconds since the epoch. Undefined for anything else, including a
 * day that its month doesn't have. A time without a zone is UTC, like every time of the compute
 * service; `Date.parse` would use this machine's zone.
 */
export function parseIsoTime(text: string | undefined): number | undefined {
  const parts = isoTime.exec(text?.trim() ?? "");
  if (!parts) return undefined;
  const [, year, month, day, hours = "00", minutes = "00", seconds = "00", fraction = ""] = parts;
  const milliseconds = `${fraction}000`.slice(0, 3);
  const utc = `${year}-${month}-${day}T${hours}:${minutes}:${seconds}.${milliseconds}Z`;
  const at = Date.parse(utc);
  // `Date.parse` reads February 30 as March 2.
  if (Number.isNaN(at) || new Date(at).toISOString() !== utc) return undefined;
  const [, sign, offsetHours, offsetMinutes = "00"] =
    /^([+-])(\d\d):?(\d\d)?$/.exec(parts[8] ?? "") ?? [];
  if (offsetHours === undefined) return at;
  if (Number(offsetHours) > 23 || Number(offsetMinutes) > 59) return undefined;
  const offsetMs = (Number(offsetHours) * 60 + Number(offsetMinutes)) * 60_000;
  return sign === "-" ? at + offsetMs : at - offsetMs;
}

/**
 * Whether two texts mean the same time, as far as the less precise of them says it: a list may leave out the fraction that a
 * record has, and either may have another zone. Texts that are no times are compared as they are.
 */
export function isSameTime(time: string, other: string): boolean {
  const [at, otherAt] = [time, other].map(parseTime);
  if (at === undefined || otherAt === undefined) return time === other;
  const digits = Math.min(
    ...[time, other].map((text) => isoTime.exec(text.trim())?.[7]?.length ?? 0),
    3,
  );
  return at === otherAt || Math.abs(at - otherAt) < 10 ** (3 - digits);
}

/** A zone at the end, including the zone names that `Date.parse` knows (RFC 5322, 4.3). */
const endsWithZone = /(GMT|UTC?|Z|\b[ECMP][SD]T|[+-]\d\d:?\d\d)(\s*\(.*\))?$/i;

/**
 * Like `parseIsoTime`, and also accepts every other form that `Date.parse` reads, mainly `Fri, 20
 * Nov 2026 10:00:00 GMT`.
 */
export function parseTime(text: string | undefined): number | undefined {
  const words = text?.trim() ?? "";
  if (isoTime.test(words)) return parseIsoTime(words);
  const at = Date.parse(endsWithZone.test(words) ? words : `${words} UTC`);
  return Number.isNaN(at) ? undefined : at;
}

/**
 * Adds `Z` to a time without a zone, for programs that read it. Any other text is returned
 * unchanged.
 */
export function withZone(text: string): string {
  const [whole, , , , hours, , , , zone] = isoTime.exec(text.trim()) ?? [];
  const lacksZone = whole !== undefined && hours !== undefined && zone === undefined;
  return lacksZone ? `${whole.replace(" ", "T")}Z` : text;
}
