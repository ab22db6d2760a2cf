import { getNextMillis } from "bullmq";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readSchedule } from "../../../src/features/digests/schedules.ts";
import {
  cronOf,
  daysWords,
  latestSlot,
  nextSlot,
} from "../../../src/features/digests/schedules.ts";
import type { DigestRule } from "../../../src/features/digests/digests-section.ts";

const daily: DigestRule["days"] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
const paris = (at: string, days = daily): DigestRule => ({
  channel: "C02STATUS",
  at,
  timezone: "Europe/Paris",
  days,
});
const ms = (iso: string) => Date.parse(iso);
const iso = (at: number | undefined) => at && new Date(at).toISOString();

describe("the time of a digest", () => {
  it("stays the same on the clock when clocks change", () => {
    expect(iso(latestSlot(paris("09:00"), ms("2027-03-27T20:00Z"))?.at)).toBe(
      "2027-03-27T08:00:00.000Z",
    );
    expect(iso(latestSlot(paris("09:00"), ms("2027-03-28T20:00Z"))?.at)).toBe(
      "2027-03-28T07:00:00.000Z",
    );
  });

  it("is shifted by as much as the clocks skip", () => {
    const slot = latestSlot(paris("02:30"), ms("2027-03-28T12:00Z"));
    expect(iso(slot?.at)).toBe("2027-03-28T01:30:00.000Z"); // 03:30 in Paris
    expect(slot?.id).toBe("digest-C02STATUS-2027-03-28-0230-Europe/Paris");
  });

  it("is the first of two when clocks go back", () => {
    const slot = latestSlot(paris("02:30"), ms("2027-10-31T01:30Z"));
    expect(iso(slot?.at)).toBe("2027-10-31T00:30:00.000Z");
  });

  it("leaves out days that weren't named", () => {
    const weekday = paris("09:00", ["mon", "tue", "wed", "thu", "fri"]);
    expect(iso(latestSlot(weekday, ms("2026-11-22T12:00Z"))?.at)).toBe("2026-11-20T08:00:00.000Z");
    expect(iso(nextSlot(weekday, ms("2026-11-20T12:00Z"))?.at)).toBe("2026-11-23T08:00:00.000Z");
    expect(latestSlot(paris("09:00", []), ms("2026-11-22T12:00Z"))).toBeUndefined();
  });

  it("occurs once each day in any time zone, at whatever time it is computed", () => {
    const zones = [
      "Europe/Paris",
      "America/Sao_Paulo",
      "Australia/Lord_Howe",
      "Asia/Kolkata",
      "Pacific/Apia",
    ];
    const hours = fc
      .tuple(fc.nat(23), fc.nat(59))
      .map(([h, m]) => `${String(h).padStart(2, "0")}:${String(m).padStart(2, "0")}`);
    fc.assert(
      fc.property(
        fc.constantFrom(...zones),
        hours,
        fc.integer({ min: ms("2011-12-01T00:00Z"), max: ms("2030-01-01T00:00Z") }),
        (timezone, at, now) => {
          const rule = { ...paris(at), timezone };
          const latest = latestSlot(rule, now);
          const next = nextSlot(rule, now);
          expect(latest?.at).toBeLessThanOrEqual(now);
          expect(next?.at).toBeGreaterThan(now);
          expect(latestSlot(rule, next?.at ?? 0)?.id).toBe(next?.id);
          // A day of clock changes is an hour longer or shorter; Apia once left out a whole day
          expect(((next?.at ?? 0) - (latest?.at ?? 0)) / 3_600_000).toBeLessThanOrEqual(48);
          expect(((next?.at ?? 0) - (latest?.at ?? 0)) / 3_600_000).toBeGreaterThanOrEqual(22);
        },
      ),
      { numRuns: 300 },
    );
  });
});

