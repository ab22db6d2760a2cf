import { array, assert, constantFrom, property, record, subarray } from "fast-check";
import { describe, expect, it } from "vitest";
import { commands } from "../../support/commands.ts";
import { emptyPolicy, type Policy } from "../../../src/config/policy-file.ts";
import { needsOf, voteRefusal } from "../../../src/core/permit/approval-rule.ts";
import { lists, whoAre } from "../../../src/core/permit/access.ts";
import { permissionMatrix, roles } from "./permission-matrix.ts";
import { refusal } from "../../../src/core/permit/refusal.ts";
import { accessLists, ourTeamId, person, policyOf, usual, vm } from "./sample.ts";

const ids = ["U0A", "U0B", "U0C", "S0X", "S0Y"];
const entries = subarray([...ids, "*"]);
const access = record({
  view: entries,
  operate: entries,
  approve: entries,
  administer: entries,
  breakGlass: entries,
});
const anybody = record({
  id: constantFrom("U0A", "U0B", "U0C"),
  kind: constantFrom("member", "guest", "bot", "external", "deactivated"),
  groups: subarray(["S0X", "S0Y", "S0UNKNOWN"]),
  teamId: constantFrom(ourTeamId, "T0THEIRS", ""),
  name: constantFrom("Ola", "*", "U0A"),
});
const anyCommand = constantFrom(...commands);

const isAllowed = (
  policy: Policy,
  who: Parameters<typeof lists>[1],
  command: (typeof commands)[number],
) =>
  refusal({
    policy,
    person: who,
    ourTeamId,
    command,
    targets: [vm("web")],
    channelId: "C0",
    vms: [],
  }) === undefined;

describe("any policy", () => {
  it("lets nobody change anything when it is empty", () => {
    assert(
      property(anybody, anyCommand, (who, command) => {
        if (command.class !== "read") expect(isAllowed(emptyPolicy(), who, command)).toBe(false);
      }),
      { numRuns: 500 },
    );
  });

  it("takes nothing from anybody when somebody is added", () => {
    assert(
      property(
        access,
        anybody,
        anyCommand,
        constantFrom(...accessLists),
        array(constantFrom(...ids, "*")),
        (before, who, command, list, added) => {
          const policy = { ...usual, access: before };
          const more = { ...policy, access: { ...before, [list]: [...before[list], ...added] } };
          if (isAllowed(policy, who, command)) expect(isAllowed(more, who, command)).toBe(true);
        },
      ),
      { numRuns: 500 },
    );
  });

  it("lets nobody but full members of our team change anything or vote", () => {
    assert(
      property(access, anybody, anyCommand, (all, who, command) => {
        const policy = { ...usual, access: all };
        if (who.kind === "member" && who.teamId === ourTeamId) return;
        if (command.class !== "read") expect(isAllowed(policy, who, command)).toBe(false);
        expect(
          voteRefusal({
            votes: needsOf(policy, { required: 1 }),
            voter: who,
            ourTeamId,
            requester: { id: "U0OTHER" },
          }),
        ).toBeDefined();
      }),
      { numRuns: 500 },
    );
  });

  it("decides by ids and known groups, never by names", () => {
    assert(
      property(access, anybody, anyCommand, (all, who, command) => {
        const policy = { ...usual, access: all };
        const renamed = { ...who, name: "U09ADMIN", groups: [...who.groups, "S0MADEUP"] };
        expect(isAllowed(policy, renamed, command)).toBe(isAllowed(policy, who, command));
      }),
      { numRuns: 500 },
    );
  });
});

describe("the lists of a person", () => {
  it("are those that name them, their group, or everyone", () => {
    expect(lists(usual, person("U0OLA"), ourTeamId)).toEqual(["view", "operate", "approve"]);
    expect(lists(usual, person("U0X", { groups: ["S02LEADS"] }), ourTeamId)).toEqual([
      "view",
      "approve",
    ]);
    expect(lists(usual, person("U0OLA", { kind: "bot" }), ourTeamId)).toEqual([]);
  });

  it("name people and groups apart", () => {
    expect(whoAre(usual.access.operate)).toEqual({
      everyone: false,
      users: ["U0OLA"],
      groups: ["S01ONCALL"],
    });
    expect(whoAre(usual.access.view)).toEqual({ everyone: true, users: [], groups: [] });
  });
});

describe("the permission matrix", () => {
  const policy = policyOf(
    `{ access: { view: ["*"], operate: ["S01ONCALL"] }, channels: ["C01OPS"] }`,
  );
  const row = (name: string) => {
    const found = permissionMatrix(policy, commands).find(({ command }) => command === name);
    return { approvals: found?.approvals, may: roles.filter((role) => found?.may[role]) };
  };

  it("has a row for every command, and each role in it", () => {
    const matrix = permissionMatrix(policy, commands);
    expect(matrix.map(({ command }) => command)).toEqual(commands.map(({ name }) => name));
    for (const { may } of matrix) expect(Object.keys(may)).toEqual([...roles]);
  });

  it("tells who may run it, and what it takes", () => {
    const members = ["member", "view", "operate", "approve", "administer", "breakGlass"];
    expect(row("vm show")).toEqual({ approvals: 0, may: [...members, "guest"] });
    expect(row("vm restart")).toEqual({ approvals: 0, may: ["operate"] });
    expect(row("vm restore")).toEqual({ approvals: 1, may: ["operate"] });
    expect(row("gatehouse thaw")).toEqual({ approvals: 0, may: ["administer"] });
    expect(row("gatehouse freeze")).toEqual({ approvals: 0, may: ["approve", "administer"] });
  });
});
