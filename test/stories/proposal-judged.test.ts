import { readFile, writeFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { deployJob, deployPolicy, apiEnv } from "../features/proposals/deploy-job.ts";
import { auditOf, snapshotIdOf } from "../core/asking.ts";
import { type PolicyDifference, startWorld, type TestWorld } from "../support/start-world.ts";
import { hears, wordsOf } from "./words.ts";
import { until } from "../support/until.ts";

/** The deploy job sees everything, and may propose these, on every target unless told otherwise. */
const proposing = (propose: string, view = '["*"]', difference: PolicyDifference = {}) =>
  deployPolicy("", difference)
    .replace('view: ["payments"]', `view: ${view}`)
    .replace(/propose:\n(?: +- .*\n)+/, `propose: [${propose}]\n`);

const everythingWith = (difference: PolicyDifference = {}) =>
  proposing('{ operations: ["*"] }', '["*"]', difference);
const everything = everythingWith();

const startApi = (policy: string) => startWorld({ env: apiEnv, policy });

const refusals = async (world: TestWorld) =>
  (await auditOf(world.client, world.key("audit"))).filter(({ what }) => what === "refusal");

const proposals = (world: TestWorld) => world.client.keys(world.key("proposal", "*"));

async function cardOf(world: TestWorld, command: string, channel = "ops") {
  const job = deployJob(world);
  const { status, body } = await job.proposes(command);
  expect([status, body.title]).toEqual([202, undefined]);
  const card = await hears(world.olivia, channel, new RegExp(`deploy proposes[^]*${body.id}`));
  const state = async () => (await job.asks(body.id)).body.state;
  return { job, id: body.id, card: card.ts, words: wordsOf(card), state };
}

async function reload(world: TestWorld, change: (file: string) => string) {
  const file = world.env["GATEHOUSE_CONFIG"] ?? "";
  await writeFile(file, change(await readFile(file, "utf8")));
  await world.processes[0]?.reload();
}

const team = (rights: string) =>
  `teams:\n  pay: { projects: ["payments"], channel: C01OPS, ${rights} }\n`;

describe("what nobody may ever run makes no card, and is in the audit trail by its rule", () => {
  it.each<
    [what: string, policy: string, command: string, title: RegExp, detail: RegExp, rule: string]
  >([
    [
      "nobody in gatehouse.yml operates",
      everythingWith({ operate: [] }),
      "vm snapshot db-1",
      /^gatehouse\.yml lets nobody run \/vm snapshot on db-1\.$/,
      /`access\.operate` must name someone/,
      "access.operate",
    ],
    [
      "the team that has the target has nobody who operates",
      `${everything}${team('approve: ["U0AMIR"]')}`,
      "vm restart web-2",
      /^gatehouse\.yml lets nobody run \/vm restart on web-2\.$/,
      /`teams\.pay\.operate` must name someone/,
      "teams.pay.operate",
    ],
    [
      "two teams have it, and nobody operates for both",
      `${everything}teams:
  pay: { projects: ["payments"], operate: ["U0OLIVIA"], channel: C01OPS }
  prj: { projects: ["prj-payments"], operate: ["U0AMIR"], channel: C01OPS }
`,
      "vm snapshot db-1",
      /^gatehouse\.yml lets nobody run \/vm snapshot on db-1\.$/,
      /`teams\.pay\.operate` must name someone/,
      "teams.pay.operate",
    ],
    [
      "nobody operates under the project's new name",
      `${everything}${team("operate: []").replace('"payments"', '"pay-*"')}`,
      "project update payments --name pay-2",
      /^gatehouse\.yml lets nobody run \/project update on payments\.$/,
      /^`teams` must name someone/,
      "teams.pay.operate",
    ],
    [
      "nobody operates what is to be created",
      `${everything}${team("operate: []").replace('"payments"', '"pay-*"')}`,
      "project create --name pay-2 --type CONTAINER --region eu-west",
      /^gatehouse\.yml lets nobody run \/project create on pay-2\.$/,
      /^`teams` must name someone/,
      "teams.pay.operate",
    ],
    [
      "nobody approves what needs approval",
      everythingWith({ approve: [], administer: ["U0ADA", "U0VERA"] }),
      "project delete staging",
      /^Too few people could approve \/project delete on staging, so nobody can run it\.$/,
      /It needs 1 approval, and gatehouse\.yml must name who could give it\./,
      "approvals",
    ],
    [
      "whoever may run it is the only one who approves",
      `${everything}${team('operate: ["U0OLIVIA"], approve: ["U0OLIVIA"]')}`,
      "project delete payments",
      /^Too few people could approve \/project delete on payments/,
      /needs 1 approval/,
      "approvals",
    ],
    [
      "a rule asks for more than a team has",
      `${everything}approvals: [{ operations: ["vm.restart"], targets: ["db-1"], required: 2 }]
${team('operate: ["S01ONCALL"], approve: ["U0AMIR"]')}`,
      "vm restart db-1",
      /^Too few people could approve \/vm restart on db-1/,
      /needs 2 approvals, and gatehouse\.yml must name who could give them/,
      "approvals[1]",
    ],
    [
      "a restore from what nobody has on record needs one more than there are",
      `${everything}${team('operate: ["S01ONCALL"], approve: ["U0AMIR"]')}`,
      "vm restore db-1 snap-unknown",
      /^Too few people could approve \/vm restore on db-1/,
      /needs 2 approvals/,
      "approvals",
    ],
    [
      "`channels` lists no place of its card",
      `${everything}channels: [C04RANDOM]\n`,
      "vm snapshot db-1",
      /^`channels` in gatehouse\.yml lets nobody run \/vm snapshot where its card would be\.$/,
      /must list the `channel` of the service/,
      "channels",
    ],
    [
      "it is protected",
      everything,
      "vm stop vault-1",
      /^vault-1 is protected, so nobody can run \/vm stop on it\.$/,
      /`protect`/,
      "protect vault-*",
    ],
    [
      "it would get a protected name",
      everything,
      "project update staging --name vault-2",
      /^staging \(because of its new name vault-2\) is protected/,
      /`protect`/,
      "protect vault-*",
    ],
    [
      "its new name would lead out of a pin",
      `${everything}attestation: { pins: [{ targets: ["staging/*"], measurements: ["${"aa".repeat(48)}"] }] }\n`,
      "project update staging --name stage",
      /^staging can't get this name: \S+ in it is pinned/,
      /must say the same for the new name/,
      "attestation.pins",
    ],
    [
      "it restores no snapshot",
      everything,
      "vm restore db-1",
      /^The snapshot is missing\.$/,
      /Name it/,
      "input.snapshot",
    ],
  ])("%s", async (_what, policy, command, title, detail, rule) => {
    await using world = await startApi(policy);
    const { status, body } = await deployJob(world).proposes(command);
    expect([status, body]).toEqual([
      422,
      expect.objectContaining({
        title: expect.stringMatching(title),
        detail: expect.stringMatching(detail),
        field: "command",
      }),
    ]);
    expect(await proposals(world)).toEqual([]);
    const name = /^\w+ \w+/.exec(command)?.[0];
    expect(await refusals(world)).toEqual([
      expect.objectContaining({ who: "services.deploy", command: name, rule }),
    ]);
  });

  it("the snapshot is another VM's", async () => {
    await using world = await startApi(everything);
    await world.olivia.types("ops", "/vm snapshot web-2 nightly");
    const id = snapshotIdOf(await world.ended("vm snapshot"));
    await until(() => world.client.hget(world.key("snapshot-owners"), id)).not.toBeNull();
    const { status, body } = await deployJob(world).proposes(`vm restore db-1 ${id}`);
    expect([status, body.title, body.field]).toEqual([
      422,
      `The snapshot ${id} isn't one of db-1.`,
      "command",
    ]);
    expect(await proposals(world)).toEqual([]);
    expect(await refusals(world)).toContainEqual(
      expect.objectContaining({ rule: "input.snapshot", command: "vm restore" }),
    );
  });

  it.each([
    ["everyone may", 'operate: ["*"], approve: ["*"]'],
    ["a group may, whoever is in it", 'operate: ["S01ONCALL"], approve: ["S09NOBODY"]'],
    [
      "two people may, each with the other's approval",
      'operate: ["U0OLIVIA", "U0AMIR"], approve: ["U0OLIVIA", "U0AMIR"]',
    ],
  ])("but it is proposed where %s", async (_who, rights) => {
    await using world = await startApi(`${everything}${team(rights)}`);
    expect((await deployJob(world).proposes("project delete payments")).status).toBe(202);
  });
});

describe("a card stands where it can be run", () => {
  it("in the next place that `channels` lists", async () => {
    await using world = await startApi(`${everything}channels: [C02STATUS]\n`);
    const { card, state, words } = await cardOf(world, "vm snapshot db-1", "status");
    expect(words).toContain("[Run]");
    await world.olivia.presses("Run", { in: card });
    await until(state).toBe("done");
    expect(JSON.stringify(world.olivia.seesChannel("ops").messages)).not.toContain("db-1");
  });

  it("also while its own channel is closed", async () => {
    await using world = await startApi(`${everything}channels: [C01OPS, C03AUDIT]\n`);
    for (const channel of world.slack.workspace.channels.values())
      if (channel.name === "ops") channel.archived = true;
    await deployJob(world).proposes("vm snapshot db-1");
    const card = await hears(world.ada, "audit", /deploy proposes/);
    expect(wordsOf(card)).toContain("[Run]");
    expect(JSON.stringify(world.ada.seesChannel("status").messages)).not.toContain("db-1");
  });
});

describe("what a form fills in", () => {
  it("may be left out: a size, and what to change", async () => {
    await using world = await startApi(everything);
    const resize = await cardOf(world, "vm resize web-2");
    await world.olivia.presses("Run", { in: resize.card });
    await world.olivia.until(({ modals }) => modals.some(({ submit }) => submit === "Resize"));
    await world.olivia.submits({ CPU: "8" });
    await until(resize.state).toBe("done");
    const update = await cardOf(world, "project update staging");
    await world.olivia.presses("Run", { in: update.card });
    await world.olivia.until(({ modals }) => modals.some(({ submit }) => submit === "Update"));
    await world.olivia.submits({ "New name": "staging-2" });
    await until(update.state).toBe("done");
  });

  it("is the same without the spaces that a form takes away, and without what is empty", async () => {
    await using world = await startApi(everything);
    const words =
      'project create --name zeus --type GIT_DEPLOY --region eu-west --git-url https://git.example/zeus --git-branch "" --build-command " make all "';
    const { card, state } = await cardOf(world, words);
    await world.olivia.presses("Run", { in: card });
    await world.olivia.until(({ modals }) => modals.some(({ submit }) => submit === "Create"));
    await world.olivia.submits({});
    await until(state).toBe("done");
  });
});

describe("what a service may propose goes by the name that a project would get, too", () => {
  const renames = '{ operations: ["project.update", "project.create"], targets: ["stag*"] }';

  it("at once", async () => {
    await using world = await startApi(proposing(renames));
    const job = deployJob(world);
    for (const [words, said] of [
      [
        "project update staging --name prod",
        "/project update on staging (because of its new name prod)",
      ],
      ["project create --name prod --type CONTAINER --region eu-west", "/project create on prod"],
    ])
      expect(await job.proposes(words)).toMatchObject({
        status: 403,
        body: { title: `deploy may not propose ${said}.`, field: "command" },
      });
    const rule = "services.deploy.propose";
    expect((await refusals(world)).map((one) => one["rule"])).toEqual([rule, rule]);
    expect(await proposals(world)).toEqual([]);
    expect((await job.proposes("project update staging --name stage")).status).toBe(202);
  });

  it("at once where it may propose for all that it sees", async () => {
    const policy = proposing('{ operations: ["project.update"] }', '["stag*"]');
    await using world = await startApi(policy);
    const job = deployJob(world);
    expect((await job.proposes("project update staging --name prod")).status).toBe(403);
    expect((await job.proposes("project update staging --name stage")).status).toBe(202);
  });

  it("at the press", async () => {
    await using world = await startApi(proposing(renames));
    const { card, state } = await cardOf(world, "project update staging --name stage");
    await reload(world, (file) => file.replace('"stag*"', '"staging*"'));
    await world.olivia.presses("Run", { in: card });
    await hears(world.olivia, "ops", /no longer lets deploy propose this\. Nothing was done\./);
    expect(await state()).toBe("open");
    expect(await world.store.recentIds({}, 10)).toEqual([]);
  });

  it("where whoever runs it fills in the name", async () => {
    await using world = await startApi(proposing(renames));
    const { card, state } = await cardOf(world, "project update staging");
    const fills = async (name: string) => {
      await world.olivia.presses("Run", { in: card });
      await world.olivia.until(({ modals }) => modals.some(({ submit }) => submit === "Update"));
      await world.olivia.submits({ "New name": name });
    };
    await fills("prod");
    await world.olivia.until((seen) =>
      JSON.stringify(seen).includes(
        "gatehouse.yml doesn't let deploy propose this with what was filled in. Nothing was done.",
      ),
    );
    expect(await state()).toBe("open");
    expect(world.compute.writes()).toEqual([]);
    await fills("stage");
    await until(state).toBe("done");
  });
});

describe("the snapshot of a restore is judged again at the press", () => {
  async function proposed(world: TestWorld) {
    await world.olivia.types("ops", "/vm snapshot db-1 nightly");
    const id = snapshotIdOf(await world.ended("vm snapshot"));
    const known = world.key("snapshots", "vm-payments-db-1");
    await until(() => world.client.hlen(known)).toBe(1);
    return { ...(await cardOf(world, "vm restore db-1 nightly")), snapshot: id, known };
  }
  const made = async (world: TestWorld) => (await world.store.recentIds({}, 10)).length;

  it("is gone", async () => {
    await using world = await startApi(everything);
    const { card, known, state } = await proposed(world);
    await world.client.del(known);
    await world.olivia.presses("Run", { in: card });
    const said = /The snapshot nightly is gone\. Nothing was done\.[^]*\/vm snapshots db-1 lists/;
    await hears(world.olivia, "ops", said);
    expect(JSON.stringify(world.amir.seesChannel("ops").messages)).not.toContain("is gone");
    expect(await state()).toBe("open");
    expect(await made(world)).toBe(1);
    await world.olivia.presses("Dismiss", { in: card });
    await world.olivia.until(({ modals }) => modals.some(({ submit }) => submit === "Dismiss"));
  });

  it("is gone by the time that its form is submitted", async () => {
    await using world = await startApi(everything);
    const { card, known, state } = await proposed(world);
    await world.olivia.presses("Run", { in: card });
    const isForm = ({ submit = "" }) => submit === "Request approval";
    await world.olivia.until(({ modals }) => modals.some(isForm));
    await world.client.del(known);
    await world.olivia.submits({ "Type db-1 to confirm": "db-1", Reason: "bad migration" });
    await world.olivia.until((seen) =>
      JSON.stringify(seen).includes("The snapshot nightly is gone. Nothing was done."),
    );
    expect(await state()).toBe("open");
    expect(await made(world)).toBe(1);
  });

  it("turned out to be of another VM", async () => {
    await using world = await startApi(everything);
    const { card, snapshot, state } = await proposed(world);
    await world.client.hset(world.key("snapshot-owners"), snapshot, "vm-payments-web-2");
    await world.olivia.presses("Run", { in: card });
    await hears(world.olivia, "ops", /The snapshot nightly isn't one of db-1\. Nothing was done\./);
    expect(await state()).toBe("open");
    expect(await made(world)).toBe(1);
  });

  it("is of no VM that its service sees", async () => {
    await using world = await startApi(everything);
    const { card, state } = await cardOf(world, "vm restore db-1 snap-elsewhere");
    await reload(world, (file) =>
      file.replace('view: ["*"]\n    propose', 'view: ["payments"]\n    propose'),
    );
    await world.olivia.presses("Run", { in: card });
    await hears(
      world.olivia,
      "ops",
      /deploy no longer sees the snapshot snap-elsewhere\. Nothing was done\./,
    );
    expect(await state()).toBe("open");
    expect(await made(world)).toBe(0);
  });
});

describe("a target that became protected since", () => {
  it("is refused to whoever runs it, and whoever had the right dismisses it (decision 166)", async () => {
    await using world = await startApi(everything);
    const { card, state } = await cardOf(world, "vm stop web-2");
    await reload(world, (file) => file.replace('protect: ["vault-*"]', 'protect: ["web-*"]'));
    await world.olivia.presses("Run", { in: card });
    await hears(world.olivia, "ops", /web-2 is protected/);
    expect(await state()).toBe("open");
    await world.olivia.presses("Dismiss", { in: card });
    await world.olivia.until(({ modals }) => modals.some(({ submit }) => submit === "Dismiss"));
    await world.olivia.submits({ Reason: "it is protected now" });
    await until(state).toBe("dismissed");
  });
});

describe("a target whose name isn't known at the press", () => {
  const byName = proposing('{ operations: ["vm.snapshot"], targets: ["payments/db-*"] }');
  const late =
    /The compute service didn't say in time what db-1 is called now\. Nothing was done\.[^]*Press Run again\./;

  it.each([
    ["hangs on the VM", { match: "GET /v1/vms/*", hang: "before" as const }, late],
    ["hangs on its project", { match: "GET /v1/projects/:id", hang: "before" as const }, late],
    [
      "fails",
      { match: "GET /v1/vms/*", status: 503 },
      // It is asked again until the time is over, or not, by chance
      /The compute service didn't say( in time)? what db-1 is called now\. Nothing was done\./,
    ],
    [
      "answers without its name",
      { match: "GET /v1/vms/*", without: ["name"] },
      /The compute service didn't say what db-1 is called now\. Nothing was done\./,
    ],
  ])("isn't judged by an old one: the service %s", async (_how, weather, said) => {
    await using world = await startApi(byName);
    const { card, state } = await cardOf(world, "vm snapshot db-1");
    world.compute.edit.renameVm({ vm: "db-1", name: "ledger-9" });
    world.compute.weather(weather);
    await world.olivia.presses("Run", { in: card });
    await hears(world.olivia, "ops", said);
    expect(await state()).toBe("open");
    expect(await world.store.recentIds({}, 10)).toEqual([]);
    world.compute.clear();
    world.compute.edit.renameVm({ vm: "ledger-9", name: "db-1" });
    await world.olivia.presses("Run", { in: card });
    await until(state).toBe("done");
  });
});
