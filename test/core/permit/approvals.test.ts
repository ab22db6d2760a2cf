import { describe, expect, it } from "vitest";
import {
  approvalRule,
  needsOf,
  approversRefusal,
  voteRefusal,
  voteRefusalText,
} from "../../../src/core/permit/approval-rule.ts";
import { command, ourTeamId, person, policyOf, project, usual, vm } from "./sample.ts";

const strict = policyOf(`
access: { approve: ["S02LEADS"] }
approvals:
  - { operations: ["vm.restore", "project.delete"], targets: ["prod-*"], required: 2, expires: 15m }
  - { operations: ["vm.restart"], targets: ["prod-db*"], required: 1, expires: 5m }
  - { operations: ["vm.restore"], targets: ["test-*"], required: 0 }
  - { operations: ["vm.res*"], targets: ["lab/*"], required: 3, expires: 1h }
`);

describe("the approvals that a request needs", () => {
  it.each([
    ["vm restore", [vm("prod-1")], 2, 0],
    ["vm restore", [vm("PROD-1")], 2, 0],
    ["vm restore", [vm("db", "prod-eu")], 2, 0],
    ["project delete", [project("prod-eu")], 2, 0],
    ["vm restore", [vm("web-1")], 1, "default"],
    ["vm restore", [vm("test-1")], 0, 2],
    ["vm restore", [vm("db", "lab")], 3, 3],
    ["vm restart", [vm("prod-db-1")], 1, 1],
    ["vm restart", [vm("web-1")], 0, "default"],
    ["vm console", [vm("prod-1")], 0, "default"],
    ["vm restore", [vm("test-1"), vm("web-1"), vm("prod-1")], 2, 0],
    ["vm restore", [vm("test-1"), vm("web-1")], 1, "default"],
    ["vm restore", [], 1, "default"],
  ] as const)("%s %o: %i by %s", (name, targets, required, index) => {
    expect(approvalRule(strict, { command: command(name), targets })).toMatchObject({
      required,
      index,
    });
  });

  it("expire as the rule says, else as timing says; of two equally strict rules the shorter counts", () => {
    const fifteenMinutes = 15 * 60_000;
    expect(
      approvalRule(strict, { command: command("vm restore"), targets: [vm("prod-1")] }).expiresMs,
    ).toBe(fifteenMinutes);
    expect(
      approvalRule(strict, { command: command("vm restore"), targets: [vm("web")] }).expiresMs,
    ).toBe(strict.timing.approvalExpiresMs);
    const policy = policyOf(`
access: { approve: ["S02LEADS"] }
approvals:
  - { operations: ["vm.restore"], targets: ["a-*"], required: 1, expires: 1h }
  - { operations: ["vm.restore"], targets: ["b-*"], required: 1, expires: 5m }
`);
    expect(
      approvalRule(policy, { command: command("vm restore"), targets: [vm("a-1"), vm("b-1")] }),
    ).toMatchObject({
      index: 1,
      expiresMs: 300_000,
    });
  });

  it("are never asked for a read, whatever a glob matches", () => {
    const policy = policyOf(
      `{ access: { approve: ["S02LEADS"] }, approvals: [{ operations: ["*"], required: 2 }] }`,
    );
    expect(approvalRule(policy, { command: command("vm list"), targets: [] }).required).toBe(0);
    expect(
      approvalRule(policy, { command: command("gatehouse freeze"), targets: [] }).required,
    ).toBe(0);
    expect(
      approvalRule(policy, { command: command("vm start"), targets: [vm("x")] }).required,
    ).toBe(2);
  });

  it("say why", () => {
    expect(
      approvalRule(strict, { command: command("vm restore"), targets: [vm("prod-1")] }).why,
    ).toBe("approvals[1] in gatehouse.yml requires 2 for vm.restore on prod-*");
    expect(approvalRule(strict, { command: command("vm restore"), targets: [vm("web")] }).why).toBe(
      "destructive commands need one approval; no entry of approvals in gatehouse.yml matches vm.restore",
    );
  });

  it("say which line of gatehouse.yml names the voters, where a rule or a team does", () => {
    const policy = policyOf(`teams:
  pay:
    projects: ["pay"]
    approve: ["S05PAYLEADS"]
approvals:
  - { operations: ["vm.stop"], required: 1 }
  - { operations: ["vm.resize"], votes: [{ from: ["S06SECURITY"] }] }
`);
    const why = (name: string, of: string) =>
      approvalRule(policy, { command: command(name), targets: [vm("db", of)] }).why;
    expect(why("vm stop", "pay")).toBe(
      "approvals[1] in gatehouse.yml requires 1 for vm.stop, of teams.pay.approve (line 4)",
    );
    expect(why("vm stop", "shop")).toBe("approvals[1] in gatehouse.yml requires 1 for vm.stop");
    expect(why("vm resize", "pay")).toBe(
      "approvals[2] in gatehouse.yml (line 7) requires 1 for vm.resize",
    );
    expect(why("vm restore", "pay")).toMatch(
      /^destructive commands in pay need one approval, of teams\.pay\.approve \(line 4\); /,
    );
  });
});

const votes = needsOf(usual, { required: 1 });