describe("the words of a schedule", () => {
  it("come in any order, and each at most once", () => {
    expect(readSchedule("mon-fri 9:00 europe/paris")).toEqual({
      at: "09:00",
      timezone: "Europe/Paris",
      days: ["mon", "tue", "wed", "thu", "fri"],
    });
    expect(readSchedule("07:30 <#C02STATUS|status>")).toEqual({
      at: "07:30",
      channel: "C02STATUS",
    });
    expect(readSchedule("")).toEqual({});
    expect(readSchedule("weekdays").days).toEqual(["mon", "tue", "wed", "thu", "fri"]);
    expect(readSchedule("Weekends").days).toEqual(["sat", "sun"]);
    expect(() => readSchedule("09:00 10:00")).toThrow("10:00 repeats a setting.");
    expect(() => readSchedule("25:00")).toThrow("25:00 is not a time, time zone, day, or channel.");
    expect(readSchedule("at 9am in #status,")).toEqual({ at: "09:00", channel: "#status" });
  });

  it.each([
    ["9am", "09:00"],
    ["9 am", "09:00"],
    ["9 a.m. mon", "09:00"],
    ["9:00", "09:00"],
    ["0900", "09:00"],
    ["9", "09:00"],
    ["21", "21:00"],
    ["9.30pm", "21:30"],
    ["930PM", "21:30"],
    ["9h30", "09:30"],
    ["9h", "09:00"],
    ["12am", "00:00"],
    ["12pm", "12:00"],
    ["noon", "12:00"],
    ["2330", "23:30"],
  ])("take a time as people write it: %s", (words, at) => {
    expect(readSchedule(words)).toMatchObject({ at });
  });

  it.each(["24", "2400", "13pm", "0am", "9:5", "9:60", "930", "9.5", "-9", "9amm", "٩", "1e1"])(
    "refuse an invalid or ambiguous time: %s",
    (words) => {
      expect(() => readSchedule(words)).toThrow("is not a time");
    },
  );

  it.each([
    ["CET", "Europe/Paris", "CET is Central European time"],
    ["cest", "Europe/Paris", "cest is Central European time"],
    ["GMT", "UTC", "GMT is Greenwich Mean Time"],
    ["EDT", "America/New_York", "EDT is US Eastern time"],
    ["JST", "Asia/Tokyo", "JST is Japan time"],
    ["ＪＳＴ", "Asia/Tokyo", "JST is Japan time"],
    ["CEST,", "Europe/Paris", "CEST is Central European time"],
    ["Paris", "Europe/Paris", undefined],
    ["new_york", "America/New_York", undefined],
    ["Asia/Kolkata", "Asia/Kolkata", undefined],
  ])(
    "take a zone where it has one meaning, and never for a channel: %s",
    (word, timezone, zoneName) => {
      expect(readSchedule(`9am ${word} mon-fri`)).toMatchObject({
        at: "09:00",
        timezone,
        ...(zoneName === undefined ? {} : { zoneName }),
      });
      expect(readSchedule(word)).not.toHaveProperty("channel");
    },
  );

  it.each(["IST", "CST", "BST", "PST", "MST", "AST", "GST", "AMT", "SST", "cst"])(
    "ask back where a zone has several meanings, with what to type: %s",
    (word) => {
      expect(() => readSchedule(`9am ${word} mon-fri`)).toThrow(`${word} can be `);
    },
  );

  it("say the whole command for each meaning of a zone", () => {
    const refused = expect.objectContaining({
      message: "IST can be India time, Israel time, or Irish time. Nothing was done.",
      hint: expect.stringContaining(
        "Type `/gatehouse digest on 09:00 Asia/Kolkata mon-fri` for India time, ",
      ),
    });
    expect(() => readSchedule("09:00 IST mon-fri")).toThrow(refused);
  });

  it.each(["CEO", "GHOST", "COFFEE", "GENERAL", "XYZ", "VST", "UTC+2"])(
    "are no channel and no zone for that they are written in capitals: %s",
    (word) => {
      expect(() => readSchedule(`09:00 ${word}`)).toThrow(
        `${word} is not a time, time zone, day, or channel.`,
      );
    },
  );

  it("are shown in short form", () => {
    expect(daysWords(daily)).toBe("daily");
    expect(daysWords(["fri", "mon", "tue", "wed", "thu"])).toBe("mon-fri");
    expect(daysWords(["wed", "mon"])).toBe("mon, wed");
  });
});

describe("a digest's time", () => {
  const rule = { channel: "C01OPS", timezone: "Europe/Paris" };

  it.each([
    // Clocks in Paris go forward on March 28, 2027, from 02:00 to 03:00
    ["2027-03-27T12:00Z", "02:30", ["sat", "sun"], "2027-03-28T01:30:00.000Z"],
    ["2027-03-28T12:00Z", "09:00", ["mon"], "2027-03-29T07:00:00.000Z"],
    // and back on October 31
    ["2027-10-30T12:00Z", "02:30", ["sat", "sun"], "2027-10-31T00:30:00.000Z"],
    ["2027-10-31T12:00Z", "09:00", ["mon"], "2027-11-01T08:00:00.000Z"],
  ] as const)("after %s, at %s on %s, is %s, for BullMQ and for people", (now, at, days, next) => {
    const digest = { ...rule, at, days };
    const how = { pattern: cronOf(digest), tz: rule.timezone };
    const millis = getNextMillis(Date.parse(now), how);
    expect(new Date(millis ?? 0).toISOString()).toBe(next);
    expect(nextSlot(digest, Date.parse(now))?.at).toBe(millis);
  });
});
