import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parsePolicy } from "../../../src/config/policy-file.ts";
import { metBy } from "../../../src/config/seats.ts";
import {
  channelOfProject,
  lists,
  placesSeen,
  scopeOfChannel,
  teamsOf,
  unmatchedIn,
} from "../../../src/core/permit/access.ts";
import {
  approvalRule,
  allNeeds,
  covers,
  oneMore,
  stillNeeded,
  totalOf,
  approversRefusal,
  voteRefusal,
} from "../../../src/core/permit/approval-rule.ts";
import { refusal } from "../../../src/core/permit/refusal.ts";
import { globsOverlap } from "../../../src/text/glob.ts";
import { command, ourTeamId, person, policyOf, project, vm } from "./sample.ts";
import { terms } from "../../support/commands.ts";
import { channelsNamed, everyoneNamed } from "../../../src/config/named-in-policy.ts";

const two = policyOf(`
access:
  view: ["S0ALL"]
  operate: ["S0PLATFORM"]
  approve: ["S0PLATFORM"]
  administer: ["U9ADMIN"]
teams:
  payments:
    projects: ["prj-8841", "payments", "payments-*"]
    view: ["S0SUPPORT"]
    operate: ["S0PAYONCALL"]
    approve: ["S0PAYLEADS"]
    breakGlass: ["U0GLASS"]
    channel: C0PAYOPS
  search:
    projects: ["search*"]
    operate: ["S0SEARCH"]
    approve: ["S0SEARCH"]
approvals:
  - operations: ["vm.restore"]
    targets: ["payments/*"]
    votes:
      - { from: ["S0PAYLEADS"], required: 1 }
      - { from: ["S0SECURITY"], required: 1 }
    expires: 30m
`);

const payOncall = person("U0PAY", { groups: ["S0PAYONCALL"] });
const searcher = person("U0SEA", { groups: ["S0SEARCH"] });
const platform = person("U0PLA", { groups: ["S0PLATFORM"] });
const admin = person("U9ADMIN");

function refusedOf(who: typeof admin, name: string, target = vm("db-1", "payments")) {
  return refusal({
    policy: two,
    person: who,
    ourTeamId,
    command: command(name),
    targets: [target],
    channelId: "C0ANY",
    vms: [],
  });
}

describe("the team of a project", () => {
  it.each([
    [{ id: "prj-8841", name: "anything" }, ["payments"]],
    [{ id: "p-1", name: "PAYMENTS-eu" }, ["payments"]],
    [{ id: "p-1", name: "search" }, ["search"]],
    [{ id: "p-1", name: "shop" }, []],
    [{ id: "p-1", name: undefined }, []],
    [{ id: "", name: "payments-new" }, ["payments"]],
    // When the ID belongs to one team and the name to another, both decide.
    [{ id: "prj-8841", name: "search-2" }, ["payments", "search"]],
  ])("is, of %o, %o", (owned, expected) => {
    expect(teamsOf(two, owned)).toEqual(expected);
  });
});

it("what teams claim and no project has is known, for administrators", () => {
  const known = [
    { id: "prj-8841", name: "billing" },
    { id: "p-2", name: "Payments-EU" },
  ];
  expect(unmatchedIn(two, known)).toEqual([
    { team: "payments", entries: ["payments"] },
    { team: "search", entries: ["search*"] },
  ]);
});

it("the team of a project is found among 200 teams with 5,000 projects", () => {
  const teams = Array.from({ length: 200 }, (_, team) => [
    `team-${team}`,
    { projects: Array.from({ length: 25 }, (_each, n) => `project-${team}-${n}`) },
  ]);
  const policy = policyOf(JSON.stringify({ teams: Object.fromEntries(teams) }));
  const found = Array.from({ length: 5_000 }, (_, n) =>
    teamsOf(policy, { id: `p-${n}`, name: `project-${n % 200}-${n % 25}` }),
  );
  expect(found.filter(([team], n) => team !== `team-${n % 200}`)).toEqual([]);
});

