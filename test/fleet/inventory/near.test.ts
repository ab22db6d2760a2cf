import { assert, property, string, constantFrom } from "fast-check";
import { describe, expect, it } from "vitest";
import { editDistance } from "../../../src/text/nearest.ts";

const word = string({ unit: constantFrom("a", "b", "-", "1"), maxLength: 8 });

/** The textbook way, without shortcuts. */
function slips(a: string, b: string): number {
  const d = Array.from({ length: a.length + 1 }, (_, i) =>
    Array.from({ length: b.length + 1 }, (__, j) => i || j),
  );
  const at = (i: number, j: number) => d[i]?.[j] ?? Infinity;
  for (let i = 1; i <= a.length; i++) {
    for (let j = 1; j <= b.length; j++) {
      const cost = a[i - 1] === b[j - 1] ? 0 : 1;
      let least = Math.min(at(i - 1, j) + 1, at(i, j - 1) + 1, at(i - 1, j - 1) + cost);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        least = Math.min(least, at(i - 2, j - 2) + 1);
      d[i]?.splice(j, 1, least);
    }
  }
  return at(a.length, b.length);
}

describe("slips between two names", () => {
  it.each([
    ["web-1", "web-1", 0],
    ["wbe-1", "web-1", 1],
    ["web1", "web-1", 1],
    ["web--1", "web-1", 1],
    ["wab-1", "web-1", 1],
    ["bwe-1", "web-1", 2],
  ])("%s and %s: %i", (a, b, expected) => {
    expect(editDistance(a, b, 2)).toBe(expected);
  });

  it("are counted right up to the most that is asked for", () => {
    assert(
      property(word, word, (a, b) => {
        expect(editDistance(a, b, 2)).toBe(Math.min(slips(a, b), 3));
      }),
      { numRuns: 3000 },
    );
  });
});
