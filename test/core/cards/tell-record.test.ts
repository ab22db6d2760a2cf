import { describe, expect, it } from "vitest";
import { stepWords, tellRecord, tellStep } from "../../../src/core/cards/tell-record.ts";
import { hideSecret } from "../../../src/log/log.ts";

const people: Readonly<Record<string, string>> = { U1ADA: "ada", U2AMIR: "amir" };
const called = {
  person: (id: string) => people[id] ?? id,
  vm: (id: string) => (id === "vm-1" ? "db-1" : id),
};

const restarted = { who: "U1ADA", command: "vm restart", target: "vm-1" };

describe("a record of the audit trail in words", () => {
  it.each([
    [
      { what: "freeze", who: "U1ADA", why: "odd things." },
      "🧊 *ada* froze all changes: “odd things”.",
    ],
    [{ what: "thaw", who: "U1ADA" }, "🧊 *ada* allowed changes again."],
    [
      { what: "thaw", who: "U1ADA", ended: { by: "U2AMIR", at: 1, why: "odd things." } },
      "🧊 *ada* allowed changes again, which ended the freeze by *amir*: “odd things”.",
    ],
    [
      {
        what: "refusal",
        who: "U1ADA",
        command: "vm stop",
        targets: ["vm-1", "vm-2"],
        rule: "protected",
      },
      "⛔ *ada* was refused `vm stop` of `db-1`, `vm-2` (rule: protected).",
    ],
    [
      { what: "alarm", request: "r-1", why: "it differs from what was approved" },
      "🚨 it differs from what was approved.",
    ],
    [
      { what: "audit-erased", who: "U1ADA", why: "left", erased: [{ seq: 1 }] },
      "⚠️ *ada* erased 1 audit record: “left”.",
    ],
    [
      { what: "audit-read", who: "U1ADA", about: "db-1" },
      "👀 *ada* read the audit trail about `db-1`.",
    ],
    [
      { what: "console", who: "U1ADA", target: { kind: "vm", id: "vm-1" } },
      "🖥️ *ada* opened a console on `db-1`.",
    ],
    [
      { what: "console-opening", who: "U1ADA", target: { kind: "vm", id: "vm-1" } },
      "🖥️ *ada* asked the compute service for a console on `db-1`.",
    ],
    [
      { what: "console-unopened", who: "U1ADA", target: { kind: "vm", id: "vm-1" } },
      "🖥️ The compute service opened no console on `db-1` for *ada*.",
    ],
    [
      { what: "attestation", target: { id: "vm-1" }, move: "failed", why: "it is in debug mode" },
      "🔴 `db-1` failed attestation: it is in debug mode.",
    ],
    [
      { what: "attestation", target: { id: "vm-1" }, move: "verified", why: "is verified again" },
      "🟢 `db-1`: attestation is verified again.",
    ],
    [
      { what: "attestation", target: { id: "vm-1" }, move: "ended", why: "no longer fails" },
      "⚪ `db-1`: attestation no longer fails.",
    ],
    [{ what: "alert", source: "prometheus", firing: 2 }, "🔥 2 alerts from `prometheus` fire."],
    [
      { what: "alert", source: "am", firing: 1, alerts: ["HighCpu"], on: ["db-1"] },
      "🔥 1 alert from `am` (`HighCpu` on `db-1`) fires.",
    ],
    [
      { what: "alert", source: "am", firing: 0, alerts: ["HighCpu"], on: [] },
      "✅ The alerts from `am` (`HighCpu`) ended.",
    ],
    [
      { what: "remedy", ...restarted, verdicts: { HighCpu: "helped", DiskFull: "unclear" } },
      "✅ `HighCpu` ended after the `vm restart` of `db-1` by *ada*.",
    ],
    [
      { what: "remedy", ...restarted, verdicts: { HighCpu: "failed", DiskFull: "helped" } },
      "🔥 `HighCpu` went on after the `vm restart` of `db-1` by *ada*; `DiskFull` ended.",
    ],
    [
      { what: "remedy", ...restarted, verdicts: { HighCpu: "early" } },
      "⚪ `HighCpu` had ended before the `vm restart` of `db-1` by *ada*.",
    ],
    [
      {
        what: "proposal",
        who: "pilot",
        command: "vm stop",
        target: "vm-1",
        move: "open",
        why: "idle",
      },
      "💡 *pilot* proposed `vm stop` of `db-1`: “idle”.",
    ],
    [
      { what: "proposal", who: "pilot", command: "vm stop", target: "vm-1", move: "expired" },
      "⚪ Nobody ran `vm stop` of `db-1` in time, which *pilot* had proposed.",
    ],
    [
      { what: "dismissal", who: "U1ADA", command: "vm stop", target: "vm-1", why: "it is busy" },
      "⚪ *ada* dismissed the proposal of `vm stop` of `db-1`: “it is busy”.",
    ],
    [{ what: "digest-snooze", who: "U1ADA", line: "red" }, "• *ada*: digest snooze: “red”."],
    [{ odd: { deep: true } }, "• *Gatehouse*: a record."],
  ])("%j", (record, words) => {
    expect(tellRecord(record, called).value).toBe(words);
  });

  it("has people's words for each step of a request", () => {
    const step = { what: "request", target: { kind: "vm", id: "vm-1", name: "db-1" } };
    const told = [
      { move: "draft", why: "requested", who: "U1ADA" },
      { vote: "approve", who: "U2AMIR" },
      { move: "sending", why: "claimed" },
      { move: "done", why: "read RUNNING" },
      { move: "cancelled", why: "cancelled", who: "U1ADA" },
      { move: "not-applied", why: "it did not happen, says U2AMIR: seen" },
    ].map((one) => tellStep({ ...step, ...one }, called).value);
    expect(told).toEqual([
      "*ada* requested, waiting for approval",
      "*amir* approved",
      "being sent",
      "done: read RUNNING",
      "canceled (ada)",
      "did not happen: it did not happen, says amir: seen",
    ]);
    expect(stepWords("authorized", "approved by U2AMIR")).toBe("approved by U2AMIR");
  });

  it("shows no secret, whoever wrote it there", () => {
    hideSecret("hunter2hunter2");
    const record = { what: "freeze", who: "U1", why: "hunter2hunter2 and xoxb-12-34-abc" };
    expect(tellRecord(record, called).value).not.toMatch(/hunter2|xoxb-12/);
  });
});