describe("rights over what a team has", () => {
  it("are those that the team gives, and nobody else's", () => {
    expect(refusedOf(payOncall, "vm restart")).toBeUndefined();
    for (const who of [searcher, platform])
      expect(refusedOf(who, "vm restart")?.rule).toBe("teams.payments.operate");
    expect(refusedOf(payOncall, "vm restart", vm("web-1", "shop"))?.rule).toBe("access.operate");
    expect(refusedOf(platform, "vm restart", vm("web-1", "shop"))).toBeUndefined();
    expect(refusedOf(payOncall, "vm show")).toBeUndefined();
    expect(refusedOf(platform, "vm show")?.rule).toBe("teams.payments.view");
    expect(refusedOf(admin, "vm show")).toBeUndefined();
  });

  it("must be there in both teams where a project is in two, or a new name leads to another", () => {
    const both = { ...vm("db-1", "search-2"), projectId: "prj-8841" };
    expect(refusedOf(payOncall, "vm restart", both)?.rule).toBe("teams.search.operate");
    const renamed = { policy: two, person: payOncall, ourTeamId, channelId: "C0ANY", vms: [] };
    const rename = (name: string) =>
      refusal({
        ...renamed,
        command: command("project update"),
        targets: [project("payments-eu")],
        input: { name },
      })?.rule;
    expect(rename("payments-us")).toBeUndefined();
    expect(rename("search-us")).toBe("teams.search.operate");
    expect(rename("shop")).toBe("access.operate");
  });

  it("are decided on in the team's channel, and in neither channel where two teams claim it", () => {
    expect(channelOfProject(two, { id: "prj-1", name: "payments" })).toBe("C0PAYOPS");
    const both = { id: "prj-8841", name: "search-2" };
    expect(scopeOfChannel(two, "C0PAYOPS")?.sees(both)).toBe(false);
    expect(channelOfProject(two, both)).toBeUndefined();
  });

  it("count for what has no target yet where any gives them", () => {
    expect(lists(two, payOncall, ourTeamId)).toContain("operate");
    expect(lists(two, payOncall, ourTeamId)).not.toContain("administer");
    expect(placesSeen(two, payOncall, ourTeamId)).toEqual(["teams.payments"]);
    expect(placesSeen(two, admin, ourTeamId)).toEqual(["access", "teams.payments", "teams.search"]);
    expect(placesSeen(two, person("U0NOBODY"), ourTeamId)).toEqual([]);
  });

  it("include break-glass of the team alone", () => {
    const glass = { policy: two, ourTeamId, channelId: "C0ANY", breakGlass: true, vms: [] };
    const asked = { ...glass, person: person("U0GLASS"), command: command("vm restart") };
    expect(refusal({ ...asked, targets: [vm("db-1", "payments")] })).toBeUndefined();
    expect(refusal({ ...asked, targets: [vm("db-1", "search")] })?.rule).toBe(
      "teams.search.breakGlass",
    );
  });
});

