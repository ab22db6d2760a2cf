import { describe, expect, it } from "vitest";
import { runRow } from "./rows/row.ts";
import { rows } from "./rows/index.ts";

/** Those whose faults need whole processes; what one process can show is tested where it stands. */
const chosen = ["S4", "A2", "P4", "X14", "M3"];

describe("faults, one of each family", () => {
  for (const row of rows.filter(({ id }) => chosen.includes(id))) {
    it(`${row.id}: ${row.fault}: ${row.must}`, { timeout: 60_000 }, async () => {
      const outcome = await runRow(row, { seed: 4, times: 1, cases: 500 });
      expect(outcome.holds, outcome.notRun ?? outcome.notes.join("\n")).toBe(true);
    });
  }
});
