import { describe, expect, it } from "vitest";
import { startReading } from "../../commands/reading.ts";
import { complaintsOf, shownText } from "../../commands/shown-text.ts";

const now = Date.parse("2026-11-20T12:00:00Z");

describe("/vm snapshots", () => {
  it("lists known snapshots, and says why there may be more", async () => {
    const nameOf = (id: string) => (id === "U0OLA" ? "ola" : undefined);
    await using at = await startReading({ now: () => now, nameOf });
    expect(shownText(await at.reads("vm snapshots db-1"))).toBe(
      "Gatehouse knows no snapshot of `db-1`. `/vm snapshot db-1` takes one.\nThe compute service can't list snapshots: these were taken with Gatehouse or restored by an ID typed here. Their sizes are unknown.",
    );
    const of = { vmId: "vm-payments-db-1", vmName: "db-1", projectId: "prj-payments" };
    await at.snapshots.remember({
      ...of,
      id: "snap-1",
      name: "nightly",
      by: "U0OLA",
      at: now - 7_200_000,
      measurement: "ab".repeat(24),
      specs: { cpu: 4, memory: 16 },
    });
    await at.snapshots.remember({ ...of, id: "", name: "lost", by: "U0OLA", at: now - 60_000 });
    const shown = await at.reads("vm snapshots db-1");
    expect(shownText(shown)).toBe(
      [
        "*2 snapshots* of `db-1`, newest first",
        "Name | ID | Taken | By | Size | Measurement",
        "lost | no ID: can't be restored | 1 min ago | ola | ? CPU · ? memory · ? disk | unknown",
        "nightly | snap-1 | 2 h ago | ola | 4 CPU · 16 memory · ? disk | abababababab…",
        "The compute service can't list snapshots: these were taken with Gatehouse or restored by an ID typed here. Their sizes are unknown.",
      ].join("\n"),
    );
    expect(complaintsOf(shown)).toEqual([]);
    // Two snapshots with one name are told apart by their IDs, and age in one form.
    const again = { ...of, name: "nightly", by: "U0OLA" };
    await at.snapshots.remember({ ...again, id: "snap-2", at: now - 7_140_000 });
    expect(shownText(await at.reads("vm snapshots db-1"))).toMatch(
      /nightly \| snap-2 \| 1 h 59 min ago [^]*nightly \| snap-1 \| 2 h ago /,
    );
  });
});
