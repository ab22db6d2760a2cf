import { describe, expect, it } from "vitest";
import { parseClock } from "../../src/text/parse-clock.ts";
import { parseSince } from "../../src/text/parse-since.ts";

/** Friday, 9:00 AM in Paris. */
const now = Date.parse("2026-11-27T08:00:00Z");

describe("a time since which something is told", () => {
  it.each([
    ["12h", "2026-11-26T20:00:00Z"],
    ["90 min", "2026-11-27T06:30:00Z"],
    ["2 days", "2026-11-25T08:00:00Z"],
    ["8pm", "2026-11-26T19:00:00Z"],
    ["since 8 pm", "2026-11-26T19:00:00Z"],
    ["8:30", "2026-11-27T07:30:00Z"],
    ["midnight", "2026-11-26T23:00:00Z"],
    ["today", "2026-11-26T23:00:00Z"],
    ["yesterday 20:00", "2026-11-26T19:00:00Z"],
    ["Wednesday 9.30pm", "2026-11-25T20:30:00Z"],
    ["Fri", "2026-11-26T23:00:00Z"],
    ["2026-11-26", "2026-11-25T23:00:00Z"],
    ["2026-11-26 18:00", "2026-11-26T17:00:00Z"],
    ["2026-11-26T18:00:00Z", "2026-11-26T18:00:00Z"],
  ])("%s is the last one before now, in the reader's time zone", (text, expected) => {
    const at = parseSince(text, now, "Europe/Paris");
    expect(at === undefined ? at : new Date(at).toISOString()).toBe(
      new Date(expected).toISOString(),
    );
  });

  it.each(["", "soon", "today 23:00", "2026-12-01", "8pm 9pm", "25:00", "2026-02-30"])(
    "%j is none",
    (text) => {
      expect(parseSince(text, now, "Europe/Paris")).toBeUndefined();
    },
  );
});

describe("a time of day", () => {
  it.each([
    ["9am", "09:00"],
    ["12am", "00:00"],
    ["9.30pm", "21:30"],
    ["0900", "09:00"],
    ["noon", "12:00"],
  ])("%s is %s", (word, expected) => {
    expect(parseClock(word)).toBe(expected);
  });

  it.each(["930", "24:00", "13pm", "9:75", "nine"])("%s is none", (word) => {
    expect(parseClock(word)).toBeUndefined();
  });
});
