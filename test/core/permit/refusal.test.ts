import { describe, expect, it } from "vitest";
import { commands } from "../../support/commands.ts";
import { emptyPolicy } from "../../../src/config/policy-file.ts";
import { mayRun, refusal, whoSkipsApprovals } from "../../../src/core/permit/refusal.ts";
import type { Target } from "../../../src/registry/define.ts";
import { kindOfUser } from "../../../src/slack/people/kind-of-user.ts";
import { command, ourTeamId, person, policyOf, project, usual, vm, vmsCalled } from "./sample.ts";

type Asked = Parameters<typeof refusal>[0];

/** Returns the rule that refuses the command `name`, or "yes". */
function ruleThatRefuses(name: string, over: Partial<Asked> = {}): string {
  const asked = {
    policy: usual,
    ourTeamId,
    person: person("U0OLA"),
    targets: [vm("web-1")],
    channelId: "C01OPS",
  };
  return refusal({ ...asked, command: command(name), ...over })?.rule ?? "yes";
}

describe("who may run what", () => {
  it.each([
    [
      "anybody",
      person("U0ANY"),
      { "vm list": "yes", "vm restart": "access.operate", "vm console": "access.operate" },
    ],
    [
      "an operator by group",
      person("U0X", { groups: ["S01ONCALL"] }),
      { "vm restart": "yes", "vm restore": "yes" },
    ],
    [
      "an operator by id",
      person("U0OLA"),
      { "vm start": "yes", "vm console": "yes", "gatehouse thaw": "access.administer" },
    ],
    [
      "an approver",
      person("U0L", { groups: ["S02LEADS"] }),
      {
        "vm stop": "access.operate",
        "gatehouse freeze": "yes",
        "gatehouse thaw": "access.administer",
      },
    ],
    [
      "an administrator",
      person("U09ADMIN"),
      { "gatehouse thaw": "yes", "vm list": "yes", "vm restart": "access.operate" },
    ],
    ["break-glass alone", person("U0GLASS"), { "vm restart": "access.operate" }],
    [
      "a group that policy doesn't know",
      person("U0Y", { groups: ["S99OTHER", "*", "operate"] }),
      { "vm restart": "access.operate" },
    ],
  ])("%s", (_who, who, expected) => {
    for (const [name, rule] of Object.entries(expected))
      expect([name, ruleThatRefuses(name, { person: who })]).toEqual([name, rule]);
  });

  it("lets administrators view where only few may", () => {
    const policy = policyOf(`access: { view: ["S05FEW"], administer: ["U09ADMIN"] }`);
    expect(ruleThatRefuses("vm list", { policy, person: person("U09ADMIN") })).toBe("yes");
    expect(ruleThatRefuses("vm list", { policy, person: person("U0ANY") })).toBe("access.view");
  });

  it("shows in help what may be run, wherever it is asked", () => {
    const policy = policyOf(`{ access: { operate: ["U0OLA"] }, channels: ["C01OPS"] }`);
    const shownTo = (id: string) =>
      commands.filter((one) => mayRun({ policy, ourTeamId, person: person(id), command: one }));
    expect(shownTo("U0OLA")).toContain(command("vm stop"));
    expect(shownTo("U0X")).not.toContain(command("vm stop"));
  });

  it.each(["U0OLA", "U0ANY", "U09ADMIN", "U0GLASS"])("shows %s in help what they may run", (id) => {
    const who = { policy: usual, ourTeamId, person: person(id) };
    expect(commands.filter((one) => mayRun({ ...who, command: one })).length).toBeGreaterThan(0);
  });
});

