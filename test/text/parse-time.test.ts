import { describe, expect, it } from "vitest";
import { isSameTime, parseIsoTime, parseTime, withZone } from "../../src/text/parse-time.ts";
import { tenUtc, timeForms } from "./time-forms.ts";

describe("a time", () => {
  it.each(timeForms)("%s is read as UTC unless it says otherwise", (text, at) => {
    expect(parseIsoTime(text)).toBe(at);
    expect(parseTime(text)).toBe(at);
  });

  it.each(["", "soon", "2026-02-30T10:00:00Z", "2026-13-01", "2026-11-20T25:00:00", "1763632800"])(
    "%s is none by ISO 8601",
    (text) => {
      expect(parseIsoTime(text)).toBeUndefined();
    },
  );

  it.each([
    "Fri, 20 Nov 2026 10:00:00 GMT",
    "Fri, 20 Nov 2026 10:00:00",
    "Fri Nov 20 10:00:00 2026",
    "Fri Nov 20 2026 11:00:00 GMT+0100 (CET)",
    "Fri, 20 Nov 2026 05:00:00 EST",
    "20 Nov 2026 03:00:00 PDT",
    "2026-11-20 02:00:00 PST",
  ])("%s is read where other forms may come", (text) => {
    expect(parseTime(text)).toBe(tenUtc);
    expect(parseIsoTime(text)).toBeUndefined();
  });

  it("gets its zone for those who read it elsewhere", () => {
    expect(withZone("2026-11-20T10:00:00")).toBe("2026-11-20T10:00:00Z");
    expect(withZone("2026-11-20 10:00:00.5")).toBe("2026-11-20T10:00:00.5Z");
    for (const text of ["2026-11-20T10:00:00Z", "2026-11-20T10:00:00-05:00", "2026-11-20", "soon"])
      expect(withZone(text)).toBe(text);
  });

  it.each([
    ["2026-11-01T10:00:00Z", "2026-11-01T10:00:00.417Z", true],
    ["2026-11-01T10:00:00Z", "2026-11-01T10:00:01.417Z", false],
    ["2026-11-01T10:00:00.4Z", "2026-11-01T10:00:00.417Z", true],
    ["2026-11-01T10:00:00.417Z", "2026-11-01T10:00:00.418Z", false],
    ["2026-11-01T10:00:00.417123Z", "2026-11-01T10:00:00.417Z", true],
    ["2026-11-01T10:00:00Z", "2026-11-01T11:00:00+01:00", true],
    ["2026-11-01T10:00:00", "2026-11-01T10:00:00Z", true],
    ["1", "1", true],
    ["soon", "later", false],
  ])("is compared as precisely as both are written: %s and %s", (one, other, isSame) => {
    expect([isSameTime(one, other), isSameTime(other, one)]).toEqual([isSame, isSame]);
  });
});
