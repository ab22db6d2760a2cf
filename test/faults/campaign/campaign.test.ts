import { describe, expect, it } from "vitest";
import { runCampaign } from "./campaign.ts";
import { lineOf, tooUnknown } from "../check/checker.ts";
import { shares } from "../people/plan.ts";

describe("two dozen requests while workers die", () => {
  it("does nothing twice, loses nothing and misreports nothing", { timeout: 200_000 }, async () => {
    const { verdict, crashes, frozen } = await runCampaign({
      operations: 24,
      seed: 8,
      posts: { workers: 2, gateways: 1 },
      everyMs: [400, 800],
    });
    expect(lineOf({ ...verdict, unknown: 0, faults: 0 }), verdict.findings.join("\n")).toBe(
      "24 operations, 0 faults | twice 0 | lost 0 | false success 0 | false failure 0 | unknown 0 | silent 0 | audit gaps 0",
    );
    expect(crashes).toEqual([]);
    expect(frozen).toBeUndefined();
    // How many depends on how quickly all are asked
    expect(verdict.faults).toBeGreaterThan(0);
    const ends = Object.keys(verdict.ends);
    expect(tooUnknown(verdict, "no trace")).toEqual([]);
    const asked = shares.filter(([command]) => ends.some((end) => end.startsWith(`${command} `)));
    // A dialog may refuse the only one of its kind, for what another request has left behind
    expect(asked.length).toBeGreaterThanOrEqual(shares.length - 2);
  });
});
