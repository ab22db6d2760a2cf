import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { compareNames } from "../../src/text/compare-names.ts";

describe("the order of names", () => {
  it("counts numbers as numbers, and ignores case before anything else", () => {
    const names = ["edge-10", "Edge-2", "edge-1", "edge-011", "api", "edge-2", "edge-2a", "web 3"];
    expect(names.toSorted(compareNames)).toEqual([
      "api",
      "edge-1",
      "edge-2",
      "Edge-2",
      "edge-2a",
      "edge-10",
      "edge-011",
      "web 3",
    ]);
  });

  it("is one order for all names: only equal names are equal", () => {
    const name = fc.string({ maxLength: 6, unit: fc.constantFrom("a", "A", "é", "0", "1", "-") });
    fc.assert(
      fc.property(name, name, name, (a, b, c) => {
        expect(compareNames(a, b) === 0).toBe(a === b);
        expect(Math.sign(compareNames(a, b))).toBe(-Math.sign(compareNames(b, a)) || 0);
        if (compareNames(a, b) < 0 && compareNames(b, c) < 0)
          expect(compareNames(a, c)).toBeLessThan(0);
      }),
    );
  });
});
