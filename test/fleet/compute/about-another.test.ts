import { describe, expect, it } from "vitest";
import type { Compute } from "../../../src/fleet/compute/compute.ts";
import { answering, clientOf, failureOf, says, vmRecord } from "./answering.ts";

const project = { id: "p-2", name: "search", type: "TEE_VM", status: "ACTIVE" };
const report = { measurement: "aa", report: "AAAA", verified: true };

describe("an answer about another VM or project", () => {
  it.each<[what: string, body: object, ask: (compute: Compute) => Promise<unknown>]>([
    ["a VM's record", { ...vmRecord, id: "vm-2" }, ({ vms }) => vms.get("vm-1")],
    [
      "one in a wrapper",
      { data: { vm: { ...vmRecord, id: "vm-2" } } },
      ({ vms }) => vms.get("vm-1"),
    ],
    ["a report", { ...report, vm_id: "vm-2" }, ({ vms }) => vms.attestation("vm-1")],
    ["metrics", { cpu_usage: [], vm_id: 2 }, ({ vms }) => vms.metrics("vm-1", "1h")],
    [
      "a console",
      { url: "wss://console.invalid/?token=fake", vm_id: "vm-2" },
      ({ vms }) => vms.console("vm-1"),
    ],
    ["a project's record", project, ({ projects }) => projects.get("p-1")],
    [
      "a VM in the list of a project",
      { vms: [{ ...vmRecord, id: "vm-1", project_id: "p-2" }] },
      ({ projects }) => projects.vms("p-1"),
    ],
  ])("is unexpected: %s", async (_what, body, ask) => {
    await using server = await answering(says(body));
    await using compute = clientOf(server.url);
    expect(await failureOf(ask(compute))).toMatchObject({
      kind: "unexpected",
      message: expect.stringContaining("is that of another one"),
    });
  });

  it("is no proof that a snapshot was taken", async () => {
    await using server = await answering(says({ snapshot_id: "snap-1", vm_id: "vm-2" }, 201));
    await using compute = clientOf(server.url);
    expect(await compute.vms.snapshot("vm-1", "nightly")).toEqual({ status: 201 });
  });

  it("is fine where it names the one that was asked for, or none", async () => {
    await using server = await answering(says({ ...report, vm_id: "vm-1" }));
    await using compute = clientOf(server.url);
    expect(await compute.vms.attestation("vm-1")).toMatchObject({ measurement: "aa" });
    await using silent = await answering(says(report));
    await using other = clientOf(silent.url);
    expect(await other.vms.attestation("vm-1")).toMatchObject({ measurement: "aa" });
  });
});