describe("people who aren't members", () => {
  const home = { teamId: ourTeamId };
  const alice = { id: "U0OLA", team_id: ourTeamId };
  const everything = policyOf(`
access: { view: ["*", "U0OLA"], operate: ["*", "U0OLA"], approve: ["*"], administer: ["*", "U0OLA"], breakGlass: ["*", "U0OLA"] }
`);

  it.each([
    ["a deactivated account", { ...alice, deleted: true }, "person.deactivated"],
    ["a forgotten account", { ...alice, is_forgotten: true }, "person.deactivated"],
    ["a guest of several channels", { ...alice, is_restricted: true }, "person.guest"],
    [
      "a guest of one channel",
      { ...alice, is_restricted: true, is_ultra_restricted: true },
      "person.guest",
    ],
    ["an invited person", { ...alice, is_invited_user: true }, "person.guest"],
    ["a bot", { ...alice, is_bot: true }, "person.bot"],
    ["an app's user", { ...alice, profile: { api_app_id: "A1", bot_id: "B1" } }, "person.bot"],
    ["a workflow", { ...alice, is_workflow_bot: true }, "person.bot"],
    ["Slackbot", { id: "USLACKBOT", team_id: ourTeamId }, "person.bot"],
    ["a stranger", { ...alice, is_stranger: true }, "person.external"],
    ["somebody of another team", { ...alice, team_id: "T0THEIRS" }, "person.external"],
    [
      "an administrator of another team",
      { ...alice, team_id: "T0THEIRS", is_admin: true, is_owner: true },
      "person.external",
    ],
  ])("%s changes nothing, listed or not", (_who, user, rule) => {
    const kind = kindOfUser(user, "", home);
    const who = person("U0OLA", { kind, teamId: user.team_id, groups: ["S01ONCALL"] });
    for (const one of commands.filter((each) => each.class !== "read")) {
      expect([one.name, ruleThatRefuses(one.name, { policy: everything, person: who })]).toEqual([
        one.name,
        rule,
      ]);
    }
    const asked = { policy: everything, person: who, ourTeamId, targets: [], channelId: "" };
    const emergency = { ...asked, command: command("vm stop"), breakGlass: true };
    expect(refusal(emergency)?.rule).toBe(rule);
  });

  it("aren't believed to be members when the team differs", () => {
    const forged = person("U0OLA", { teamId: "T0THEIRS" });
    expect(ruleThatRefuses("vm restart", { person: forged })).toBe("person.team");
    expect(ruleThatRefuses("vm list", { person: forged })).toBe("person.team");
    expect(
      ruleThatRefuses("vm list", { person: person("U0OLA", { teamId: "" }), ourTeamId: "" }),
    ).toBe("person.team");
  });

  it("may view only as guests, and only when named", () => {
    const policy = policyOf(
      `access: { view: ["*", "U0GUEST", "S07GUESTS"], administer: ["U0BOSS"] }`,
    );
    const view = (
      id: string,
      kind: "guest" | "external" | "bot" | "deactivated",
      groups: string[] = [],
    ) => ruleThatRefuses("vm list", { policy, person: person(id, { kind, groups }) });
    expect([view("U0GUEST", "guest"), view("U0G", "guest", ["S07GUESTS"])]).toEqual(["yes", "yes"]);
    expect([view("U0OTHER", "guest"), view("U0BOSS", "guest")]).toEqual([
      "person.guest",
      "person.guest",
    ]);
    expect(view("U0GUEST", "external")).toBe("person.external");
    expect(view("U0GUEST", "bot")).toBe("person.bot");
    expect(view("U0GUEST", "deactivated")).toBe("person.deactivated");
  });
});

describe("protected names", () => {
  it.each([
    ["vm restore", vm("vault-1"), "protect vault-*"],
    ["vm stop", vm("Vault-1"), "protect vault-*"],
    ["vm resize", vm("db", "vault-eu"), "protect vault-*"],
    ["vm restart", vm("vault-1"), "yes"],
    ["vm snapshot", vm("vault-1"), "yes"],
    ["vm stop", vm("my-vault-1"), "yes"],
    ["project delete", project("vault-eu"), "protect vault-*"],
    ["project update", project("vault-eu"), "protect vault-*"],
  ])("%s %o: %s", (name, target, rule) => {
    expect(ruleThatRefuses(name, { targets: [vm("web-1"), target].slice(-1) })).toBe(rule);
    if (target.kind === "vm")
      expect(ruleThatRefuses(name, { targets: [vm("web-1"), target] })).toBe(rule);
  });

  it("keep a project that holds one, or whose VMs can't be told", () => {
    const targets = [project("shop")];
    expect(ruleThatRefuses("project delete", { targets, vms: vmsCalled("web-1", "vault-7") })).toBe(
      "protect vault-*",
    );
    expect(ruleThatRefuses("project delete", { targets, vms: vmsCalled("web-1") })).toBe("yes");
    expect(ruleThatRefuses("project delete", { targets })).toBe("protect");
    expect(ruleThatRefuses("project delete", { targets, policy: { ...usual, protect: [] } })).toBe(
      "yes",
    );
    expect(
      ruleThatRefuses("project delete", {
        targets,
        vms: vmsCalled("db"),
        policy: { ...usual, protect: ["shop/d*"] },
      }),
    ).toBe("protect shop/d*");
  });

  it("may be meant by project/name", () => {
    const policy = { ...usual, protect: ["shop/*"] };
    expect(ruleThatRefuses("vm stop", { policy, targets: [vm("a", "shop")] })).toBe(
      "protect shop/*",
    );
    expect(ruleThatRefuses("vm stop", { policy, targets: [vm("a", "shop-eu")] })).toBe("yes");
  });

  it("let somebody skip approvals by break-glass where each place that has a say lists one", () => {
    const teams = policyOf(`access: { view: ["*"], breakGlass: [U0GLASS], administer: [U09ADMIN] }
teams: { pay: { projects: ["pay-*"], operate: [U0OLA], approve: [U0AMY] } }`);
    const may = (name: string, target: Target) =>
      whoSkipsApprovals({ command: command(name), targets: [target] }, teams).length > 0;
    expect(may("vm stop", vm("web-1"))).toBe(true);
    expect(may("vm start", vm("web-1"))).toBe(false);
    expect(may("vm stop", vm("web-1", "pay-eu"))).toBe(false);
    expect(may("project delete", project("shop"))).toBe(true);
  });

  it("hold even with break-glass, which is for what disrupts or destroys", () => {
    const asked = {
      policy: usual,
      person: person("U0GLASS"),
      ourTeamId,
      channelId: "",
      breakGlass: true,
    };
    const rule = (name: string, target = vm("web-1")) =>
      refusal({ ...asked, command: command(name), targets: [target] })?.rule ?? "yes";
    expect([rule("vm restart"), rule("vm restore")]).toEqual(["yes", "yes"]);
    expect(rule("vm restore", vm("vault-1"))).toBe("protect vault-*");
    expect([rule("vm console"), rule("vm list")]).toEqual([
      "access.breakGlass",
      "access.breakGlass",
    ]);
    const safety = { ...asked, command: command("vm snapshot"), targets: [vm("web-1")] };
    expect(refusal(safety)?.text).toBe("/vm snapshot can't be run with --break-glass.");
    expect(refusal({ ...safety, isSafety: true })).toBeUndefined();
    const operator = {
      ...asked,
      person: person("U0OLA"),
      command: command("vm stop"),
      targets: [],
    };
    expect(refusal(operator)?.rule).toBe("access.breakGlass");
  });
});

