import { expect, it } from "vitest";
import { describeFuzzed, usualSeed } from "./fuzzed.ts";
import { fuzzOneAnswer } from "./one-answer.ts";

it("200 people with a command and a target get one answer, in whichever way they ask", async () => {
  const fuzzed = await fuzzOneAnswer({ cases: 200, seed: usualSeed });
  expect([...fuzzed.crashes, ...fuzzed.wrong], describeFuzzed(fuzzed)).toEqual([]);
  // Each way said yes and no, so that it could be wrong
  for (const [api, { yes, no }] of fuzzed.answers)
    expect(Math.min(yes, no), `${api}: ${yes} + ${no}`).toBeGreaterThan(0);
});