describe("a vote", () => {
  const lead = person("U0LEAD", { groups: ["S02LEADS"] });

  it.each([
    ["counts from an approver", lead, "U0ASKER", undefined],
    ["never counts from the requester", lead, "U0LEAD", "own-request"],
    [
      "doesn't count from a requesting administrator either",
      person("U09ADMIN"),
      "U09ADMIN",
      "own-request",
    ],
    [
      "doesn't count from an operator",
      person("U0X", { groups: ["S01ONCALL"] }),
      "U0ASKER",
      "not-an-approver",
    ],
    [
      "doesn't count from an administrator who isn't listed",
      person("U09ADMIN"),
      "U0ASKER",
      "not-an-approver",
    ],
    ["doesn't count from who left the group", person("U0LEAD"), "U0ASKER", "not-an-approver"],
    [
      "doesn't count from who became a guest",
      { ...lead, kind: "guest" as const },
      "U0ASKER",
      "not-one-of-us",
    ],
    ["doesn't count from a bot", { ...lead, kind: "bot" as const }, "U0ASKER", "not-one-of-us"],
    [
      "doesn't count from a deactivated account",
      { ...lead, kind: "deactivated" as const },
      "U0ASKER",
      "not-one-of-us",
    ],
    [
      "doesn't count with a forged team",
      { ...lead, teamId: "T0THEIRS" },
      "U0ASKER",
      "not-one-of-us",
    ],
  ])("%s", (_what, voter, requesterId, expected) => {
    const refused = voteRefusal({
      votes,
      voter,
      ourTeamId,
      requester: { id: requesterId },
    });
    expect(refused).toBe(expected);
    if (refused) expect(voteRefusalText(refused)).toMatch(/\.$/);
  });
});

describe("two accounts with one e-mail address", () => {
  const lead = person("U0LEAD", { groups: ["S02LEADS"], email: "mia@ours.example" });
  const refusedWith = (
    requester: { id: string; email?: string },
    approvers: { id: string; email?: string }[],
  ) => voteRefusal({ votes, voter: lead, ourTeamId, requester, approvers });

  it("are one person, who can't approve their own request, nor twice", () => {
    expect(refusedWith({ id: "U0MIA2", email: "mia@ours.example" }, [])).toBe("own-account");
    const other = { id: "U0ASKER", email: "asker@ours.example" };
    expect(refusedWith(other, [{ id: "U0MIA2", email: "mia@ours.example" }])).toBe("voted-before");
    expect(refusedWith(other, [{ id: "U0LEAD", email: "mia@ours.example" }])).toBeUndefined();
    expect(refusedWith(other, [{ id: "U0OTHER", email: "other@ours.example" }])).toBeUndefined();
  });

  it("are one person, who can't approve what they asked others to request", () => {
    const asked = (asker: { id: string; email?: string }) =>
      voteRefusal({ votes, voter: lead, ourTeamId, requester: { id: "U0OLA" }, asker });
    expect(asked({ id: "U0LEAD" })).toBe("asked-for-it");
    expect(asked({ id: "U0MIA2", email: "mia@ours.example" })).toBe("asked-for-it");
    expect(asked({ id: "U0OTHER", email: "other@ours.example" })).toBeUndefined();
  });

  it("can't be told where Slack names no addresses", () => {
    expect(refusedWith({ id: "U0MIA2" }, [{ id: "U0MIA3" }])).toBeUndefined();
  });
});

describe("whether anybody else could approve", () => {
  const groups: Record<string, string[]> = { S02LEADS: ["U0LEAD", "U0OLA"] };
  const refused = (requesterId: string, required: number, policy = usual) =>
    approversRefusal({
      votes: [{ from: policy.access.approve, required }],
      requesterId,
      membersOf: (group) => groups[group],
    });
  const could = (...asked: Parameters<typeof refused>) => refused(...asked) === undefined;

  it("counts each person once, and never the requester", () => {
    expect(could("U0ANY", 2)).toBe(true);
    expect(could("U0LEAD", 2)).toBe(false);
  });

  it("counts nobody of a group that Slack doesn't know, and everybody for *", () => {
    expect(could("U0ANY", 1, policyOf(`access: { approve: ["S99GONE"] }`))).toBe(false);
    expect(could("U0ANY", 5, policyOf(`access: { approve: ["*"] }`))).toBe(true);
    expect(could("U0ANY", 1, policyOf("{}"))).toBe(false);
  });

  it("says who could, or why nobody", () => {
    const only = (approve: string) => policyOf(`access: { approve: ["${approve}"] }`);
    expect(refused("U0LEAD", 2)).toEqual({
      text: "Not enough approvers: this needs 2 other than you.",
      hint: "Could approve: `U0OLA`. The team that runs Gatehouse can add people in gatehouse.yml.",
    });
    expect(refused("U0ANY", 1, only("S99GONE"))?.hint).toMatch(
      /^Slack doesn't say who is in: `S99GONE`\. The team/,
    );
    expect(refused("U0ANY", 1, policyOf("{}"))?.hint).toMatch(/^Nobody could approve\. The team/);
    expect(refused("U0ONE", 1, only("U0ONE"))?.hint).toMatch(/^Nobody but you could approve\./);
  });
});
