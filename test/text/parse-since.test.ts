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
    ["last night", "2026-11-26T17:00:00Z"],
    ["Last Night", "2026-11-26T17:00:00Z"],
    ["overnight", "2026-11-26T17:00:00Z"],
    ["tonight", "2026-11-26T17:00:00Z"],
    ["during the night", "2026-11-26T17:00:00Z"],
    ["this morning", "2026-11-27T05:00:00Z"],
    ["yesterday evening", "2026-11-26T17:00:00Z"],
    ["yesterday at 8pm", "2026-11-26T19:00:00Z"],
    ["yesterday morning", "2026-11-26T05:00:00Z"],
    ["last Wednesday", "2026-11-24T23:00:00Z"],
    ["on Wednesday", "2026-11-24T23:00:00Z"],
    ["the weekend", "2026-11-20T23:00:00Z"],
    ["last week", "2026-11-20T08:00:00Z"],
    ["this week", "2026-11-22T23:00:00Z"],
    ["in the last 2 hours", "2026-11-27T06:00:00Z"],
    ["the past hour", "2026-11-27T07:00:00Z"],
    ["an hour ago", "2026-11-27T07:00:00Z"],
    ["30 mins", "2026-11-27T07:30:00Z"],
    ["８ｐｍ", "2026-11-26T19:00:00Z"],
    ["2026-11-26", "2026-11-25T23:00:00Z"],
    ["2026-11-26 18:00", "2026-11-26T17:00:00Z"],
    ["2026-11-26T18:00:00Z", "2026-11-26T18:00:00Z"],
  ])("%s is the last one before now, in the reader's time zone", (text, expected) => {
    const at = parseSince(text, now, "Europe/Paris");
    expect(at === undefined ? at : new Date(at).toISOString()).toBe(
      new Date(expected).toISOString(),
    );
  });

  it.each([
    "",
    "soon",
    "today 23:00",
    "2026-12-01",
    "8pm 9pm",
    "25:00",
    "last",
    "this afternoon",
    "night 9pm",
    "2026-02-30",
  ])("%j is none", (text) => {
    expect(parseSince(text, now, "Europe/Paris")).toBeUndefined();
  });
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
