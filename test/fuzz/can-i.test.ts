import { expect, it } from "vitest";
import { fuzzCanI } from "./can-i.ts";
import { describeFuzzed, usualSeed } from "./fuzzed.ts";

it("100 people read from can-i what then happens, whatever the world, the rules, and the words", async () => {
  const fuzzed = await fuzzCanI({ cases: 100, seed: usualSeed });
  expect([...fuzzed.crashes, ...fuzzed.wrong], describeFuzzed(fuzzed)).toEqual([]);
  // Each end was foretold often enough to be wrong.
  for (const end of ["none", "asked", "ended", "stopped"])
    expect(fuzzed.ends.get(end) ?? 0, describeFuzzed(fuzzed)).toBeGreaterThan(2);
});
