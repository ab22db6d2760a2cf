import { describe, expect, it } from "vitest";
import type { Vm } from "../../../src/compute/compute.ts";
import { gatherApprovalFacts } from "../../../src/requests/submit/submit.ts";
import type { StoredRequest } from "../../../src/requests/journal/record.ts";

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
    progress: { sentAt: now - over.agoMs },
  }) as unknown as StoredRequest;

describe("what an approver sees", () => {
  it("tells the state, the snapshot and its age, both measurements, the usual downtime and the last five requests", () => {
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
      past({ agoMs: 20 * minute, tookMs: 60_000 }),
      past({ agoMs: 30 * minute, tookMs: 50_000 }),
      past({ agoMs: 40 * minute, command: "vm stop", by: "amir" }),
      past({ agoMs: 50 * minute, state: "denied" }),
      past({ agoMs: 60 * minute, by: "sixth" }),
    ];
    const shown = Object.fromEntries(
      gatherApprovalFacts({
        seen: vm,
        vms: [],
        attestation: "failed: the measurement matches no pin",
        snapshot,
        last,
        command: "vm restore",
        now,
      }),
    );
    expect(shown).toMatchObject({
      "Status when requested": "RUNNING",
      "Age of the snapshot": "1 h 30 min",
      "Current attestation": "failed: the measurement matches no pin",
      "Attestation at snapshot": "verified by Gatehouse",
      "Current measurement": "aaaaaaaa…aaaaaaaa",
      "Measurement at snapshot": "bbbbbbbb…bbbbbbbb (differs)",
      "Expected downtime": "about 50 s, as in earlier runs",
    });
    expect(shown["Recent requests"]).toBe(
      "vm restore by olivia 10 min ago: done; vm restore by olivia 20 min ago: done; vm restore by olivia 30 min ago: done; vm stop by amir 40 min ago: done; vm restore by olivia 50 min ago: denied",
    );
  });

  it("says what isn't known instead of leaving it out", () => {
    const shown = Object.fromEntries(
      gatherApprovalFacts({ seen: undefined, vms: [], last: [], command: "vm restore", now }),
    );
    expect(shown).toEqual({
      "Status when requested": "not read",
      "Expected downtime": "not known: no earlier run on this target",
      "Recent requests": "none",
    });
  });

  it("names every VM of a project, and why one more approval is needed", () => {
    const shown = Object.fromEntries(
      gatherApprovalFacts({
        seen: undefined,
        vms: [vm, { ...vm, id: "vm-2", name: "web-1", status: "STOPPED" }],
        last: [],
        command: "project delete",
        now,
        raised: "Gatehouse has no record of this snapshot",
      }),
    );
    expect(shown["VMs in the project"]).toBe("db-1 (RUNNING), web-1 (STOPPED)");
    expect(shown["One additional approval"]).toBe("Gatehouse has no record of this snapshot");
  });
});