describe("votes that a rule names", () => {
  const needed = approvalRule(two, {
    command: command("vm restore"),
    targets: [vm("db-1", "payments")],
  });
  const lead = person("U1LEAD", { groups: ["S0PAYLEADS"] });
  const security = person("U2SEC", { groups: ["S0SECURITY"] });
  const asked = { votes: needed.votes, ourTeamId, requester: { id: "U0PAY" } };

  it("are each required, from whom they name", () => {
    expect(needed).toMatchObject({ required: 2, expiresMs: 30 * 60_000 });
    expect(voteRefusal({ ...asked, voter: lead })).toBeUndefined();
    expect(voteRefusal({ ...asked, voter: security, approvers: [lead] })).toBeUndefined();
    expect(voteRefusal({ ...asked, voter: platform })).toBe("not-an-approver");
  });

  it("count one person once, and take no second one for the same need", () => {
    const second = person("U3LEAD", { groups: ["S0PAYLEADS"] });
    expect(voteRefusal({ ...asked, voter: second, approvers: [lead] })).toBe("not-needed");
    expect(voteRefusal({ ...asked, voter: second, approvers: [lead], isNo: true })).toBeUndefined();
    // A person who fits both needs takes one, and leaves the other to the second approver.
    const both = person("U4BOTH", { groups: ["S0PAYLEADS", "S0SECURITY"] });
    expect(voteRefusal({ ...asked, voter: lead, approvers: [both] })).toBeUndefined();
    expect(voteRefusal({ ...asked, voter: security, approvers: [both] })).toBeUndefined();
  });

  it("find as many as possible, compared with every assignment tried", () => {
    const needs = [
      { from: ["A"], required: 1 },
      { from: ["A", "B"], required: 2 },
      { from: ["C"], required: 1 },
    ];
    const kinds = [["A"], ["B"], ["C"], ["A", "B"], ["B", "C"], ["A", "C"]];
    const fits = (need: (typeof needs)[number], one: readonly string[]) =>
      one.some((group) => need.from.includes(group));
    const best = (people: readonly (readonly string[])[], places: readonly number[]): number => {
      const [one, ...others] = people;
      if (!one) return 0;
      const taken = needs.flatMap((need, index) => {
        const left = places[index] ?? 0;
        if (left === 0 || !fits(need, one)) return [];
        return [
          1 +
            best(
              others,
              places.map((n, at) => (at === index ? n - 1 : n)),
            ),
        ];
      });
      return Math.max(best(others, places), ...taken);
    };
    for (let seed = 0; seed < 6 ** 4; seed += 1) {
      const people = [0, 1, 2, 3].map((at) => kinds[Math.floor(seed / 6 ** at) % 6] ?? []);
      const met = metBy(needs, people, fits).reduce((sum, one) => sum + one, 0);
      expect(met, JSON.stringify(people)).toBe(best(people, [1, 2, 1]));
    }
  });

  it("are told when asked where nobody could give them", () => {
    const members: Record<string, string[]> = { S0PAYLEADS: ["U0PAY", "U1LEAD"], S0SECURITY: [] };
    const no = approversRefusal({
      votes: needed.votes,
      requesterId: "U0PAY",
      membersOf: (group) => members[group],
    });
    expect(no?.text).toBe("Not enough approvers: this needs 2 other than you.");
    members["S0SECURITY"] = ["U1LEAD"];
    expect(
      approversRefusal({
        votes: needed.votes,
        requesterId: "U0PAY",
        membersOf: (group) => members[group],
      }),
    ).toBeDefined();
    members["S0SECURITY"] = ["U1LEAD", "U2SEC"];
    expect(
      approversRefusal({
        votes: needed.votes,
        requesterId: "U0PAY",
        membersOf: (group) => members[group],
      }),
    ).toBeUndefined();
  });

  it.each([
    [[["S0PAYLEADS"], ["S0PAYLEADS"]], 2],
    [[["S0PAYLEADS", "U9X"], ["U9X", "S0PAYLEADS"], ["S0SECURITY"]], 3],
  ])("are a seat for each entry, of the same people too: %o needs %i", (seats, required) => {
    const votes = seats.map((from) => `{ from: ${JSON.stringify(from)} }`).join(", ");
    const policy = policyOf(
      `access: { approve: ["U0A"] }\napprovals: [{ operations: ["vm.restore"], votes: [${votes}] }]`,
    );
    const rule = approvalRule(policy, {
      command: command("vm restore"),
      targets: [vm("db-1"), vm("db-2")],
    });
    expect(rule).toMatchObject({ required, why: expect.stringContaining(`requires ${required}`) });
    // One person fills only one seat.
    expect(totalOf(stillNeeded(rule.votes, [lead, lead]))).toBe(required - 2);
    expect(totalOf(stillNeeded(rule.votes, [lead]))).toBe(required - 1);
  });

  it("are covered by themselves and one more, however their lists overlap", () => {
    const needs = fc.array(
      fc.record({
        from: fc.uniqueArray(fc.constantFrom("U0A", "U0B", "U0C"), { minLength: 1 }),
        required: fc.integer({ min: 1, max: 3 }),
      }),
      { minLength: 1, maxLength: 4 },
    );
    fc.assert(
      fc.property(needs, needs, (some, others) => {
        const both = allNeeds([some, others]);
        expect(covers(both, some) && covers(both, others)).toBe(true);
        expect(covers(oneMore(some), some)).toBe(true);
        expect(totalOf(oneMore(some))).toBe(totalOf(some) + 1);
        const [first, ...rest] = some;
        expect(first && covers(allNeeds([rest]), some)).toBe(false);
      }),
    );
  });

  it("are those of both teams for a target in two", () => {
    const both = { ...vm("db-1", "search-2"), projectId: "prj-8841" };
    const rule = approvalRule(two, { command: command("vm restore"), targets: [both] });
    expect(rule.votes.map(({ from }) => from)).toEqual([["S0PAYLEADS"], ["S0SEARCH"]]);
    expect(rule.required).toBe(2);
  });
});

