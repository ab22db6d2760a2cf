import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { nearest } from "../../src/text/nearest.ts";

const known = ["operate", "approve", "administer", "view", "breakGlass"];

describe("did you mean", () => {
  it.each([
    ["oprate", "operate"],
    ["Operate", "operate"],
    ["veiw", "view"],
    ["admin", "administer"],
    ["breakglass", "breakGlass"],
  ])("finds what %s was meant to be", (typed, meant) => {
    expect(nearest(typed, known)).toBe(meant);
  });

  it("suggests nothing for a word that is like none", () => {
    expect(nearest("xyzzy", known)).toBeUndefined();
    expect(nearest("", known)).toBeUndefined();
    expect(nearest("x", [])).toBeUndefined();
  });

  it("always finds a known word itself, and only ever answers with a known one", () => {
    fc.assert(fc.property(fc.constantFrom(...known), (word) => nearest(word, known) === word));
    fc.assert(
      fc.property(fc.string(), (word) => [undefined, ...known].includes(nearest(word, known))),
    );
  });
});
