import * as z from "zod";
import { describe, expect, it } from "vitest";
import { cutRecord } from "../../src/audit/cut.ts";
import { pinRecord } from "../../src/attestation/pins.ts";
import { freezeNewsRecord, freezeRecord } from "../../src/core/request/freeze.ts";
import { stepRecord } from "../../src/core/request/history.ts";
import {
  denialRecord,
  evidenceRecord,
  requestRecord,
  reviewSignature,
  stageFacts,
  voteRecord,
} from "../../src/core/request/stored-request.ts";
import { noticeRecord } from "../../src/core/deliver/notices.ts";
import { contentsRecord, unreadProjects } from "../../src/fleet/inventory/stored-fleet.ts";
import { snapshotRecord } from "../../src/fleet/inventory/snapshots.ts";
import { createLog } from "../../src/log/log.ts";
import { driftRecord } from "../../src/monitor/drift-records.ts";
import { seenStatusesRecord } from "../../src/monitor/status-records.ts";
import { ownerRecord } from "../../src/operate/installation.ts";
import { presenceRecord } from "../../src/operate/presence.ts";
import { announcedFacts } from "../../src/operate/adopt-policy.ts";
import { boardPlace } from "../../src/redis/board.ts";
import { defineRecord, logUnreadableValues, objectOf } from "../../src/redis/define-record.ts";
import { vmTarget } from "../core/asking.ts";
import { expectOnlyWhole } from "../support/only-whole.ts";

const vm = { id: "vm-1", name: "db-1", projectId: "p-1", projectName: "payments" };
const specs = { cpu: 2, memory: 4, disk: 80 };
const amir = { id: "U0AMIR", name: "amir" };
const change = {
  place: "access.operate",
  removed: ["U0OLD"],
  added: ["U0NEW"],
  isReplaced: false,
  waits: false,
};

const readings: readonly (readonly [name: string, reads: () => void])[] = [
  [
    freezeRecord.name,
    () =>
      expectOnlyWhole(freezeRecord, {
        id: "U0VERA",
        by: "vera",
        cause: "sends-lost",
        reason: "incident 4711",
        at: 1,
        changedAt: 2,
        before: "vera froze all changes before",
      }),
  ],
  [
    freezeNewsRecord.name,
    () => {
      expectOnlyWhole(freezeNewsRecord, { is: "frozen", by: "vera", reason: "" });
      const ended = { by: "vera", reason: "" };
      expectOnlyWhole(freezeNewsRecord, { is: "thawed", by: "ada", ended });
    },
  ],
  [
    stepRecord.name,
    () => {
      expectOnlyWhole(stepRecord, ["sending", "its turn has come"]);
      expectOnlyWhole(stepRecord, ["denied", "denied by U0AMIR", "U0AMIR"]);
    },
  ],
  [
    requestRecord.name,
    () =>
      expectOnlyWhole(requestRecord, {
        id: "r-1",
        command: "vm restart",
        input: { vms: ["vm-1"] },
        target: vmTarget("db-1"),
        requester: { id: "U0OLIVIA", teamId: "T0OURS", name: "olivia" },
        channelId: "C01OPS",
        threadTs: "1.2",
        teamChannel: "C0PAY",
        origin: { kind: "proposal", proposal: "p-1", asker: "U0ADA" },
        reason: "it hangs",
        policyVersion: "v1",
        children: [vmTarget("db-2")],
        labels: { snapshot: "nightly" },
        snapshotAt: 1,
        approval: {
          required: 1,
          votes: [{ from: ["U0AMIR"], required: 1 }],
          needs: [{ called: ["amir"], who: [amir] }],
          expiresAt: 2,
          digest: "abc",
          why: "it destroys data",
          who: [amir],
          remindsAt: 1,
          evidence: [
            ["Status when requested", "RUNNING"],
            ["Created", "today", 3],
          ],
        },
        breakGlass: true,
        createdAt: 1,
        runsUntil: 2,
        interaction: "i-1",
        trace: "abc",
        parentSpan: "abc",
      }),
  ],
  [stageFacts.name, () => expectOnlyWhole(stageFacts, { call: { sentAt: 1 } })],
  [
    voteRecord.name,
    () =>
      expectOnlyWhole(voteRecord, {
        voterId: "U0AMIR",
        name: "amir",
        vote: "deny",
        at: 1,
        digest: "abc",
        meets: [0],
        reason: "not now",
      }),
  ],
  [denialRecord.name, () => expectOnlyWhole(denialRecord, { by: "U0AMIR", reason: "not now" })],
  [
    reviewSignature.name,
    () =>
      expectOnlyWhole(reviewSignature, { byId: "U0AMIR", by: "amir", at: 1, why: "it was down" }),
  ],
  [
    evidenceRecord.name,
    () =>
      expectOnlyWhole(evidenceRecord, {
        line: "It attests.",
        but: "but it doesn't attest",
        failure: { mark: "m", isNew: true },
      }),
  ],
  [
    noticeRecord.name,
    () => {
      const placed = { id: "n-1", channelId: "C01OPS", threadTs: "1.2" };
      const blocks = [{ type: "divider" as const }];
      expectOnlyWhole(noticeRecord, { ...placed, message: { text: "Frozen", blocks } });
      expectOnlyWhole(noticeRecord, { ...placed, facts: "{}" });
    },
  ],
  [
    announcedFacts.name,
    () =>
      expectOnlyWhole(announcedFacts, {
        before: "1",
        after: "2",
        isSameRules: false,
        news: { changes: [change], canceled: ["r-1"], canceledCount: 1 },
      }),
  ],
  [boardPlace.name, () => expectOnlyWhole(boardPlace, { channelId: "C01OPS", threadTs: "1.2" })],
  [
    contentsRecord.name,
    () =>
      expectOnlyWhole(contentsRecord, {
        project: { id: "p-1", name: "payments", type: "TEE_VM", status: "ACTIVE" },
        vms: [{ ...vm, status: "RUNNING", region: "eu", createdAt: "2026-01-01", specs }],
        gaps: { leftOut: [{ name: "web-1", problem: "id is missing" }], isCut: true },
      }),
  ],
  [unreadProjects.name, () => expectOnlyWhole(unreadProjects, ["payments"])],
  [
    snapshotRecord.name,
    () =>
      expectOnlyWhole(snapshotRecord, {
        id: "snap-1",
        name: "nightly",
        vmId: "vm-1",
        vmName: "db-1",
        projectId: "p-1",
        by: "U0OLIVIA",
        at: 1,
        measurement: "ab",
        attestation: "verified",
        specs,
        isSafety: true,
        claimed: { id: "snap-2", by: "U0OLIVIA" },
      }),
  ],
  [
    driftRecord.name,
    () =>
      expectOnlyWhole(driftRecord, {
        vm,
        mark: "m",
        alarm: "a-1",
        reason: "the measurement differs",
        isPinnable: true,
        since: 1,
        recoveredAt: 2,
        verifiedAt: 3,
        lacks: [{ what: "the TCB level", way: "update", isExpired: true, endsAt: 4, since: 1 }],
      }),
  ],
  [
    seenStatusesRecord.name,
    () => {
      const seen = { "vm-1": ["ERROR", 2, "RUNNING", 1], "vm-2": ["STOPPED", 3] } as const;
      expectOnlyWhole(seenStatusesRecord, seen, { keepsMore: false });
    },
  ],
  [
    ownerRecord.name,
    () => {
      const names = { teamId: "T0OURS", team: "ours", botUserId: "U0BOT", appId: "A0" };
      expectOnlyWhole(ownerRecord, { ...names, token: "abc" }, { keepsMore: false });
    },
  ],
  [
    presenceRecord.name,
    () => {
      const tallies = { slack: { calls: 2, failed: { 429: 1 } } };
      const offs = { clockOffMs: 1, slackClockOffMs: 2, logLoss: { lines: 1, since: 1 } };
      const presence = { role: "all", host: "h", tallies, ...offs } as const;
      expectOnlyWhole(presenceRecord, presence, { keepsMore: false });
    },
  ],
  [
    cutRecord.name,
    () => {
      const seal = { seq: 1, hash: "a".repeat(64), id: "1-1", at: 1 };
      const cut = { ...seal, publicKey: "abc", signature: "abc" };
      expectOnlyWhole(cutRecord, cut, { keepsMore: false });
    },
  ],
  [
    pinRecord.name,
    () =>
      expectOnlyWhole(pinRecord, {
        values: "ab",
        request: "r-1",
        vm,
        by: "olivia",
        vouches: ["x"],
      }),
  ],
];

