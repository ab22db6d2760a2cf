import { expect, it } from "vitest";
import { fuzzButtonValues } from "./button-values.ts";
import { flipEvidence } from "./evidence-flips.ts";
import { fuzzEvidence } from "./evidence.ts";
import { describeFuzzed, type Fuzzed, type FuzzOptions, usualSeed } from "./fuzzed.ts";
import { fuzzParser } from "./parser.ts";
import { fuzzServiceAnswers } from "./service-answers.ts";
import { fuzzViewState } from "./view-state.ts";

/** `FUZZ_SEED=7 vitest run test/fuzz` tries other inputs; `npm run faults -- --only F*` tries many more. */
const seed = Number(process.env["FUZZ_SEED"] ?? usualSeed);
/** A whole Gatehouse costs 10 ms a case, a function next to nothing. */
const some: FuzzOptions = { cases: 100, seed };
const more: FuzzOptions = { cases: 300, seed, atAnySpeed: true };

function expectClean(
  fuzzed: Fuzzed,
  { cases }: FuzzOptions,
  accepted: (count: number) => boolean,
): void {
  const what = `seed ${seed}: ${describeFuzzed(fuzzed)}`;
  expect([...fuzzed.crashes, ...fuzzed.wrong], what).toEqual([]);
  expect(fuzzed.cases).toBe(cases);
  expect(accepted(fuzzed.accepted), what).toBe(true);
}

it("300 texts of any kind are read as a command, or refused in a sentence", () => {
  // Else nothing would be proven of what is read
  expectClean(fuzzParser(more), more, (count) => count > 30);
});

it("100 forged presses, rightly signed, change nothing: no vote, no request, no call", async () => {
  expectClean(await fuzzButtonValues(some), some, (count) => count === 0);
});

it("100 forged dialogs, rightly signed, ask for nothing that the same person couldn't ask for in words", async () => {
  expectClean(await fuzzViewState(some), some, (count) => count < 20);
});

it("100 answers of the service become a value that fits or a failure of a known kind", async () => {
  expectClean(await fuzzServiceAnswers(some), some, (count) => count > 10);
});

it("300 pieces of evidence, changed or made up, are never taken for genuine", () => {
  expectClean(fuzzEvidence(more), more, (count) => count === 0);
});

it("90 bits of reports and 60 of quotes turned over are never verified; F7 tries every bit", () => {
  const { tried, verified } = flipEvidence({ ofReports: 30, ofQuotes: 60, seed });
  expect(tried).toBe(150);
  expect(verified).toEqual([]);
});
