import { describe, expect, it } from "vitest";
import { isRun } from "./row.ts";
import { rows } from "./rows/index.ts";

/** Those whose faults need whole processes; what one process can show is tested where it stands. */
const chosen = ["S1", "S4", "S8", "A2", "A15", "P4", "C1", "N2", "X14", "M3", "M5", "F5"];

describe("faults, one of each family", () => {
  for (const row of rows.filter(({ id }) => chosen.includes(id))) {
    it(`${row.id}: ${row.what}`, { timeout: 60_000 }, async ({ skip }) => {
      if (!isRun(row)) throw new Error(row.notRun);
      const outcome = await row.run({ seed: 4, times: 3, cases: 500 });
      if (outcome.notRun !== undefined) skip(outcome.notRun);
      expect(outcome.holds, outcome.notes.join("\n")).toBe(true);
    });
  }

  it("runs or names every row of the matrix", () => {
    const ids = rows.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    for (const row of rows) if (!isRun(row)) expect(row.notRun, row.id).not.toBe("");
  });
});
