export const tenUtc = Date.parse("2026-11-20T10:00:00Z");

/** What is read as a time, and the time. */
export const timeForms: [text: string, at: number][] = [
  ["2026-11-20T10:00:00Z", tenUtc],
  ["2026-11-20T10:00:00", tenUtc],
  ["2026-11-20 10:00:00", tenUtc],
  ["2026-11-20T10:00", tenUtc],
  ["2026-11-20T10:00:00.250", tenUtc + 250],
  ["2026-11-20T10:00:00.250123456", tenUtc + 250],
  ["2026-11-20T11:00:00+01:00", tenUtc],
  ["2026-11-20T11:00:00+0100", tenUtc],
  ["2026-11-20T05:00:00-05", tenUtc],
  ["2026-11-20 10:00:00 UTC", tenUtc],
  ["2026-11-20", tenUtc - 10 * 3_600_000],
];
