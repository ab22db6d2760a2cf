import { array, assert, constantFrom, integer, property, record, subarray, pre } from "fast-check";
import { describe, expect, it } from "vitest";
import { commands } from "../../support/commands.ts";
import { isChange } from "../../../src/registry/define.ts";
import { approvalRule } from "../../../src/core/permit/approval-rule.ts";
import { type Judged, refusal } from "../../../src/core/permit/refusal.ts";
import {
  isPolicy,
  command,
  ourTeamId,
  person,
  policyOf,
  project,
  vm,
  vmsCalled,
} from "./sample.ts";

const operator = `access: { operate: ["U0OLA"], approve: ["S02LEADS"], administer: ["U0ADA"] }`;

/** Returns the rule that refuses, or "yes", with the approvals that are needed. */
function ruleOf(
  yaml: string,
  asked: { name: string; target?: ReturnType<typeof project>; as?: string; vmNames?: string[] },
) {
  const { name, target = project("pay"), as, vmNames = [] } = asked;
  const input = as === undefined ? {} : { name: as };
  const policy = policyOf(`${operator}\n${yaml}`);
  const judged = { command: command(name), targets: [target], input, vms: vmsCalled(...vmNames) };
  const refused = refusal({
    ...judged,
    policy,
    person: person("U0OLA"),
    ourTeamId,
    channelId: "C0",
  });
  return { rule: refused?.rule ?? "yes", text: refused?.text, ...approvalRule(policy, judged) };
}

