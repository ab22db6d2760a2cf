import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { pickSnapshot } from "../../../src/features/snapshots/pick-snapshot.ts";
import type { GatewayContext } from "../../../src/talk/gateway-context.ts";
import type { SuggestRequest } from "../../../src/slack/receive/interaction.ts";
import { type Reading, startReading } from "../../commands/reading.ts";
import { ourTeamId } from "../../core/permit/sample.ts";

const now = Date.parse("2026-11-20T12:00:00Z");
let at: Reading;
beforeAll(async () => {
  at = await startReading({ world: "demo" });
  for (const [id, name, isSafety, hoursAgo] of [
    ["snap-1", "nightly", false, 1],
    ["snap-2", "before-r-1", true, 1],
    ["snap-3", "weekly", false, 1],
    ["snap-4", "weekly", false, 49],
    ["snap-5", "twice", false, 1],
    ["snap-6", "twice", false, 1],
    ["", "no-id-given", false, 1],
  ] as const) {
    await at.snapshots.remember({
      id,
      name,
      vmId: "vm-payments-db-1",
      vmName: "db-1",
      projectId: "prj-payments",
      at: now - hoursAgo * 3_600_000,
      by: "olivia",
      isSafety,
    });
  }
});
afterAll(() => at[Symbol.asyncDispose]());

async function offered(over: Partial<SuggestRequest>) {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a picker asks for nothing else
  const gateway = { snapshots: at.snapshots, now: () => now } as unknown as GatewayContext;
  const privateMetadata = JSON.stringify({ targetId: "vm-payments-db-1" });
  const who = { userId: "U0OLA", teamId: ourTeamId };
  return pickSnapshot(
    { ...who, action: "pick:snapshot", typed: "", privateMetadata, ...over },
    gateway,
  );
}

describe("the picker of snapshots", () => {
  it("offers snapshots of the form's VM, without those that can't be restored", async () => {
    const all = await offered({ action: "pick:snapshot" });
    const ids = ["snap-1", "snap-2", "snap-3", "snap-4", "snap-5", "snap-6"];
    expect(all.map(({ value }) => value).toSorted()).toEqual(ids);
    // Two snapshots with one name must be distinguishable, even after one was chosen.
    const labelOf = (id: string) => all.find(({ value }) => value === id)?.label;
    expect(labelOf("snap-3")).toBe("weekly of 11:00 AM UTC");
    expect(labelOf("snap-4")).toBe("weekly of Nov 18, 11:00 AM UTC");
    expect(labelOf("snap-5")).toBe("twice of 11:00 AM UTC, snap-5");
    expect(labelOf("snap-1")).toBe("nightly");
    expect(all.find(({ value }) => value === "snap-2")?.description).toBe(
      "safety snapshot, 1 h old, snap-2",
    );
    expect(
      (await offered({ action: "pick:snapshot", typed: "night" })).map(({ value }) => value),
    ).toContain("snap-1");
    expect(
      await offered({
        action: "pick:snapshot",
        privateMetadata: '{"targetId":"vm-payments-web-2"}',
      }),
    ).toEqual([]);
  });

  it("offers an unknown ID, because the service can't list snapshots", async () => {
    expect(await offered({ action: "pick:snapshot", typed: "snap-77" })).toEqual([
      { label: "Use the ID snap-77", value: "snap-77" },
    ]);
    expect(await offered({ action: "pick:snapshot", typed: "x".repeat(76) })).toEqual([]);
  });

  it.each(["", "null", "{", "[]", '{"targetId":7}'])(
    "offers nothing when the form's metadata is %j",
    async (privateMetadata) => {
      expect(await offered({ action: "pick:snapshot", privateMetadata })).toEqual([]);
    },
  );
});
