import { describe, expect, it } from "vitest";
import { changeInWords, changesBetween } from "../../src/config/changing-policy.ts";
import { parsePolicy, type Policy } from "../../src/config/policy-file.ts";

const operations = ["vm.restore", "project.delete"].map((name) => ({
  name,
  mayNeedApproval: true,
  isOnVm: false,
  byDefault: 1,
  atLeast: 0,
}));

function policy(text: string): Policy {
  const read = parsePolicy(
    text.replace("approvals:", "access: { approve: [S02LEADS] }\napprovals:"),
    "gatehouse.yml",
    { operations, sections: [] },
  );
  if ("problems" in read) throw new Error(read.problems.join("\n"));
  return read.policy;
}

const words = (before: string, after: string) =>
  changesBetween(policy(before), policy(after)).map(changeInWords);

describe("what a new policy changes", () => {
  it.each([
    [
      "access: { operate: [S01ONCALL, U0OLIVIA] }",
      "access: { operate: [S01ONCALL, U0AMIR] }",
      ["access.operate: added U0AMIR; removed U0OLIVIA"],
    ],
    ["{}", "protect: [vault-*]", ["protect: added vault-*"]],
    ["channels: [C01OPS]", "{}", ["channels: C01OPS → not set"]],
    ["alerts: { channel: C01A }", "alerts: { channel: C01B }", ["alerts.channel: C01A → C01B"]],
    ["{}", "limits: { destructivePerHour: 3 }", ["limits.destructivePerHour: 5 → 3"]],
    ["protect: [a, b]", "protect: [b, a]", ["protect: the order changed"]],
    [
      "approvals: [{ operations: [vm.restore], required: 1 }]",
      "approvals: [{ operations: [vm.restore], required: 0, expires: 1h }]",
      ["approvals[1].required: 1 → 0", "approvals[1].expires: 15m → 1h"],
    ],
    [
      "access: { approve: [S02LEADS] }",
      "approvals: [{ operations: [vm.restore], targets: [db-*], required: 2, expires: 90s }]",
      ["approvals: added (operations vm.restore; targets db-*; required 2; expires 90s)"],
    ],
    [
      "timing: { httpTimeout: 5s }",
      "timing: { httpTimeout: 9s, approvalExpires: 20m }",
      [
        "timing.httpTimeout: 5s → 9s; takes effect at the next start",
        "timing.approvalExpires: 15m → 20m",
      ],
    ],
    [
      "attestation: { endorsements: a }",
      "attestation: { endorsements: b, maxSnapshotAge: 7d }",
      [
        "attestation.endorsements: a → b; takes effect at the next start",
        "attestation.maxSnapshotAge: not set → 7d",
      ],
    ],
    ["# a comment\n{}", "{}", []],
  ])("is told for %j replaced with %j", (before, after, expected) => {
    expect(words(before, after).toSorted()).toEqual(expected.toSorted());
  });
});
