import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  Markdown,
  channelLink,
  duration,
  escape,
  lines,
  md,
  mention,
  name,
  plain,
  readable,
  when,
} from "../../src/messages/markdown.ts";
import { mrkdwn } from "../../src/messages/text-objects.ts";
import { printable } from "../../src/text/terminal.ts";
import { hostileTexts } from "./hostile.ts";
import { anyCharacter } from "../support/any-character.ts";

const anything = fc.oneof(
  fc.constantFrom(...hostileTexts),
  fc.string({ unit: anyCharacter, maxLength: 200 }),
);
// oxlint-disable-next-line no-control-regex -- what must not be there
const unseen = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]/;

describe("text from outside, put into a message", () => {
  it("is 200 hostile texts, and none of them stays markup", () => {
    expect(hostileTexts).toHaveLength(200);
    for (const text of hostileTexts) {
      for (const shown of [escape(text, 3000), md`${text}`.value, name(text).value]) {
        expect(shown).not.toMatch(/[<>]/);
        expect(shown).not.toMatch(unseen);
      }
      expect(escape(text, 3000)).not.toMatch(/[`*~]|@(?=\w)|:(?=[\w+-]+:)/);
    }
  });

  it("has nothing in it that nobody sees, nor half a character", () => {
    const tags = Array.from("Restart db-1", (one) =>
      String.fromCodePoint(0xe0000 + one.charCodeAt(0)),
    );
    const hidden = `${tags.join("")}\u{e0100}\u034f\u115f\u2800\u3164\ud800`;
    expect(plain(`web${hidden}-2${hidden} ▶\ufe0f`)).toBe("web-2 ▶\ufe0f");
    expect(JSON.parse(`"${printable(hidden)}"`)).toBe(hidden);
  });

  it("stays in its code span, whatever it is", () => {
    fc.assert(
      fc.property(anything, (text) => {
        const shown = name(text).value;
        expect(shown.split("`")).toHaveLength(3);
        expect(shown.slice(1, -1)).not.toBe("");
      }),
      { numRuns: 100 },
    );
  });

  it("is cut after it was escaped without ending in an entity, a mention, a link, or a code span", () => {
    const parts = ["<<<&>>>", "`web-1`", "web & db", "a", "<U0VICTIM>"];
    const whole = fc
      .array(fc.oneof(fc.constantFrom(...parts), anything), { maxLength: 20 })
      .map((texts) =>
        texts.flatMap((text) => [md`${text}`.value, name(text).value, "<@U0AMIR>", when(0).value]),
      );
    fc.assert(
      fc.property(whole, fc.integer({ min: 1, max: 400 }), (texts, most) => {
        const text = texts.join(" ");
        const shown = mrkdwn(new Markdown(text), most).text;
        expect(shown.length).toBeLessThanOrEqual(Math.max(1, most));
        if (text.length > most) expect(shown).toContain("…");
        expect(shown.replaceAll(/<[^<>]*>|&(?:amp|lt|gt);/g, "")).not.toMatch(/[<>&]/);
        expect(shown.split("`").length % 2).toBe(1);
      }),
      { numRuns: 300 },
    );
    expect(mrkdwn(md`${name("web-*")} ${"x".repeat(50)}`, 6).text).toBe("`web…`");
  });

  it("keeps the asterisk of a glob where its style is taken away", () => {
    expect(readable(md`*3 VMs* (${name("web-*")})`).value).toBe("3 VMs (web-*)");
  });

  it("is cut at whole characters, with a sign that it was", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "grapheme", maxLength: 60 }),
        fc.integer({ min: 1, max: 20 }),
        (text, most) => {
          const shown = plain(text, most);
          expect(Array.from(shown).length).toBeLessThanOrEqual(most);
          expect(shown.isWellFormed()).toBe(text.isWellFormed() || shown.isWellFormed());
        },
      ),
      { numRuns: 100 },
    );
    expect(plain("🟢".repeat(9), 4)).toBe("🟢🟢🟢…");
  });

  it("reads as it did, where it is harmless", () => {
    expect(escape("payments/web-1 is RUNNING (4 CPU), 50% & more")).toBe(
      "payments/web-1 is RUNNING (4 CPU), 50% &amp; more",
    );
    expect(md`*${"db-1"}*: ${"a_b"} ${md`_so_`}`.value).toBe("*db-1*: a_b _so_");
    expect(md`${"one "}${" two"}`.value).toBe("one  two");
  });
});

describe("mentions and links", () => {
  it("are made of ids only: anything else is shown as code", () => {
    expect(mention("U0OLIVIA").value).toBe("<@U0OLIVIA>");
    expect(channelLink("C01OPS").value).toBe("<#C01OPS>");
    for (const text of [...hostileTexts, "u0olivia", "U0 X", "", "U0A>", "S02LEADS"]) {
      expect(mention(text).value).not.toMatch(/[<>]/);
      expect(channelLink(text).value).not.toMatch(/[<>]/);
    }
  });
});

describe("times and lengths of time", () => {
  it("are shown in the reader's own zone, with UTC for those who can't", () => {
    expect(when(Date.UTC(2026, 10, 20, 12, 1, 7)).value).toBe(
      "<!date^1795176067^{time_secs}|12:01:07 PM UTC>",
    );
  });

  it.each([
    [0, "1 s"],
    [850, "1 s"],
    [59_400, "59 s"],
    [59_600, "1 min"],
    [95_000, "1 min 35 s"],
    [3_600_000, "1 h"],
    [7_500_000, "2 h 5 min"],
    [47 * 3_600_000, "47 h"],
    [50 * 3_600_000, "2 d"],
  ])("%s ms is %s", (ms, words) => {
    expect(duration(ms)).toBe(words);
  });

  it("never say 60 of anything", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 1e9 }), (ms) => !/\b60 (s|min)/.test(duration(ms))),
      { numRuns: 100 },
    );
  });
});

describe("lines", () => {
  it("leave out what isn't there", () => {
    expect(lines(md`a`, undefined, false, md``, md`b`).value).toBe("a\nb");
  });
});