describe("what Gatehouse stores in Redis", () => {
  it.each(readings)("is read whole or not at all: %s", (_name, reads) => reads());
});

describe("a value that can't be read", () => {
  const lamp = defineRecord({
    name: "lamp",
    schema: objectOf<{ isOn: boolean; color?: string }>({
      isOn: z.boolean(),
      color: z.string().exactOptional(),
    }),
  });

  it("is logged once, with its record, its key, and what is wrong, and never with the value", async () => {
    const lines: Record<string, unknown>[] = [];
    const write = (line: string) => lines.push(JSON.parse(line) as Record<string, unknown>);
    const log = createLog({ level: "info", write: (line) => void write(line) });
    const logging = logUnreadableValues(log);
    for (let times = 0; times < 3; times++) {
      expect(lamp.parse('{"isOn":"hunter2"}', "{gatehouse}:lamp:1")).toBeUndefined();
      expect(lamp.parse("hunter2", "{gatehouse}:lamp:2")).toBeUndefined();
    }
    await logging.close();
    lamp.parse("hunter2", "{gatehouse}:lamp:3");
    expect(lines).toMatchObject([
      {
        level: "error",
        event: "redis.unreadable",
        record: "lamp",
        key: "{gatehouse}:lamp:1",
        problem: "isOn: Invalid input: expected boolean, received string",
      },
      { record: "lamp", key: "{gatehouse}:lamp:2", problem: "it isn't JSON" },
    ]);
    expect(lines).toHaveLength(2);
    expect(JSON.stringify(lines)).not.toContain("hunter2");
  });

  it("hides no other value of its hash", () => {
    const fields = { a: lamp.write({ isOn: true }), b: "{", c: lamp.write({ isOn: false }) };
    expect(lamp.parseAll(fields, "lamps")).toEqual([{ isOn: true }, { isOn: false }]);
  });
});
