import { describe, expect, it } from "vitest";
import { runRow } from "./rows/row.ts";
import { rows } from "./rows/index.ts";

/** A worker that is frozen. `npm run faults` has all rows. */
const chosen = ["M3"];

describe("faults", () => {
  for (const row of rows.filter(({ id }) => chosen.includes(id))) {
    it(`${row.id}: ${row.fault}: ${row.must}`, async () => {
      const outcome = await runRow(row, { seed: 4, times: 1, cases: 500 });
      expect(outcome.holds, outcome.notRun ?? outcome.notes.join("\n")).toBe(true);
    });
  }
});
