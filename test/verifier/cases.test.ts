import { describe, expect, it } from "vitest";
import { allReasons } from "../../src/verifier/reasons.ts";
import { appraiseEvidence } from "../../src/verifier/appraise-evidence.ts";
import { Newest, verifyEncoded, verifyEvidence } from "../../src/verifier/verify-evidence.ts";
import { checkCases } from "./check-cases.ts";
import { complaintsOf, createMints } from "./judging.ts";
import { requiredCases } from "./required-cases.ts";

const verifier = { appraiseEvidence, Newest, verifyEncoded, verifyEvidence };
const mints = createMints();
const required = requiredCases(mints);
const checks = checkCases(mints);

describe("each required result", () => {
  it("is tried: 42 rows", () => {
    expect([...new Set(required.map(({ row }) => row))]).toEqual(
      Array.from({ length: 42 }, (_, n) => n + 1),
    );
  });

  it.each(required)("$row: $name: $verdict", (one) => {
    expect(complaintsOf(one, verifier)).toEqual([]);
  });
});

describe("each check, alone", () => {
  it("has a case for every reason that the verifier can give", () => {
    const tried = new Set([...required, ...checks].map(({ code }) => code));
    expect(allReasons.filter((reason) => !tried.has(reason))).toEqual([]);
  });

  it.each(checks)("$name: $verdict", (one) => {
    expect(complaintsOf(one, verifier)).toEqual([]);
  });
});