describe("a project's new name", () => {
  const approvals = `approvals: [{ operations: ["project.*"], targets: ["prod-*"], required: 2 }]`;

  it("needs the approvals of the old name, of the new one, and of the VMs inside", () => {
    const rule = (name: string, as: string, vmNames: string[] = []) =>
      ruleOf(approvals, { name: "project update", target: project(name), as, vmNames });
    expect(rule("prod-pay", "pay").required).toBe(2);
    expect(rule("pay", "prod-pay")).toMatchObject({
      required: 2,
      why: "approvals[1] in gatehouse.yml requires 2 for project.update on prod-* (because of its new name prod-pay)",
    });
    expect(rule("pay", "shop", ["web", "prod-db"])).toMatchObject({
      required: 2,
      why: "approvals[1] in gatehouse.yml requires 2 for project.update on prod-* (because of prod-db)",
    });
    expect(rule("pay", "shop", ["web"]).required).toBe(0);
  });

  it("needs what every rule asks that it leads out of, whatever operation that is about", () => {
    const rule = (yaml: string, name: string, as: string, vmNames: string[] = []) =>
      ruleOf(yaml, { name: "project update", target: project(name), as, vmNames });
    const deletes = `approvals: [{ operations: ["project.delete"], targets: ["prod-*"], required: 2 }]`;
    expect(rule(deletes, "prod-pay", "pay")).toMatchObject({
      required: 2,
      why: "approvals[1] in gatehouse.yml requires 2 for project.delete on prod-*, and its new name pay escapes that rule",
    });
    expect(rule(deletes, "prod-pay", "prod-shop").required).toBe(0);
    expect(rule(deletes, "pay", "prod-pay").required).toBe(0);
    const restores = `approvals: [{ operations: ["vm.restore"], targets: ["pay/db-*"], votes: [{ from: ["S0DBA"], required: 2 }] }]`;
    expect(rule(restores, "pay", "shop", ["web-1", "db-1"])).toMatchObject({
      required: 2,
      votes: [{ from: ["S0DBA"], required: 2 }],
    });
    expect(rule(restores, "pay", "shop", ["web-1"]).required).toBe(0);
    // To destroy needs one approval even without a rule. Under the new name, a rule asks for none,
    // so the rename needs that approval.
    const free = `approvals: [{ operations: ["*"], targets: ["test-*"], required: 0 }]`;
    expect(rule(free, "pay", "test-pay").required).toBe(1);
    const teams = `teams: { pay: { projects: ["pay*"], operate: ["U0OLA"], approve: ["S0PAY"] } }`;
    expect(rule(teams, "pay", "shop").votes).toEqual([{ from: ["S0PAY"], required: 1 }]);
    expect(rule(teams, "pay", "pay-2").required).toBe(0);
  });

  it("never leads, whatever the rules, to a name under which less is asked than was asked for the rename", () => {
    const glob = constantFrom("prod-*", "pay*", "*", "prod-pay", "pay/db*", "*/db-1", "shop");
    const operations = constantFrom("project.delete", "vm.restore", "vm.*", "project.*", "*");
    const rules = array(
      record({
        operations: operations.map((one) => [one]),
        targets: array(glob, { minLength: 1, maxLength: 2 }),
        required: integer({ min: 0, max: 3 }),
      }),
      { maxLength: 4 },
    );
    const names = constantFrom("prod-pay", "pay", "shop", "pay-2", "prod-shop");
    assert(
      property(rules, names, names, (entries, from, to) => {
        const yaml = `${operator}\napprovals: ${JSON.stringify(entries)}`;
        pre(isPolicy(yaml));
        const policy = policyOf(yaml);
        const asked = (name: string, target: ReturnType<typeof project>, input = {}) =>
          approvalRule(policy, {
            command: command(name),
            targets: [target],
            input,
            vms: vmsCalled("db-1"),
          });
        const inside = (name: string, owner: string) => ({ ...vm("db-1", owner), name });
        const toRename = asked("project update", project(from), { name: to }).required;
        for (const [name, before, after] of [
          ["project delete", project(from), project(to)],
          ["vm restore", inside("db-1", from), inside("db-1", to)],
        ] as const) {
          const [was, is] = [before, after].map((one) => asked(name, one).required);
          if (was !== undefined && is !== undefined && is < was)
            expect(toRename).toBeGreaterThanOrEqual(was);
        }
      }),
    );
  });

  it("leads neither out of a protection nor into one", () => {
    const rule = (name: string, as: string, vmNames: string[] = []) =>
      ruleOf(`protect: ["vault-*", "core/db"]`, {
        name: "project update",
        target: project(name),
        as,
        vmNames,
      });
    expect(rule("vault-1", "pay").rule).toBe("protect vault-*");
    expect(rule("pay", " vault-1 ")).toMatchObject({
      rule: "protect vault-*",
      text: expect.stringContaining("pay (because of its new name vault-1) is protected"),
    });
    expect(rule("pay", "shop", ["vault-1"]).text).toMatch(/^pay \(because of vault-1\)/);
    expect(rule("core", "shop", ["db"]).rule).toBe("protect core/db");
    expect(rule("pay", "core", ["db"]).rule).toBe("protect core/db");
    expect(rule("pay", "core", ["web"]).rule).toBe("yes");
  });

  it("keeps the pins of the VMs inside, or is refused", () => {
    const pins = `attestation: { pins: [{ targets: ["pay/*"], measurements: ["${"aa".repeat(48)}"] }, { targets: ["lab/*"], measurements: ["${"aa".repeat(48)}", "${"bb".repeat(48)}"] }, { targets: ["shop/*"], measurements: ["${"aa".repeat(48)}"] }] }`;
    const rule = (as: string, target = project("pay"), vmNames = ["db"]) =>
      ruleOf(pins, { name: "project update", target, as, vmNames }).rule;
    expect(rule("elsewhere")).toBe("attestation.pins");
    expect(rule("PAY")).toBe("attestation.pins");
    expect(rule("lab")).toBe("attestation.pins");
    expect(rule("shop")).toBe("yes");
    expect(rule("shop", project("lab"))).toBe("yes");
    expect(rule("pay", project("free"))).toBe("yes");
    expect(rule("elsewhere", project("pay"), [])).toBe("yes");
  });

  it("adds nothing to what a VM may run that is pinned by its ID", () => {
    const [one, other] = ["aa", "bb"].map((byte) => byte.repeat(48));
    const pins = `attestation: { pins: [{ targets: ["vm-db"], measurements: ["${one}"] }, { targets: ["lab/*"], measurements: ["${one}", "${other}"] }] }`;
    const rule = (as: string, vmNames: string[]) =>
      ruleOf(pins, { name: "project update", target: project("pay"), as, vmNames }).rule;
    expect(rule("lab", ["db"])).toBe("attestation.pins");
    expect(rule("shop", ["db"])).toBe("yes");
    expect(rule("lab", ["web"])).toBe("yes");
  });

  it("puts no pinned VM under another rule of what is accepted", () => {
    const rules = `attestation: { pins: [{ targets: ["db"], measurements: ["${"aa".repeat(48)}"] }], appraisal: [{ targets: ["test/*"], allow: [debug] }] }`;
    const rule = (as: string, vmNames: string[]) =>
      ruleOf(rules, { name: "project update", target: project("pay"), as, vmNames }).rule;
    expect(rule("test", ["db"])).toBe("attestation.pins");
    expect(rule("shop", ["db"])).toBe("yes");
    expect(rule("test", ["web"])).toBe("yes");
  });
});

