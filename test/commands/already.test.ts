import { describe, expect, it } from "vitest";
import { resize } from "../../src/commands/vm/resize.ts";
import type { Vm } from "../../src/fleet/compute/compute.ts";

const vm = (status: string): Vm => ({
  id: "vm-1",
  projectId: "p-1",
  name: "web-1",
  status,
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
});
