import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { checkCases } from "./check-cases.ts";
import { createMints } from "./judging.ts";
import { mutations } from "./mutations.ts";
import { requiredCases } from "./required-cases.ts";

describe("each check of the verifier", () => {
  it("has a case that would miss it", () => {
    const mints = createMints();
    const cases = [...requiredCases(mints), ...checkCases(mints)].map(({ name }) => name);
    expect(new Set(cases).size).toBe(cases.length);
    expect(mutations.filter(({ noticedBy }) => !cases.includes(noticedBy))).toEqual([]);
  });

  it("is missed once it is gone: tried for those of revocation here, for all by the program", () => {
    const program = join(import.meta.dirname, "mutants.ts");
    const said = execFileSync(process.execPath, [program, "revoked"], { encoding: "utf8" });
    expect(said).toMatch(/^\d+ mutants, 0 not noticed\n$/);
  });
});