describe("a file with teams", () => {
  const problemsOf = (yaml: string) => {
    const read = parsePolicy(yaml, "gatehouse.yml", terms);
    return "problems" in read ? read.problems : [];
  };

  it("names everybody and every place that it gives something to", () => {
    expect(everyoneNamed(two)).toEqual(
      expect.arrayContaining(["S0ALL", "S0PAYONCALL", "S0SEARCH", "S0SECURITY", "U9ADMIN"]),
    );
    expect(channelsNamed(two)).toEqual(["C0PAYOPS"]);
  });

  it("is refused where two teams claim a project, with both lines", () => {
    expect(
      problemsOf(`teams:
  payments:
    projects: ["pay*"]
  billing:
    projects: ["billing", "payroll"]
`),
    ).toEqual([
      "gatehouse.yml line 3: teams.payments.projects[1] (pay*, which can be what payroll is,) is claimed by the team billing too: a project has one team",
      "gatehouse.yml line 5: teams.billing.projects[2] (payroll, which can be what pay* is,) is claimed by the team payments too: a project has one team",
    ]);
  });

  it.each([
    ["a team without projects", `teams: { a: { projects: [] } }`, "must name at least one project"],
    [
      "both kinds of votes",
      `approvals: [{ operations: ["vm.restore"], required: 1, votes: [{ from: ["S0A"] }] }]`,
      "must contain either `required` or `votes`",
    ],
    [
      "neither",
      `approvals: [{ operations: ["vm.restore"] }]`,
      "must contain either `required` or `votes`",
    ],
    [
      "a vote that nobody can give",
      `approvals: [{ operations: ["vm.restore"], votes: [{ from: ["U0A"], required: 2 }] }]`,
      "too few people are named",
    ],
    [
      "one person twice",
      `approvals: [{ operations: ["vm.restore"], votes: [{ from: ["U0A"] }, { from: ["U0A"] }] }]`,
      "too few people are named",
    ],
  ])("is refused with %s", (_what, yaml, sentence) => {
    expect(problemsOf(yaml).join("\n")).toContain(sentence);
  });
});

describe("globs that can match one name", () => {
  it.each([
    ["pay*", "payroll", true],
    ["pay*", "*roll", true],
    ["pay-?", "pay-*", true],
    ["a*b", "b*a", false],
    ["a?c", "abcd", false],
    ["*", "x", true],
    ["a*", "b*", false],
    ["a", "a", true],
    ["*a*", "*b*", true],
    ["a?", "?b", true],
    ["a?", "?bc", false],
  ])("%s and %s: %s", (one, other, expected) => {
    expect(globsOverlap(one, other)).toBe(expected);
    expect(globsOverlap(other, one)).toBe(expected);
  });
});
