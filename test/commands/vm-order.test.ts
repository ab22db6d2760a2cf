import { expect, it } from "vitest";
import type { KnownVm } from "../../src/fleet/inventory/inventory.ts";
import { vmOrders } from "../../src/commands/vm/list.ts";

const vm = (id: string, more: Partial<KnownVm> = {}): KnownVm => ({
  id,
  name: id,
  projectId: "p",
  projectName: "p",
  status: "RUNNING",
  ...more,
});

const vms = [
  vm("c", { specs: { cpu: 2, memory: 64 }, createdAt: "2026-01-02T00:00:00Z" }),
  vm("a"),
  vm("b", { specs: { cpu: 8, memory: 16 }, createdAt: "2026-01-03T00:00:00Z", status: "ERROR" }),
  vm("d", { name: "a", projectName: "o" }),
];

it.each([
  ["trouble", "b a d c"],
  ["name", "a d b c"],
  ["project", "d a b c"],
  ["cpu", "b c a d"],
  ["memory", "c b a d"],
  ["newest", "b c a d"],
] as const)("VMs by %s: what isn't known comes last, equals by name and id", (order, ids) => {
  for (const given of [vms, vms.toReversed()])
    expect(
      given
        .toSorted(vmOrders[order])
        .map(({ id }) => id)
        .join(" "),
    ).toBe(ids);
});

it.each(["trouble", "name", "project", "cpu"] as const)(
  "numbers in names count as numbers in the order by %s",
  (order) => {
    const edges = ["edge-10", "edge-2", "edge-0", "edge-1"].map((id) => vm(id));
    expect(edges.toSorted(vmOrders[order]).map(({ id }) => id)).toEqual([
      "edge-0",
      "edge-1",
      "edge-2",
      "edge-10",
    ]);
  },
);
