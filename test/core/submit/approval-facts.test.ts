import { describe, expect, it } from "vitest";
import type { Vm } from "../../../src/fleet/compute/compute.ts";
import type { StoredRequest } from "../../../src/core/request/stored-request.ts";
import { gatherApprovalFacts } from "../../../src/core/submit/approval-facts.ts";
import { called } from "../asking.ts";

const now = Date.parse("2026-11-20T12:00:00Z");
const minute = 60_000;
const vm: Vm = {
  id: "vm-1",
  projectId: "p-1",
  name: "db-1",
  status: "RUNNING",
  attestation: { enabled: true, measurement: "a".repeat(64) },
};

const past = (over: {
  command?: string;
  state?: string;
  tookMs?: number;
  agoMs: number;
  by?: string;
}) =>
  ({
    record: {
      command: over.command ?? "vm restore",
      requester: { id: "U0OLIVIA", name: over.by ?? "olivia" },
      createdAt: now - over.agoMs,
    },
    state: over.state ?? "done",
    changedAt: now - over.agoMs + (over.tookMs ?? 0),
    stage: called({ sentAt: now - over.agoMs }),
  }) as unknown as StoredRequest;

describe("what an approver sees", () => {
  it("tells the state, both attestations and measurements, the usual downtime and the last three requests", () => {
    const snapshot = {
      id: "snap-1",
      name: "nightly",
      vmId: "vm-1",
      vmName: "db-1",
      projectId: "p-1",
      at: now - 90 * minute,
      by: "olivia",
      measurement: "b".repeat(64),
      attestation: "verified by Gatehouse",
    };
    const last = [
      past({ agoMs: 10 * minute, tookMs: 40_000 }),
      past({ agoMs: 20 * minute, command: "vm stop", by: "amir", state: "denied" }),
      past({ agoMs: 30 * minute, tookMs: 50_000 }),
      past({ agoMs: 40 * minute, tookMs: 60_000, by: "fourth" }),
    ];
    expect(
      gatherApprovalFacts({
        seen: vm,
        vms: [],
        attestation: "failed: the measurement matches no pin",
        snapshot,
        last,
        command: "vm restore",
      }),
    ).toEqual([
      ["Status when requested", "RUNNING"],
      ["Current attestation", "failed: the measurement matches no pin"],
      ["Attestation at snapshot", "verified by Gatehouse"],
      ["Current measurement", "aaaaaaaa…aaaaaaaa"],
      ["Measurement at snapshot", "bbbbbbbb…bbbbbbbb"],
      ["Expected downtime", "about 50 s, as in earlier runs"],
      // The facts hold times, because an age would be wrong when somebody votes later.
      ["Earlier request", "vm restore by olivia, done", now - 10 * minute],
      ["Earlier request", "vm stop by amir, denied", now - 20 * minute],
      ["Earlier request", "vm restore by olivia, done", now - 30 * minute],
    ]);
  });

  it("leaves out what says nothing: no earlier run, and a snapshot that was taken as the VM is now", () => {
    const nothing = { vms: [], last: [], command: "vm restore" };
    expect(gatherApprovalFacts({ seen: undefined, ...nothing })).toEqual([]);
    const snapshot = {
      id: "snap-1",
      name: "nightly",
      vmId: "vm-1",
      vmName: "db-1",
      projectId: "p-1",
      at: now,
      by: "olivia",
      attestation: "verified by Gatehouse",
    };
    const alike = { ...snapshot, measurement: "a".repeat(64) };
    const attestation = "verified by Gatehouse";
    expect(gatherApprovalFacts({ seen: vm, snapshot: alike, attestation, ...nothing })).toEqual([
      ["Status when requested", "RUNNING"],
      ["Current attestation", "verified by Gatehouse"],
    ]);
    expect(gatherApprovalFacts({ seen: vm, snapshot, ...nothing })).toContainEqual([
      "Measurement at snapshot",
      "not known",
    ]);
  });

  it("names every VM of a project, and why one more approval is needed", () => {
    const shown = Object.fromEntries(
      gatherApprovalFacts({
        seen: undefined,
        vms: [vm, { ...vm, id: "vm-2", name: "web-1", status: "STOPPED" }],
        last: [],
        command: "project delete",
        raised: "Gatehouse has no record of this snapshot",
      }),
    );
    expect(shown["VMs in the project"]).toBe("db-1 (RUNNING), web-1 (STOPPED)");
    expect(shown["One additional approval"]).toBe("Gatehouse has no record of this snapshot");
  });
});