describe("the neighbours of a new name", () => {
  it("are a project that is created, resized with a protected VM inside, or whose VMs can't be told", () => {
    const protect = `protect: ["vault-*"]`;
    const asked = { name: "project update", as: "shop" };
    expect(ruleOf(protect, { name: "project create", target: project("vault-2") }).rule).toBe(
      "protect vault-*",
    );
    expect(ruleOf(protect, { name: "project update", vmNames: ["vault-1"] }).rule).toBe(
      "protect vault-*",
    );
    expect(
      refusal({
        policy: policyOf(`${operator}\n${protect}`),
        person: person("U0OLA"),
        ourTeamId,
        channelId: "C0",
        command: command(asked.name),
        targets: [project("pay")],
        input: { cpu: "4" },
      })?.rule,
    ).toBe("protect");
  });

  it("are a VM in a project that a rule names, also by project/name", () => {
    const yaml = `protect: ["core/*"]\napprovals: [{ operations: ["vm.*"], targets: ["prod"], required: 1 }]`;
    const inProject = (name: string, place: string) =>
      ruleOf(yaml, { name, target: vm("db", place) });
    for (const name of ["vm resize", "vm restore", "vm stop"]) {
      expect(inProject(name, "core").rule).toBe("protect core/*");
      expect(inProject(name, "prod").required).toBe(1);
    }
  });
});

describe("whatever a change is called", () => {
  const names = ["pay", "prod-pay", "vault-1", "shop"];
  const change = constantFrom(...commands.filter(isChange));
  const anyName = constantFrom(...names);

  it("meets the strictest rule of every name it touches", () => {
    const policy = policyOf(`${operator}
protect: ["vault-*", "shop/vault"]
approvals:
  - { operations: ["*"], targets: ["prod-*"], required: 3 }
  - { operations: ["project.*", "vm.*"], targets: ["shop/*"], required: 2 }
  - { operations: ["*"], targets: ["pay"], required: 0 }`);
    const asked = record({
      command: change,
      old: anyName,
      as: anyName,
      vmNames: subarray(["vault", "vault-7", "prod-db", "web"]),
    });
    assert(
      property(asked, ({ command: one, old, as, vmNames }) => {
        const target = one.on === "vm" ? vm("web", old) : project(old);
        const judged = {
          command: one,
          targets: [target],
          input: { name: as },
          vms: vmsCalled(...vmNames),
        };
        const whole = approvalRule(policy, judged).required;
        const isRefused = (alone: Pick<Judged, "targets" | "input" | "vms">) =>
          refusal({
            ...alone,
            command: one,
            policy,
            person: person("U0OLA"),
            ourTeamId,
            channelId: "C0",
          })?.rule.startsWith("protect") === true;
        const places = one.on === "project" && one.renames ? [old, as] : [old];
        const all = places.flatMap((place) => [
          project(place),
          ...vmNames.map((name) => vm(name, place)),
        ]);
        for (const named of one.on === "project" ? all : [target]) {
          const alone = { targets: [named], input: {}, vms: [] };
          expect(whole).toBeGreaterThanOrEqual(
            approvalRule(policy, { ...alone, command: one }).required,
          );
          if (isRefused(alone)) expect(isRefused(judged)).toBe(true);
        }
      }),
      { numRuns: 1000 },
    );
  });
});
