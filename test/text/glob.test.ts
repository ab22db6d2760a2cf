import { assert, constantFrom, property, string } from "fast-check";
import { describe, expect, it } from "vitest";
import { compileGlob, isGlob, matchesGlob } from "../../src/text/glob.ts";

describe("a glob", () => {
  it.each([
    ["web-*", "web-1", true],
    ["web-*", "web-", true],
    ["web-*", "wweb-1", false],
    ["*", "", true],
    ["*", "anything at all", true],
    ["?", "", false],
    ["?", "x", true],
    ["?", "🦊", true],
    ["web-?", "web-10", false],
    ["web-??", "web-10", true],
    ["*-prod", "db-prod", true],
    ["*-prod", "db-prod-2", false],
    ["a*b*c", "axxbyyc", true],
    ["a*b*c", "axxbyy", false],
    ["prod-*", "Prod-1", false],
    ["a.c", "abc", false],
    ["[ab]", "a", false],
    ["[ab]", "[ab]", true],
    ["**", "x", true],
    ["web", "web", true],
    ["web", "web2", false],
    ["", "", true],
    ["", "x", false],
  ])("%j and %j: %j", (glob, text, matches) => {
    expect(matchesGlob(glob, text)).toBe(matches);
  });

  it("matches what a regular expression of the same meaning matches", () => {
    const pieces = string({ unit: constantFrom("a", "b", "*", "?", "🦊"), maxLength: 8 });
    const texts = string({ unit: constantFrom("a", "b", "🦊"), maxLength: 10 });
    assert(
      property(pieces, texts, (glob, text) => {
        const meaning = glob.replaceAll("?", ".").replaceAll("*", "(?:.*)");
        expect(matchesGlob(glob, text)).toBe(new RegExp(`^${meaning}$`, "su").test(text));
      }),
      { numRuns: 500 },
    );
  });

  it("comes to an end for a pattern that was made to take for ever", () => {
    const matches = compileGlob(`${"*a".repeat(100)}b`);
    expect(matches("a".repeat(300))).toBe(false);
  });

  it("is told from a name by its stars and question marks", () => {
    expect([isGlob("web-1"), isGlob("web-*"), isGlob("web-?")]).toEqual([false, true, true]);
  });
});
