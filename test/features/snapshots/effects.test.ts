import { describe, expect, it } from "vitest";
import type { Vm } from "../../../src/fleet/compute/compute.ts";
import { restore } from "../../../src/features/snapshots/restore.ts";
import { defaultName, snapshot } from "../../../src/features/snapshots/snapshot.ts";
import { vmTarget } from "../../core/asking.ts";

const early = { updatedAt: "2026-11-20T12:00:00Z" };
const late = { updatedAt: "2026-11-20T12:00:05Z" };
const vm = (status: string, over: Partial<Vm> = {}): Vm => ({
  id: "vm-1",
  projectId: "p-1",
  name: "web-1",
  status,
  ...over,
});
const running = vm("RUNNING");

describe("vm snapshot and vm restore", () => {
  it("never start from an unknown status, and a restore waits for a transition to end", () => {
    const refusal = {
      text: "web-1 is MIGRATING, a status that Gatehouse doesn't know.",
      hint: "Nothing was sent. Check it in the compute service's own console.",
    };
    expect(snapshot.effect.notNow?.(vm("MIGRATING"))).toEqual(refusal);
    expect(restore.effect.notNow?.(vm("MIGRATING"))).toEqual(refusal);
    for (const status of ["CREATING", "RUNNING", "STOPPED", "REBOOTING", "ERROR"])
      expect(restore.effect.notNow?.(vm(status)), status).toBeUndefined();
    expect(restore.effect.notNow?.(vm("DELETING"))).toBeDefined();
  });

  it("are never disproven by reads", () => {
    expect(snapshot.effect.untouched).toBeUndefined();
    expect(snapshot.effect.wanted(running, running, {})).toBe(false);
    expect(restore.effect.needsMark).toBe(true);
    expect(restore.effect.untouched).toBeUndefined();
  });

  it("are proven by a transitional status: a new timestamp proves nothing, because the safety snapshot changes it too", () => {
    const { mark, wanted } = restore.effect;
    expect(mark?.(vm("REBOOTING"), running)).toBe(true);
    expect(mark?.(vm("CREATING"), running)).toBe(true);
    expect(mark?.(running, running)).toBe(false);
    expect(mark?.(vm("RUNNING", late), vm("RUNNING", early))).toBe(false);
    expect(wanted(vm("STOPPED"), running, {})).toBe(true);
    expect(wanted(vm("ERROR"), running, {})).toBe(false);
  });

  it("name a snapshot after its VM and the time by default", () => {
    expect(defaultName("db-1", new Date("2026-11-20T03:12:59Z"))).toBe("db-1-20261120-0312");
    expect(defaultName("x".repeat(300), new Date(0)).length).toBeLessThanOrEqual(100);
  });
});

describe("the warning of a restore", () => {
  const since = Date.parse("2026-11-20T11:58:38Z");
  const said = (input: Record<string, unknown>, lost?: { since: number; forMs: number }) =>
    restore.risk?.({ target: vmTarget("db-1"), input, vms: [], lost }).map(String);

  it("names what was written since the snapshot, and the undo", () => {
    expect(said({}, { since, forMs: 82_000 })).toEqual([
      "⚠️ *Everything written to db-1 since <!date^1795175918^{time}|11:58 AM UTC> is replaced.* A safety snapshot is taken first, so it can be undone.",
    ]);
  });

  it("stands out when there is no undo", () => {
    expect(said({ noSafety: true })).toEqual([
      "🚨 *All data of db-1 is replaced* with the snapshot's. Later data is lost. *No undo: no safety snapshot is taken.*",
    ]);
  });
});
