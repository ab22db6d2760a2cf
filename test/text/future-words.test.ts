import { describe, expect, it } from "vitest";
import { timeNamedIn } from "../../src/text/future-words.ts";

describe("a time in a sentence", () => {
  it.each([
    ["web-2 in 10 minutes", "in 10 minutes"],
    ["web-2 in 10m", "in 10m"],
    ["web-2 in an hour.", "in an hour"],
    ["web-2 in half an hour please", "in half an hour"],
    ["web-2 in a few minutes", "in a few minutes"],
    ["web-2 after 5 mins", "after 5 mins"],
    ["web-2 at 5pm", "at 5pm"],
    ["web-2 at 17:00 CET", "at 17:00 CET"],
    ["web-2 at 5", "at 5"],
    ["web-2 at 1700", "at 1700"],
    ["web-2 5 pm", "5 pm"],
    ["web-2 tomorrow", "tomorrow"],
    ["web-2 tomorrow morning at 9am", "tomorrow morning at 9am"],
    ["web-2 tonight!", "tonight"],
    ["web-2 later", "later"],
    ["web-2 on Monday", "on Monday"],
    ["web-2 next week", "next week"],
    ["web-2 every night", "every night"],
    ["web-2 at midnight", "at midnight"],
    ["web-2 every 5 minutes", "every 5 minutes"],
    ["web-2 10 minutes from now", "10 minutes from now"],
    ["web-2 in the next hour", "in the next hour"],
    ["web-2 after hours", "after hours"],
    ["web-2 before 2026-12-01", "before 2026-12-01"],
    ["web-2 when it is idle", "when it is idle"],
    ["web-2 once db-1 is up", "once db-1 is up"],
    ["web-2 ｉｎ １０ ｍｉｎｕｔｅｓ", "in 10 minutes"],
  ])("is found: %s", (text, time) => {
    expect(timeNamedIn(text, { onlyNames: false })).toBe(time);
  });

  it.each([
    "web-2",
    "web-2 in payments",
    "web-2 in 10-prod",
    "web-2 before-monday",
    "db-1 nightly",
    "db-1 friday",
    "db-1 2026-12-01",
    "in-10-minutes",
    "tomorrow-1",
    "later-web",
    "web-2 web-5pm",
    "",
  ])("isn't seen in names: %j", (text) => {
    expect(timeNamedIn(text, { onlyNames: false })).toBeUndefined();
  });

  it("is seen in more words where only names could stand", () => {
    expect(timeNamedIn("web-2 friday", { onlyNames: true })).toBe("friday");
    expect(timeNamedIn("web-2 today", { onlyNames: true })).toBe("today");
  });
});
