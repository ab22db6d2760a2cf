/**
 * A time of day like `9am`, `9`, `0900`, `9.30pm`, `9h30`, `noon`, or `midnight` as `HH:MM`.
 * Undefined for any other word, and for `930`, which could be a slip for `1930`.
 */
export function parseClock(word: string): string | undefined {
  if (/^noon$/i.test(word)) return "12:00";
  if (/^midnight$/i.test(word)) return "00:00";
  const read = /^(\d{1,2})(?:[:.h]?(\d\d)|h)?(?:([ap])\.?m\.?)?$/i.exec(word);
  if (!read || /^\d{3}$/.test(word)) return undefined;
  const [, hours = "", minutes = "00", half] = read;
  const hour = Number(hours);
  if (Number(minutes) > 59 || hour > 23) return undefined;
  if (half === undefined) return `${hours.padStart(2, "0")}:${minutes}`;
  if (hour < 1 || hour > 12) return undefined;
  return `${String((hour % 12) + (/p/i.test(half) ? 12 : 0)).padStart(2, "0")}:${minutes}`;
}
