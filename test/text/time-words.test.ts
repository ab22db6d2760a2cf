import { describe, expect, it } from "vitest";
import {
  clockWords,
  dayNear,
  dayWords,
  momentWords,
  utcWords,
  zoneWords,
} from "../../src/text/time-words.ts";

const at = Date.parse("2026-11-27T08:00:07Z");

describe("a time in words", () => {
  it("has one form, in US English, in a zone that somebody chose and without one", () => {
    expect(momentWords(at, "Europe/Paris")).toBe("Fri, Nov 27, 9:00 AM (Paris)");
    expect(momentWords(at, "America/New_York")).toBe("Fri, Nov 27, 3:00 AM (New York)");
    expect(utcWords(at)).toBe("Nov 27, 8:00 AM UTC");
    expect(utcWords(at, { hasYear: true })).toBe("Nov 27, 2026, 8:00 AM UTC");
    expect(zoneWords("UTC")).toBe("UTC");
  });

  it("is a time of day or a day where that is enough", () => {
    expect(clockWords(at, "Asia/Tokyo")).toBe("5:00 PM");
    expect(clockWords(at, "UTC", { hasSeconds: true })).toBe("8:00:07 AM");
    expect(clockWords(Date.parse("2026-11-27T00:05Z"))).toBe("12:05 AM");
    expect(dayWords(at)).toBe("Nov 27");
    expect(dayWords(Date.parse("2026-11-26T23:30Z"), "Europe/Paris")).toBe("Nov 27");
  });

  it("names the year of a day that is far from now", () => {
    expect(dayNear(Date.parse("2026-12-26"), at)).toBe("Dec 26");
    expect(dayNear(Date.parse("2027-01-08"), at)).toBe("Jan 8");
    expect(dayNear(Date.parse("2027-11-26"), at)).toBe("Nov 26, 2027");
    expect(dayNear(Date.parse("2024-11-13"), at)).toBe("Nov 13, 2024");
  });
});
