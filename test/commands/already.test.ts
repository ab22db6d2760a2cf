import { describe, expect, it } from "vitest";
import { resize } from "../../src/commands/vm/resize.ts";
import { restore } from "../../src/commands/vm/restore.ts";
import type { Vm } from "../../src/compute/compute.ts";

const vm = (status: string, updatedAt = "2026-11-20T12:00:00Z"): Vm => ({
  id: "vm-1",
  projectId: "p-1",
  name: "web-1",
  status,
  updatedAt,
  specs: { cpu: 4, memory: 8 },
});

describe("what proves nothing by itself", () => {
  it.each([
    ["RUNNING", true],
    ["STOPPED", true],
    ["REBOOTING", false],
    ["ERROR", false],
  ])("specs that are as wanted count as resized already when %s: %s", (status, expected) => {
    expect(resize.effect.already?.(vm(status), { cpu: 4, memory: 8 })).toBe(expected);
  });

  it("a time of change that moved is no sign of a restore: the safety snapshot moves it too", () => {
    const now = vm("RUNNING", "2026-11-20T12:00:05Z");
    expect(restore.effect.mark?.(now, vm("RUNNING"))).toBe(false);
    expect(restore.effect.mark?.(vm("REBOOTING"), vm("RUNNING"))).toBe(true);
  });
});