describe("channels", () => {
  const policy = { ...usual, channels: ["C01OPS", "C02LAB"] };

  it("limit what changes something, and nothing else", () => {
    expect(ruleThatRefuses("vm restart", { policy, channelId: "C01OPS" })).toBe("yes");
    expect(ruleThatRefuses("vm restart", { policy, channelId: "C99ELSE" })).toBe("channels");
    expect(ruleThatRefuses("vm console", { policy, channelId: "" })).toBe("channels");
    expect(ruleThatRefuses("vm list", { policy, channelId: "C99ELSE" })).toBe("yes");
    expect(
      ruleThatRefuses("gatehouse thaw", { policy, channelId: "", person: person("U09ADMIN") }),
    ).toBe("yes");
  });
});

describe("a refusal's words", () => {
  const names = new Map([["U0OLA", "Ola"]]);
  const asked = {
    ourTeamId,
    targets: [],
    channelId: "",
    command: command("vm restart"),
    person: person("U0ANY"),
  };

  it("say which rule and who may, and mention nobody", () => {
    expect(refusal({ ...asked, policy: usual, nameOf: (id) => names.get(id) })).toEqual({
      rule: "access.operate",
      text: "Only S01ONCALL and Ola can restart VMs.",
      smallPrint: "Rule: `access.operate` in gatehouse.yml.",
      allowed: ["S01ONCALL", "U0OLA"],
    });
    const said = (one: string, more: Partial<Asked> = {}) =>
      refusal({ ...asked, policy: usual, command: command(one), ...more })?.text;
    const targets = [vm("web-2", "payments")];
    expect([said("vm restart", { targets }), said("vm snapshot", { targets })]).toEqual([
      "Only S01ONCALL and U0OLA can restart web-2 (payments).",
      "Only S01ONCALL and U0OLA can snapshot web-2 (payments).",
    ]);
    expect(said("project delete", { targets: [project("shop")] })).toMatch(/ can delete shop\.$/);
    expect(said("project create")).toMatch(/ can create projects\.$/);
    expect(said("gatehouse thaw")).toBe("Only U09ADMIN can run /gatehouse thaw.");
    expect(said("vm stop", { targets, breakGlass: true })).toBe(
      "Only U0GLASS can stop web-2 (payments) without approval.",
    );
  });

  it("name those who may be asked where nothing but the right is lacking", () => {
    const may = (one: string, more: Partial<Asked> = {}) =>
      refusal({ ...asked, policy: usual, command: command(one), targets: [vm("web-2")], ...more })
        ?.allowed;
    expect(may("vm restart")).toEqual(["S01ONCALL", "U0OLA"]);
    expect(may("vm restart", { breakGlass: true })).toBeUndefined();
    expect(may("vm restart", { person: person("U0G", { kind: "guest" }) })).toBeUndefined();
    expect(may("gatehouse thaw", { targets: [] })).toBeUndefined();
    const ola = person("U0OLA");
    expect(may("vm stop", { person: ola, targets: [vm("vault-1")] })).toBeUndefined();
    const policy = { ...usual, channels: ["C09"] };
    expect(may("vm restart", { person: ola, policy })).toBeUndefined();
    // Those who have the right couldn't do this either
    expect(
      refusal({ ...asked, policy: usual, command: command("vm stop"), targets: [vm("vault-1")] }),
    ).toMatchObject({ rule: "protect vault-*", text: expect.stringMatching(/is protected/) });
  });

  it("name no rule where teams have VMs and none was looked up, in one sentence for every name", () => {
    const policy = policyOf(`
access: { view: ["*"], operate: ["S01ONCALL"], administer: ["U09ADMIN"] }
teams: { payments: { projects: [payments], view: [U0ANY], operate: [S03PAY] } }
`);
    for (const one of ["vm restart", "vm snapshot", "project delete", "project create"])
      for (const breakGlass of [false, true]) {
        const said = refusal({ ...asked, policy, command: command(one), breakGlass });
        const list = breakGlass ? "breakGlass" : "operate";
        expect(said).toEqual({
          rule: list,
          toldAs: "",
          text: expect.stringMatching(
            /^You can't \w+ (VMs|projects)[a-z ]*: no team lists you for that\.$/,
          ),
          hint: "Ask `U09ADMIN`.",
          smallPrint:
            "`teams` in gatehouse.yml says who can do what with a team's VMs and projects, `access` with all others.",
        });
      }
    // When the target was looked up and they may see it, the answer names the rule that would help.
    expect(refusal({ ...asked, policy, targets: [vm("web-1", "payments")] })).toMatchObject({
      rule: "teams.payments.operate",
      text: "Only S03PAY can restart web-1 (payments).",
      smallPrint: "Rule: `teams.payments.operate` in gatehouse.yml.",
    });
    expect(refusal({ ...asked, policy, targets: [vm("web-1", "shop")] })).toMatchObject({
      rule: "access.operate",
    });
    // The right to administer is for all teams together.
    expect(refusal({ ...asked, policy, command: command("gatehouse thaw") })).toMatchObject({
      rule: "access.administer",
    });
  });

  it("tell somebody who sees nothing of no team, whatever a button names", () => {
    const policy = policyOf(`
access: { view: [], operate: [], administer: ["U09ADMIN"] }
teams: { payments: { projects: [payments], operate: [S03PAY] } }
`);
    const words = (owner: string) => {
      const said = refusal({ ...asked, policy, targets: [vm("web-1", owner)] });
      expect(said).not.toHaveProperty("allowed");
      return [said?.toldAs, said?.text, said?.hint, said?.smallPrint].join(" ");
    };
    expect(words("payments")).not.toMatch(/payments|S03PAY/);
    expect(words("payments")).toBe(words("shop"));
  });

  it("say what to add where, when nobody may", () => {
    expect(refusal({ ...asked, policy: emptyPolicy() })).toEqual({
      rule: "access.operate",
      text: "Nobody can restart VMs yet.",
      hint: 'Add user groups or user IDs to `access.operate` in gatehouse.yml, like `operate: ["S01ONCALL"]`, and have Gatehouse read it (SIGHUP).',
    });
  });

  it("name the protected name and its rule", () => {
    const operator = {
      ...asked,
      person: person("U0OLA"),
      policy: usual,
      command: command("vm stop"),
    };
    expect(refusal({ ...operator, targets: [vm("db", "vault-eu")] })).toEqual({
      rule: "protect vault-*",
      text: "db (because of vault-eu) is protected: it can't be stopped from Slack.",
      smallPrint: "Rule: `vault-*` under `protect` in gatehouse.yml.",
    });
  });

  it("tell where changes are accepted", () => {
    const policy = { ...usual, channels: ["C01OPS"] };
    const refused = refusal({ ...asked, policy, person: person("U0OLA"), channelId: "C09" });
    expect(refused).toMatchObject({
      hint: "Run it in `C01OPS` (`channels` in gatehouse.yml).",
    });
  });

  it("tell a guest who could do it", () => {
    expect(
      refusal({ ...asked, policy: usual, person: person("U0G", { kind: "guest" }) }),
    ).toMatchObject({
      text: "Guests can't do this from Slack.",
      hint: "They can help: `S01ONCALL`, `U0OLA`.",
      smallPrint: "Full members of the workspace can, if gatehouse.yml lists them.",
    });
  });
});
