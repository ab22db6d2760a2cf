import { expect, it } from "vitest";
import { describeFuzzed, usualSeed } from "./fuzzed.ts";
import { fuzzTeamRights } from "./team-rights.ts";

it("400 policies with teams, worlds, and people: nothing is allowed, counted, or shown that isn't of one's team", async () => {
  const fuzzed = await fuzzTeamRights({ cases: 400, seed: usualSeed });
  expect([...fuzzed.crashes, ...fuzzed.wrong], describeFuzzed(fuzzed)).toEqual([]);
  expect(fuzzed.accepted, describeFuzzed(fuzzed)).toBeGreaterThan(40);
});
