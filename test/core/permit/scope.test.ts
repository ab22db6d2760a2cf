import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  alertChannel,
  channelOfTeam,
  policyPlaceOf,
  scopeOfChannel,
  scopeShownTo,
  seesUnder,
} from "../../../src/core/permit/access.ts";
import { compileTargetGlobs, matchingTarget } from "../../../src/core/permit/refusal.ts";
import { twoTeams } from "./two-teams.ts";
import { ourTeamId, person, policyOf, usual } from "./sample.ts";

const project = (name: string) => ({ id: `p-${name}`, name });
const place = (name: string) => policyPlaceOf(twoTeams, project(name));

describe("what a channel may be told", () => {
  it("is what its team has, and elsewhere what no team has", () => {
    const sees = (channel: string, name: string) =>
      scopeOfChannel(twoTeams, channel)?.sees(project(name));
    expect(["payments", "search", "shop"].map((name) => sees("C01OPS", name))).toEqual([
      true,
      false,
      false,
    ]);
    expect(["payments", "search", "shop"].map((name) => sees("C09ANY", name))).toEqual([
      false,
      false,
      true,
    ]);
    expect(scopeOfChannel(usual, "C01OPS")).toBeUndefined();
  });

  it("is what both have, in a channel that two teams share", () => {
    const shared = policyOf(`teams:
  a: { projects: ["a"], channel: C01OPS }
  b: { projects: ["b"], channel: C01OPS }`);
    const scope = scopeOfChannel(shared, "C01OPS");
    expect(["a", "b", "c"].map((name) => scope?.sees(project(name)))).toEqual([true, true, false]);
  });

  it("is shown to a person as far as they see it, and all of that in their direct messages", () => {
    const shown = (id: string, channel: string, name: string) => {
      const scope = scopeShownTo(person(id), channel, twoTeams, ourTeamId);
      return scope === undefined || scope.sees(project(name));
    };
    expect(shown("U0PAY", "C01OPS", "payments")).toBe(true);
    expect(shown("U0SEA", "C01OPS", "payments")).toBe(false);
    expect(shown("U9ADMIN", "C01OPS", "payments")).toBe(true);
    expect(shown("U9ADMIN", "C01OPS", "search")).toBe(false);
    expect(shown("U0PAY", "D0PAY", "payments")).toBe(true);
    expect(shown("U0PAY", "D0PAY", "search")).toBe(false);
    expect(scopeShownTo(person("U0ANY"), "C01OPS", usual, ourTeamId)).toBeUndefined();
  });

  it("is not what had or has a name of another team", () => {
    const scope = scopeOfChannel(twoTeams, "C01OPS");
    expect(seesUnder(scope, "p-1", ["payments", undefined])).toBe(true);
    expect(seesUnder(scope, "p-1", ["payments", "search"])).toBe(false);
    expect(seesUnder(scope, "p-1", [undefined])).toBe(false);
    expect(seesUnder(undefined, "p-1", [undefined])).toBe(true);
  });
});

describe("an alarm", () => {
  it("goes to the team, else to alerts; of a team without a channel to the audit channel", () => {
    const where = (name: string) => alertChannel(twoTeams, place(name));
    expect(["payments-eu", "search", "shop", "lab"].map(where)).toEqual([
      "C01OPS",
      "C07VENDOR",
      "C02STATUS",
      "C03AUDIT",
    ]);
    expect(channelOfTeam(twoTeams, place("lab"))).toBeUndefined();
    expect(channelOfTeam(twoTeams, place("shop"))).toBeUndefined();
    // The audit channel gets alarms about a team that is gone, or about two teams by mistake.
    expect(alertChannel(twoTeams, "teams.gone")).toBe("C03AUDIT");
    expect(alertChannel(twoTeams, "teams.payments teams.search")).toBe("C03AUDIT");
  });
});

describe("globs over VMs and projects", () => {
  const name = fc.stringMatching(/^[a-cA-C]{1,3}(-[ab]{1,2})?$/);
  const glob = fc.stringMatching(/^[a-cA-C*?]{1,3}(-\*)?(\/[a-c*?]{1,3})?$/);

  it("name the same VMs as those of protect and approvals", () => {
    fc.assert(
      fc.property(fc.array(glob, { maxLength: 3 }), name, name, (globs, own, projectName) => {
        const vm = {
          kind: "vm",
          id: "v",
          projectId: "p",
          status: "",
          name: own,
          projectName,
        } as const;
        expect(compileTargetGlobs(globs)(vm)).toBe(matchingTarget(globs, vm) !== undefined);
      }),
    );
  });

  it("name a project by all that it holds, too", () => {
    const names = compileTargetGlobs(["Payments/*"]);
    expect(names({ kind: "project", name: "payments" })).toBe(true);
    expect(names({ kind: "vm", name: "payments", projectName: "shop" })).toBe(false);
  });
});
