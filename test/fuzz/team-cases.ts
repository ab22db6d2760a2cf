import * as fc from "fast-check";
import { parsePolicy, type Policy } from "../../src/config/policy-file.ts";
import { commands } from "../../src/features/index.ts";
import type { Person } from "../../src/registry/invocation.ts";
import { policyTerms } from "../../src/features/index.ts";

/** Somewhere that a policy with teams is asked something: who, in which world, with which command, on what. */
export interface TeamCase {
  policy: Policy;
  /** As it was made, for those who judge the answers without our code. */
  places: Readonly<Record<string, Place>>;
  administrators: readonly string[];
  projects: readonly { id: string; name: string; vms: readonly string[] }[];
  person: Person;
  command: (typeof commands)[number];
  /** Which project of `projects`; of a VM's command its first VM. */
  at: number;
  newName: string;
  words: string;
}

export interface Place {
  projects: readonly string[];
  view: readonly string[];
  operate: readonly string[];
  approve: readonly string[];
  breakGlass: readonly string[];
}

export const ourTeamId = "T0OURS";

const people = ["U0A", "U0B", "U0C", "S0X", "S0Y"];
const names = ["pay", "pay-eu", "Pay-EU", "shop", "web", "web-eu", "wob", "prj-2", "naïve"];
const ids = ["prj-1", "prj-2", "prj-3", "prj-4", "pay"];
/** What teams may claim: each goes to one of them at most. */
const claims = ["pay", "pay-?u", "prj-1", "prj-3", "shop*", "w?b", "web-*", "NAÏVE"];

const list = fc.subarray([...people, "*"], { maxLength: 2 });
const lists = fc.record({ view: list, operate: list, approve: list, breakGlass: list });

export const teamCase: fc.Arbitrary<TeamCase> = fc
  .record({
    access: lists,
    administrators: fc.subarray(people, { maxLength: 1 }),
    teams: fc.tuple(lists, lists, lists),
    owners: fc.tuple(...claims.map(() => fc.integer({ min: 0, max: 3 }))),
    ids: fc.shuffledSubarray(ids, { minLength: 1 }),
    called: fc.array(fc.constantFrom(...names), { minLength: 5, maxLength: 5 }),
    person: fc.record({
      id: fc.constantFrom("U0A", "U0B", "U0C"),
      teamId: fc.constantFrom(ourTeamId, ourTeamId, ourTeamId, "T0THEIRS"),
      name: fc.constant("someone"),
      kind: fc.constantFrom<Person["kind"]>(
        "member",
        "member",
        "member",
        "guest",
        "bot",
        "external",
        "deactivated",
      ),
      groups: fc.subarray(["S0X", "S0Y", "S0UNKNOWN"]),
    }),
    command: fc.constantFrom(...commands),
    at: fc.nat(4),
    newName: fc.constantFrom(...names, "else"),
    words: fc.constantFrom(
      ...names,
      ...ids,
      "db",
      "pay/db",
      "web/db",
      "*",
      "pay*",
      "vm-pay-0",
      "vm-prj-1-0",
    ),
  })
  .map(({ access, administrators, teams, owners, ids: chosen, called, at, ...rest }) => {
    const made = teams.flatMap((team, index) => {
      const projects = claims.filter((_, claim) => owners[claim] === index);
      const whole = { projects, ...team, approve: [...team.approve, "S0REVIEW"] };
      return projects.length > 0 ? [[`team-${index}`, whole] as const] : [];
    });
    // Somebody must be able to approve, and to sign a review
    const reviewed = { ...access, approve: [...access.approve, "S0REVIEW"] };
    const places = { access: { projects: [], ...reviewed }, ...Object.fromEntries(made) };
    const file = {
      access: { ...reviewed, administer: administrators },
      teams: Object.fromEntries(made),
      approvals: [{ operations: ["vm.restart", "project.update"], required: 1 }],
    };
    const read = parsePolicy(JSON.stringify(file), "gatehouse.yml", policyTerms);
    if ("problems" in read) throw new Error(read.problems.join("\n"));
    return {
      ...rest,
      policy: read.policy,
      places,
      administrators,
      projects: chosen.map((id, index) => ({
        id,
        name: called[index] ?? "",
        vms: ["db", `only-${id}`].slice(0, 1 + (index % 2)),
      })),
      at: at % chosen.length,
    };
  });
