import { describe, expect, it } from "vitest";
import { snapshotsInDigests } from "../../../src/features/snapshots/tell-snapshots.ts";
import type { KnownVm } from "../../../src/fleet/inventory/inventory.ts";
import { policyOf } from "../../core/permit/sample.ts";

const now = Date.parse("2026-11-20T08:00:00Z");
const hour = 3600_000;

const running = (name: string, status = "RUNNING"): KnownVm => ({
  id: `vm-${name}`,
  name,
  projectId: "p-shop",
  projectName: "shop",
  status,
  createdAt: "2020-01-01T00:00:00Z",
});

async function told(yaml: string) {
  const part = snapshotsInDigests({
    snapshots: {
      newest: async () =>
        new Map([
          ["vm-db-1", now - 8 * 24 * hour],
          ["vm-db-2", now - 12 * 24 * hour],
          ["vm-db-3", now - hour],
          ["vm-down", now - 30 * 24 * hour],
        ]),
    },
    config: { policy: policyOf(yaml) },
  });
  const vms = [
    running("db-1"),
    running("db-2"),
    running("db-3"),
    running("down", "ERROR"),
    running("moving", "REBOOTING"),
    { ...running("bare"), createdAt: "2026-11-01T08:00:00Z" },
    { ...running("fresh"), createdAt: "2026-11-20T01:00:00Z" },
  ];
  const { all } = await part.read({
    vms,
    seesAll: true,
    only: async (reading) => reading,
    since: 0,
    now,
  });
  return all.flatMap(({ lines }) =>
    lines.map(({ text, button }) => [text.value.replaceAll("`", ""), button?.label]),
  );
}

describe("what digests say about snapshots", () => {
  it("is which settled VMs have only old ones, the oldest first, and which that aren't new have none", async () => {
    expect(await told("access: { view: [] }")).toEqual([
      [
        "💾 No snapshot that Gatehouse knows of in the last 7 d: shop/db-2, shop/db-1.",
        "Snapshots of db-2",
      ],
      ["💾 No snapshot that Gatehouse knows of: shop/bare.", "Snapshots of bare"],
    ]);
  });

  it("goes by the age after which a restore needs one more approval, where that is set", async () => {
    const [old] = await told("attestation: { maxSnapshotAge: 10d }");
    expect(old?.[0]).toBe("💾 No snapshot that Gatehouse knows of in the last 10 d: shop/db-2.");
  });
});
