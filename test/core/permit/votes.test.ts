import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { countApprovals, type Vote, voteProblemTexts } from "../../../src/core/permit/votes.ts";

const votes = fc.array(
  fc.record<Vote>({
    voterId: fc.constantFrom("U0A", "U0B", "U0C", "U0D"),
    name: fc.constant("x"),
    vote: fc.constantFrom("approve", "deny"),
    at: fc.nat(),
    digest: fc.constantFrom("d1", "d2"),
  }),
  { maxLength: 12 },
);
const people = fc.subarray(["U0A", "U0B", "U0C", "U0D"]).map((ids) => new Set(ids));

describe("approvals that count", () => {
  it("are those of different people who may approve today, on exactly this digest", () => {
    fc.assert(
      fc.property(votes, people, (cast, may) => {
        const counted = countApprovals(cast, "d1", may);
        const right = cast.filter(
          ({ vote, digest, voterId }) => vote === "approve" && digest === "d1" && may.has(voterId),
        );
        expect(counted).toBe(new Set(right.map(({ voterId }) => voterId)).size);
        expect(counted).toBeLessThanOrEqual(may.size);
      }),
      { numRuns: 500 },
    );
  });

  it("never grow when somebody loses the right, or votes again", () => {
    fc.assert(
      fc.property(votes, people, (cast, may) => {
        const before = countApprovals(cast, "d1", may);
        for (const id of may) {
          const fewer = new Set([...may].filter((one) => one !== id));
          expect(countApprovals(cast, "d1", fewer)).toBeLessThanOrEqual(before);
        }
        expect(countApprovals([...cast, ...cast], "d1", may)).toBe(before);
      }),
      { numRuns: 500 },
    );
  });
});

describe("a vote that doesn't count", () => {
  it("has a sentence of its own for each reason", () => {
    const texts = Object.values(voteProblemTexts);
    expect(new Set(texts).size).toBe(texts.length);
    for (const text of texts) expect(text).toMatch(/^[A-Z][^<>]*\.$/);
  });
});
