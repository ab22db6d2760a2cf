import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startGatehouseSlack } from "../../demo/world.ts";
import { loadSlackAccess, loadCallerProblems, type SlackAccess } from "../../src/config/config.ts";
import type { Env } from "../../src/config/environment.ts";
import { runPolicy } from "../../src/cli/policy.ts";
import { handedToPrograms } from "../../src/features/index.ts";

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "gatehouse-policy-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

const noToken = "SLACK_BOT_TOKEN is not set";

/** Runs it as typed; `file` is what GATEHOUSE_CONFIG names. */
async function typed(
  words: readonly string[],
  file = "gatehouse.example.yml",
  slack: SlackAccess | string = noToken,
  env: Env = {},
) {
  let said = "";
  const code = await runPolicy(words, {
    ...handedToPrograms,
    file,
    slack,
    secretProblem: loadCallerProblems(env),
    write: (text) => void (said += text),
  });
  return { code, said };
}

function written(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

describe("policy check of what hardly anyone means", () => {
  it("warns of both with the lines, and passes", async () => {
    const text = `access: { operate: ["U0ADA"] }\napprovals: [{ operations: ["*"], required: 0 }]\n`;
    const { code, said } = await typed(["check"], written("meant.yml", text));
    expect(code).toBe(0);
    expect(said).toContain("access.administer names no one: nobody can thaw");
    expect(said).toMatch(
      /meant\.yml line 2: approvals\[1\]\.operations\[1\] \(\*\) lets vm\.restore/,
    );
    expect((await typed(["check"])).said).not.toMatch(/thaw|without approval/);
  });
});

const onCall = ["--as", "U0OLIVIA", "--groups", "S01ONCALL"];

describe("policy check of where alerts and proposals are told", () => {
  const env = { API_PORT: "3002", SOURCE_SECRET_PROMETHEUS: "a-secret-of-enough-characters" };
  const source = "sources:\n  prometheus: { format: alertmanager";
  const check = (name: string, text: string) => typed(["check"], written(name, text), noToken, env);

  it("names a source that no channel shows, and one that only the audit trail's shows", async () => {
    const nowhere = await check("nowhere.yml", `${source} }\n`);
    expect(nowhere.code).toBe(0);
    expect(nowhere.said).toMatch(/line 2: prometheus has no channel: its alerts are shown nowhere/);
    const audit = await check("audit.yml", `audit: { channel: C03AUDIT }\n${source} }\n`);
    expect(audit.code).toBe(0);
    expect(audit.said).toContain("its alerts go to C03AUDIT, with the audit trail");
    const alerts = await check("alerts.yml", `alerts: { channel: C02STATUS }\n${source} }\n`);
    expect([alerts.code, alerts.said.includes("prometheus")]).toEqual([0, false]);
  });

  it("names a source whose buttons `channels` would have everyone refused", async () => {
    const file = `channels: [C01OPS]\n${source}, channel: C02STATUS }\n`;
    const { code, said } = await check("channels.yml", file);
    expect(code).toBe(0);
    expect(said).toMatch(
      /its alerts go to C02STATUS, where `channels` lets nobody change anything/,
    );
    const fine = await check("fine.yml", file.replace("C02STATUS", "C01OPS"));
    expect(fine.said).not.toContain("prometheus");
  });

  it("names a service whose proposals can't be run in its channel", async () => {
    const file = `channels: [C01OPS]
services:
  deploy:
    tokens: ["sha256:${"0".repeat(64)}"]
    propose: [{ operations: [vm.snapshot] }]
    channel: C02STATUS
`;
    const { code, said } = await check("service-channels.yml", file);
    expect(code).toBe(0);
    expect(said).toContain(
      "deploy: `channels` lets nobody change anything in C02STATUS, so its proposals are posted elsewhere or refused",
    );
  });
});

describe("policy explain of a service", () => {
  const file = () =>
    written(
      "services.yml",
      `services:
  deploy:
    tokens: ["sha256:${"0".repeat(64)}"]
    view: [payments]
    propose: [{ operations: [vm.snapshot], targets: ["db-*"] }, { operations: [project.update], targets: ["pay*"] }]
    channel: C01OPS
`,
    );
  const explain = (...words: readonly string[]) =>
    typed(["explain", "--as", "services.deploy", ...words], file());

  it("says what it may propose, and that whoever runs it decides", async () => {
    const { code, said } = await explain("vm.snapshot", "payments/db-1");
    expect(code).toBe(0);
    expect(said).toMatch(
      /^allowed: services\.deploy\.propose names it \(.*line 5\)\. It only proposes/,
    );
    for (const [command = "", target = ""] of [
      ["vm.restart", "payments/db-1"],
      ["vm.snapshot", "payments/web-1"],
    ])
      expect(await explain(command, target)).toMatchObject({
        code: 1,
        said: expect.stringContaining("refused: services.deploy.propose doesn't name it"),
      });
  });

  it("says that it may not propose a name that it may not propose for", async () => {
    const renamed = (name: string) => explain("project.update", "payments", "--name", name);
    expect((await renamed("pay-2")).said).toMatch(/^allowed: /);
    expect((await renamed("prod")).said).toMatch(/^refused: services\.deploy\.propose doesn't/);
  });

  it("says what it sees, and what no program reads", async () => {
    expect((await explain("vm.show", "payments/db-1")).said).toMatch(/^allowed: .*view names it/);
    expect((await explain("vm.show", "ml/gpu-1")).said).toMatch(/^refused: .*view doesn't name it/);
    expect(await explain("gatehouse.audit")).toMatchObject({
      code: 1,
      said: "refused: no program can read /gatehouse audit.\n",
    });
    const other = await typed(["explain", "--as", "services.other", "vm.show"], file());
    expect(other.said).toContain("gatehouse.yml names no services.other.");
  });
});

describe("policy check", () => {
  it("says what a file without problems holds", async () => {
    expect(await typed(["check"])).toMatchObject({
      code: 0,
      said: expect.stringContaining("has no problems: 1 approval rule"),
    });
  });

  it("names the version of a file that has one, and refuses what is none", async () => {
    const file = written("numbered.yml", "version: 12\naccess: { operate: [U0OLIVIA] }\n");
    const { code, said } = await typed(["check", file]);
    expect([code, said]).toEqual([0, expect.stringContaining("has no problems: version 12, ")]);
    for (const version of ["0", "1.5", '"12"', "-3"]) {
      const bad = written("no-number.yml", `version: ${version}\n`);
      expect((await typed(["check", bad])).said).toMatch(
        /line 1: version must be a whole number from 1 to/,
      );
    }
  });

  it("names every problem with its line", async () => {
    const bad = written("bad.yml", "acess: {}\nprotect: 7\n");
    const { code, said } = await typed(["check", bad]);
    expect(code).toBe(1);
    expect(said).toContain(`${bad} line 1: acess isn't known; did you mean access?`);
    expect(said).toContain(`${bad} line 2: protect must be a list`);
  });

  it("names a folder of endorsements that isn't there, which may be right on another machine", async () => {
    const file = written("folder.yml", "protect: []\nattestation:\n  endorsements: signed\n");
    expect(await typed(["check", file])).toMatchObject({
      code: 0,
      said: expect.stringContaining(
        `${file} line 3: attestation.endorsements: ${join(folder, "signed")} isn't there: no VM can be verified\n  Make it and fill it`,
      ),
    });
    mkdirSync(join(folder, "signed"));
    expect((await typed(["check", file])).said).toContain(
      `${file} line 3: attestation.endorsements: ${join(folder, "signed")} is empty: no VM can be verified\n`,
    );
    writeFileSync(join(folder, "signed", "root.crl"), "");
    expect((await typed(["check", file])).said).not.toContain("endorsements");
  });

  it("counts who calls the API, and names each source without a secret where this environment has one", async () => {
    const file = written(
      "api.yml",
      [
        "sources: { prometheus: { format: alertmanager }, grafana: { format: grafana } }",
        "services:",
        `  deploy: { tokens: ["sha256:${"a".repeat(64)}"], channel: C01OPS, propose: [{ operations: [vm.snapshot] }] }`,
        `  agent: { tokens: ["sha256:${"b".repeat(64)}"], view: ["*"] }`,
      ].join("\n"),
    );
    const without = await typed(["check", file]);
    expect(without.code).toBe(0);
    expect(without.said).toMatch(
      /\b2 sources, .*\b2 services; 0 people and 0 groups may approve\.\nAPI_PORT is not set here, so secrets of sources were not looked for\.\n/,
    );
    const env = { API_PORT: "3002", SOURCE_SECRET_GRAFANA: "test-secret-one" };
    const here = await typed(["check", file], file, noToken, env);
    expect(here).toMatchObject({
      code: 1,
      said: expect.stringContaining(
        "SOURCE_SECRET_PROMETHEUS: is missing: set it, or SOURCE_SECRET_PROMETHEUS_FILE\n  Until then Gatehouse answers 401",
      ),
    });
    expect(here.said).not.toMatch(/API_PORT|SOURCE_SECRET_GRAFANA/);
    const both = { ...env, SOURCE_SECRET_PROMETHEUS: "test-secret-two test-secret-three" };
    expect((await typed(["check", file], file, noToken, both)).code).toBe(0);
  });

  it("says so when there is no file", async () => {
    expect(await typed(["check", join(folder, "none.yml")])).toMatchObject({
      code: 1,
      said: expect.stringContaining("can't be read"),
    });
  });
});

describe("policy check and explain, where Slack can be asked", () => {
  const policy = `access:
  operate: ["S01ONCALL", "S0NOPE", "U0GONE"]
  approve: ["S02LEADS"]
audit: { channel: C03AUDIT }
alerts: { channel: C0NONE }
`;

  it("names channels that another company shares, and who reads the alarms of a team without one, with their lines", async () => {
    await using slack = await startGatehouseSlack({});
    const access = { apiUrl: slack.apiUrl, botToken: slack.app.botToken, proxies: undefined };
    const teams = `access: { operate: [S01ONCALL], approve: [S02LEADS], administer: [U0ADA] }
audit: { channel: C03AUDIT }
teams:
  payments:
    projects: [payments]
    channel: C07VENDOR
  search: { projects: [search], operate: [U0VERA] }
`;
    const file = written("teams.yml", teams);
    const { code, said } = await typed(["check", file], file, access);
    expect(code).toBe(1);
    expect(said).toContain(
      `${file} line 6: channel C07VENDOR: another company shares it, so Gatehouse posts nothing there`,
    );
    expect(said).toContain(
      `${file} line 7: team search: has no channel, so its alarms go to the audit channel, which 1 read who can't see what it has: U0AMIR`,
    );
    const named = written("shared.yml", `${teams}sharedChannels: [C07VENDOR]\n`);
    expect(await typed(["check", named], named, access)).toMatchObject({ code: 0 });
  });

  it("names those who are listed and can't vote, and the seats that stay empty, with their lines", async () => {
    await using slack = await startGatehouseSlack({});
    const access = { apiUrl: slack.apiUrl, botToken: slack.app.botToken, proxies: undefined };
    const votes = `access: { operate: [S01ONCALL], approve: [S02LEADS] }
approvals:
  - operations: [vm.restore]
    votes:
      - { from: [U0ADA] }
      - { from: [U0GINA, U0DORA] }
teams:
  pay: { projects: [pay], operate: [S01ONCALL], approve: [U0STAN], channel: C03AUDIT }
`;
    const file = written("votes.yml", votes);
    const { code, said } = await typed(["check", file], file, access);
    expect(code).toBe(1);
    expect(said).toContain(`${file} line 6: U0GINA is a guest, who may only view`);
    expect(said).toContain(`${file} line 6: U0DORA has been deactivated`);
    expect(said).toContain(
      `${file} line 5: approvals[1].votes: 2 must approve, and of those named only U0ADA can vote`,
    );
    expect(said).toContain(
      `${file} line 8: teams.pay.approve: 1 must approve, and nobody named there can vote`,
    );
    const good = written(
      "votes-good.yml",
      votes.replace("U0GINA", "U0AMIR").replace("U0STAN", "U0ADA").replace(", U0DORA", ""),
    );
    expect(await typed(["check", good], good, access)).toMatchObject({ code: 0 });
  });

  it("names channels, people, and groups of sources and services that Slack doesn't have, with their lines", async () => {
    await using slack = await startGatehouseSlack({});
    const access = { apiUrl: slack.apiUrl, botToken: slack.app.botToken, proxies: undefined };
    const file = written(
      "api-channels.yml",
      `access: { operate: [S01ONCALL], approve: [S02LEADS] }
sources:
  prometheus: { format: alertmanager, channel: C0NONE }
  cron: { format: plain, notify: { critical: [S0NOPE], "*": [U0GONE] } }
services:
  deploy: { tokens: ["sha256:${"a".repeat(64)}"], channel: C0GONE, notify: [S0DEPLOY] }
`,
    );
    const { code, said } = await typed(["check", file], undefined, access);
    expect(code).toBe(1);
    for (const [line, id] of [
      [3, "C0NONE"],
      [6, "C0GONE"],
    ])
      expect(said).toContain(`${file} line ${line}: channel ${id}: isn't there`);
    expect(said).toContain(`${file} line 4: group S0NOPE: isn't in this workspace, or is disabled`);
    expect(said).toContain(`${file} line 4: U0GONE isn't in this workspace`);
    expect(said).toContain(`${file} line 6: group S0DEPLOY: isn't in this workspace`);
  });

  it("names groups, people, and channels that Slack doesn't have, with their lines", async () => {
    await using slack = await startGatehouseSlack({});
    const access = { apiUrl: slack.apiUrl, botToken: slack.app.botToken, proxies: undefined };
    const file = written("slack.yml", policy);
    const { code, said } = await typed(["check", file], file, access);
    expect(code).toBe(1);
    expect(said).toContain(`${file} line 2: group S0NOPE: isn't in this workspace, or is disabled`);
    expect(said).toContain(`${file} line 2: U0GONE isn't in this workspace`);
    expect(said).toContain(`${file} line 5: channel C0NONE: isn't there, or is private`);
    expect(said).not.toContain("C03AUDIT");
    const good = written(
      "good.yml",
      policy.replace(', "S0NOPE", "U0GONE"', "").split("alerts")[0] ?? "",
    );
    const all = await typed(["check", good], good, access);
    expect(all).toMatchObject({
      code: 0,
      said: expect.stringContaining("groups: all 2 exist and have members"),
    });
  });

  it("takes the groups of a person from Slack, unless they are named", async () => {
    await using slack = await startGatehouseSlack({});
    const access = { apiUrl: slack.apiUrl, botToken: slack.app.botToken, proxies: undefined };
    const asked = ["explain", "--as", "U0OLIVIA", "vm.restart", "payments/web-2"];
    const { code, said } = await typed(asked, undefined, access);
    expect(said).toMatch(/^allowed, without approval[^\n]*\nSlack says: in S01ONCALL\.\n$/);
    expect(code).toBe(0);
    const unasked = await typed(asked);
    expect(unasked).toMatchObject({
      code: 1,
      said: expect.stringContaining(
        "Slack was not asked (SLACK_BOT_TOKEN is not set): U0OLIVIA counts as in no group.",
      ),
    });
  });

  it("says plainly that it was not asked, and why", async () => {
    expect((await typed(["check"])).said).toContain(
      "Slack was not asked (SLACK_BOT_TOKEN is not set): whether these groups, people, and channels exist isn't known.",
    );
    expect(loadSlackAccess({})).toBe(noToken);
    expect(loadSlackAccess({ SLACK_BOT_TOKEN: "xapp-1" })).toMatch(
      /^SLACK_BOT_TOKEN: is an app-level token/,
    );
    expect(loadSlackAccess({ SLACK_BOT_TOKEN: "xoxb-1" })).toMatchObject({
      apiUrl: "https://slack.com/api/",
      botToken: "xoxb-1",
    });
  });
});

describe("policy explain", () => {
  it.each([
    [["vm.restart", "payments/web-2"], 0, /^allowed, without approval: no entry of approvals/],
    [["vm.restore", "payments/db-1"], 0, /^allowed, with 1 approval: .*Approvers: S02LEADS/],
    [["vm.restore", "prod-pay/db-1"], 0, /^allowed, with 2 approvals: .*yml line 15/],
    [["vm.stop", "vault-1"], 1, /^refused: vault-1 is protected.*yml line 20/],
    [
      ["project.update", "prod-pay", "--name", "pay"],
      0,
      /^allowed, with 2 approvals: .*vm\.restore on prod-\*, and its new name pay escapes that rule/,
    ],
    [["project.update", "prod-pay", "--name", "prod-shop"], 0, /^allowed, without approval/],
    [
      ["vm.stop", "payments/web-2"],
      0,
      /access.operate names S01ONCALL \(gatehouse.example.yml line \d+\)\./,
    ],
    [["vm.list"], 0, /^allowed. access.view names \* /],
    [["gatehouse.thaw"], 1, /^refused: .*access.administer.*yml line 11/],
    [["vm.stp", "web-1"], 1, /^There is no command vm.stp; did you mean vm.stop\?/],
  ])("%s", async (words, code, said) => {
    const answer = await typed(["explain", ...onCall, ...words]);
    expect(answer.said).toMatch(said);
    expect(answer.code).toBe(code);
  });

  it("decides by the channel too", async () => {
    const file = written("here.yml", 'access: { operate: ["*"] }\nchannels: ["C01OPS"]\n');
    const here = await typed(["explain", "--as", "U0X", "--in", "C01OPS", "vm.stop", "a"], file);
    expect(here.code).toBe(0);
    const elsewhere = await typed(["explain", "--as", "U0X", "--in", "C0XX", "vm.stop", "a"], file);
    expect(elsewhere).toMatchObject({ code: 1, said: expect.stringContaining("yml line 2") });
  });
});

describe("policy test", () => {
  it("holds for the example that comes with Gatehouse", async () => {
    expect(await typed(["test", "docs/policy-cases.yml"])).toEqual({
      code: 0,
      said: "11 of 11 cases as expected\n",
    });
  });

  it("holds for the example with teams", async () => {
    const file = "docs/policy-teams.yml";
    expect(await typed(["test", "docs/policy-teams-cases.yml"], file)).toEqual({
      code: 0,
      said: "15 of 15 cases as expected\n",
    });
  });

  it("shows each case that differs, and exits with 1", async () => {
    const cases = written(
      "cases.yml",
      "- { who: U0X, run: vm.stop web-1, expect: allowed }\n- { who: U0X, run: vm.list, expect: allowed }\n",
    );
    const { code, said } = await typed(["test", cases]);
    expect(code).toBe(1);
    expect(said).toMatch(/^case 1: U0X vm.stop web-1\n +expected allowed\n +but is +refused: /);
    expect(said).toContain("1 of 2 cases as expected");
  });

  it("names what is wrong in a table", async () => {
    const cases = written("odd.yml", "- { who: U0X, run: vm.list, expect: maybe }\n");
    expect(await typed(["test", cases])).toMatchObject({
      code: 1,
      said: expect.stringContaining("expect"),
    });
  });
});

it.each([[[]], [["tset"]], [["explain", "vm.stop"]], [["check", "--colour"]]])(
  "policy %s is answered with its usage",
  async (words) => {
    expect(await typed(words)).toMatchObject({
      code: 64,
      said: expect.stringContaining("usage: "),
    });
  },
);

describe("a policy with teams", () => {
  const teams = `teams:
  payments:
    projects: ["prj-8841", "payments", "payments-*"]
    view: ["S03SUPPORT"]
    operate: ["S04PAYONCALL"]
    approve: ["S05PAYLEADS"]
  search:
    projects: ["search"]
    operate: ["S07SEARCH"]
    approve: ["S07SEARCH"]
approvals:
  - operations: ["vm.restore"]
    targets: ["payments/*"]
    votes: [{ from: ["S05PAYLEADS"], required: 1 }, { from: ["S06SECURITY"] }]
`;
  let file = "";
  beforeAll(() => (file = written("teams.yml", teams)));
  const payOnCall = ["--as", "U0PAY", "--groups", "S04PAYONCALL"];

  it("is checked with its teams", async () => {
    const { code, said } = await typed(["check", file]);
    expect(code).toBe(0);
    expect(said).toContain("1 approval rule, 0 protected names, 2 teams, ");
  });

  it.each([
    [
      ["vm.restart", "payments/web-2"],
      0,
      /^allowed, without approval.* teams.payments.operate names S04PAYONCALL .*line 5/,
    ],
    [["vm.restart", "prj-8841/web-2"], 0, /teams.payments.operate/],
    [
      ["vm.restart", "search/web-2"],
      1,
      /^refused: .*none of your teams.* The rule is teams.search.operate. .*line 9/,
    ],
    [
      ["vm.restart", "shop/web-2"],
      1,
      /^refused: Nobody can restart web-2 \(shop\) yet\. The rule is access\.operate\./,
    ],
    [
      ["vm.restore", "payments/db-1"],
      0,
      /with 2 approvals: .*line 12.* 1 of these: Approvers: S05PAYLEADS. 1 of these: Approvers: S06SECURITY./,
    ],
    [["project.delete", "payments-eu"], 0, /with 1 approval: .* Approvers: S05PAYLEADS./],
  ])("explains %s", async (words, code, said) => {
    const answer = await typed(["explain", ...payOnCall, ...words], file);
    expect(answer.said).toMatch(said);
    expect(answer.code).toBe(code);
  });

  it("is tested with whose votes are needed", async () => {
    const row =
      "who: U0PAY, groups: [S04PAYONCALL], run: vm.restore payments/db-1, expect: allowed";
    const cases = written(
      "votes.yml",
      `- { ${row}, votes: [{ from: [S06SECURITY] }, { from: [S05PAYLEADS], required: 1 }] }\n- { ${row}, votes: [{ from: [S05PAYLEADS] }] }\n`,
    );
    const { code, said } = await typed(["test", cases], file);
    expect(code).toBe(1);
    expect(said).toContain("expected allowed, by 1 of S05PAYLEADS");
    expect(said).toContain("1 of 2 cases as expected");
  });
});
