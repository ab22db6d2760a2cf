import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import {
  apiEnv,
  deployJob,
  deployPolicy,
  replacePolicy,
  roomy,
} from "../features/proposals/deploy-job.ts";
import type { PersonActions } from "../../sandbox/slack/actions.ts";
import { stretchDeadlines } from "../../src/deadline.ts";
import { channelNamed } from "../features/alerts/sending.ts";
import { auditOf, snapshotIdOf } from "../core/asking.ts";
import { type PolicyDifference, startWorld, type TestWorld } from "../support/start-world.ts";
import { hears, wordsOf } from "./words.ts";
import { until } from "../support/until.ts";

/** The deploy job sees everything, and may propose these, on every target unless told otherwise. */
const proposing = (propose: string, view = '["*"]', difference: PolicyDifference = {}) =>
  deployPolicy(roomy, difference)
    .replace('view: ["payments"]', `view: ${view}`)
    .replace(/propose:\n(?: +- .*\n)+/, `propose: [${propose}]\n`);

const everythingWith = (difference: PolicyDifference = {}) =>
  proposing('{ operations: ["*"] }', '["*"]', difference);
const everything = everythingWith();

let world: TestWorld;
/** Called when the process begins with a delivery that is acknowledged. */
let onHandle: () => void = () => undefined;
beforeAll(async () => {
  world = await startWorld({
    env: apiEnv,
    policy: everything,
    at: async (point) => (point === "ack" ? onHandle() : undefined),
    // A VM is renamed for a moment here, and no list shall be read then
    pace: { inventoryRefreshMs: 3_600_000 },
  });
});
afterAll(() => world.close());
afterEach(async () => {
  if (world.olivia.sees().modals.length > 0) await world.olivia.closes({ all: true });
});

const refusals = async () =>
  (await auditOf(world.client, world.key("audit"))).filter(({ what }) => what === "refusal");

const proposals = async () => (await world.client.keys(world.key("proposal", "*"))).toSorted();

/** Has the job propose this under another policy, and returns what it adds to the proposals and the refusals. */
async function proposedUnder(policy: string, command: string) {
  await replacePolicy(world, policy);
  const [before, refused] = [await proposals(), (await refusals()).length];
  const { status, body } = await deployJob(world).proposes(command);
  return {
    status,
    body,
    made: (await proposals()).length - before.length,
    refusals: (await refusals()).slice(refused),
  };
}

async function cardOf(command: string, channel = "ops") {
  const job = deployJob(world);
  const { status, body } = await job.proposes(command);
  expect([status, body.title]).toEqual([202, undefined]);
  const { id } = body;
  const card = await hears(world.olivia, channel, new RegExp(`deploy proposes[^]*${id}`));
  const state = async () => (await job.asks(id)).body.state;
  /** The requests that were made of it. */
  const made = async () =>
    (await world.store.getMany(await world.store.recentIds({}, 200))).filter(
      ({ record: { origin } }) => origin.kind === "proposal" && origin.proposal === id,
    );
  const run = () => world.olivia.presses("Run", { in: card.ts });
  return { id, card: card.ts, words: wordsOf(card), state, made, run };
}

const opens = (person: PersonActions, label: string) =>
  person.until(({ modals }) => modals.some(({ submit }) => submit === label));

/** The message that answers what Olivia does. */
async function answerTo(act: () => Promise<unknown>, words: RegExp) {
  const read = () => world.olivia.seesChannel("ops").messages;
  const before = new Set(read().map(({ ts }) => ts));
  await act();
  return until(() => read().find((one) => !before.has(one.ts) && words.test(wordsOf(one))));
}

const team = (rights: string) =>
  `teams:\n  pay: { projects: ["payments"], channel: C01OPS, ${rights} }\n`;

describe("a proposal of what nobody may ever run", () => {
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
      "it is a project with a protected VM",
      everything,
      "project delete vault",
      /protected/,
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
  ])(
    "makes no card, and is in the audit trail by its rule: %s",
    async (_what, policy, command, title, detail, rule) => {
      const { status, body, made, refusals: noted } = await proposedUnder(policy, command);
      expect([status, body]).toEqual([
        422,
        expect.objectContaining({
          title: expect.stringMatching(title),
          detail: expect.stringMatching(detail),
          field: "command",
        }),
      ]);
      expect(made).toBe(0);
      const name = /^\w+ \w+/.exec(command)?.[0];
      expect(noted).toEqual([
        expect.objectContaining({ who: "services.deploy", command: name, rule }),
      ]);
    },
  );

  it("makes no card, and is in the audit trail by its rule: the snapshot is another VM's", async () => {
    await replacePolicy(world, everything);
    await world.olivia.types("ops", "/vm snapshot web-2 nightly");
    const id = snapshotIdOf(await world.ended("vm snapshot"));
    await until(() => world.client.hget(world.key("snapshot-owners"), id)).not.toBeNull();
    const {
      status,
      body,
      made,
      refusals: noted,
    } = await proposedUnder(everything, `vm restore db-1 ${id}`);
    expect([status, body.title, body.field]).toEqual([
      422,
      `The snapshot ${id} isn't one of db-1.`,
      "command",
    ]);
    expect(made).toBe(0);
    expect(noted).toEqual([
      expect.objectContaining({ rule: "input.snapshot", command: "vm restore" }),
    ]);
  });
});

describe("a proposal of what needs an approval", () => {
  it.each([
    ["everyone may", 'operate: ["*"], approve: ["*"]'],
    ["a group may, whoever is in it", 'operate: ["S01ONCALL"], approve: ["S09NOBODY"]'],
    [
      "two people may, each with the other's approval",
      'operate: ["U0OLIVIA", "U0AMIR"], approve: ["U0OLIVIA", "U0AMIR"]',
    ],
  ])("makes a card where enough people could give it: %s", async (_who, rights) => {
    const { status, made } = await proposedUnder(
      `${everything}${team(rights)}`,
      "project delete payments",
    );
    expect([status, made]).toEqual([202, 1]);
  });
});

describe("a card that its own channel can't run or take", () => {
  const inOps = (id: string) =>
    world.olivia.seesChannel("ops").messages.filter((one) => wordsOf(one).includes(id));

  it("stands in the next place that `channels` lists", async () => {
    await replacePolicy(world, `${everything}channels: [C02STATUS]\n`);
    const { id, run, state, words } = await cardOf("vm snapshot db-1", "status");
    expect(words).toContain("[Run]");
    await run();
    await until(state).toBe("done");
    expect(inOps(id)).toEqual([]);
  });

  it("stands where it can be run, also while its own channel is closed", async () => {
    await replacePolicy(world, `${everything}channels: [C01OPS, C03AUDIT]\n`);
    channelNamed(world, "ops").archived = true;
    const { id } = (await deployJob(world).proposes("vm snapshot db-1")).body;
    const card = await hears(world.ada, "audit", new RegExp(`deploy proposes[^]*${id}`));
    expect(wordsOf(card)).toContain("[Run]");
    const { messages } = world.ada.seesChannel("status");
    expect(messages.filter((one) => wordsOf(one).includes(id))).toEqual([]);
    channelNamed(world, "ops").archived = false;
  });
});

describe("what a form fills in", () => {
  beforeAll(() => replacePolicy(world, everything));

  it("may be left out: a size, and what to change", async () => {
    const resize = await cardOf("vm resize web-2");
    await resize.run();
    await opens(world.olivia, "Resize");
    await world.olivia.submits({ CPU: "8" });
    await until(resize.state).toBe("done");
    const update = await cardOf("project update staging");
    await update.run();
    await opens(world.olivia, "Update");
    await world.olivia.submits({ "New name": "staging-2" });
    await until(update.state).toBe("done");
    world.compute.edit.renameProject({ project: "staging-2", name: "staging" });
  });

  it("is the same without the spaces that a form takes away, and without what is empty", async () => {
    const words =
      'project create --name zeus --type GIT_DEPLOY --region eu-west --git-url https://git.example/zeus --git-branch "" --build-command " make all "';
    const { run, state } = await cardOf(words);
    await run();
    await opens(world.olivia, "Create");
    await world.olivia.submits({});
    await until(state).toBe("done");
  });
});

describe("what a service may propose", () => {
  const renames = '{ operations: ["project.update", "project.create"], targets: ["stag*"] }';

  it.each([
    [
      "project update staging --name prod",
      "/project update on staging (because of its new name prod)",
    ],
    ["project create --name prod --type CONTAINER --region eu-west", "/project create on prod"],
  ])("goes by the name that a project would get, too: %s", async (words, said) => {
    const { status, body, made, refusals: noted } = await proposedUnder(proposing(renames), words);
    expect([status, body.title, body.field]).toEqual([
      403,
      `deploy may not propose ${said}.`,
      "command",
    ]);
    expect(noted.map((one) => one["rule"])).toEqual(["services.deploy.propose"]);
    expect(made).toBe(0);
  });

  it("goes by that name also where it may propose for all that it sees", async () => {
    const policy = proposing('{ operations: ["project.update"] }', '["stag*"]');
    const prod = await proposedUnder(policy, "project update staging --name prod");
    const stage = await proposedUnder(policy, "project update staging --name stage");
    expect([prod.status, stage.status]).toEqual([403, 202]);
  });

  it("goes by that name at the press as well", async () => {
    await replacePolicy(world, proposing(renames));
    const { made, run, state } = await cardOf("project update staging --name stage");
    await replacePolicy(world, proposing(renames).replace('"stag*"', '"staging*"'));
    await answerTo(run, /no longer lets deploy propose this\. Nothing was done\./);
    expect(await state()).toBe("open");
    expect(await made()).toEqual([]);
  });

  it("goes by the name that is filled in by whoever runs it", async () => {
    await replacePolicy(world, proposing(renames));
    const { run, state } = await cardOf("project update staging");
    const sent = world.compute.writes().length;
    const fills = async (name: string) => {
      await run();
      await opens(world.olivia, "Update");
      await world.olivia.submits({ "New name": name });
    };
    await fills("prod");
    await world.olivia.until((seen) =>
      JSON.stringify(seen).includes(
        "gatehouse.yml doesn't let deploy propose this with what was filled in. Nothing was done.",
      ),
    );
    expect(await state()).toBe("open");
    expect(world.compute.writes()).toHaveLength(sent);
    await fills("stage");
    await until(state).toBe("done");
  });
});

describe("the snapshot of a proposed restore", () => {
  const known = () => world.key("snapshots", "vm-payments-db-1");

  async function proposed(name: string) {
    await replacePolicy(world, everything);
    await world.olivia.types("ops", `/vm snapshot db-1 ${name}`);
    const snapshot = snapshotIdOf(await world.ended("vm snapshot"));
    await until(async () => Object.keys(await world.client.hgetall(known()))).toContain(snapshot);
    return { ...(await cardOf(`vm restore db-1 ${name}`)), snapshot };
  }

  it("is looked for again at the press: when it is gone, whoever pressed is told alone", async () => {
    const { card, made, run, state } = await proposed("gone");
    await world.client.del(known());
    const said = /The snapshot gone is gone\. Nothing was done\.[^]*\/vm snapshots db-1 lists/;
    await answerTo(run, said);
    expect(JSON.stringify(world.amir.seesChannel("ops").messages)).not.toContain("is gone");
    expect(await state()).toBe("open");
    expect(await made()).toEqual([]);
    await world.olivia.presses("Dismiss", { in: card });
    await opens(world.olivia, "Dismiss");
  });

  it("is looked for again when the form is submitted: nothing is done when it is gone", async () => {
    const { made, run, state } = await proposed("soon-gone");
    await run();
    await opens(world.olivia, "Request approval");
    await world.client.del(known());
    await world.olivia.submits({ "Type db-1 to confirm": "db-1", Reason: "bad migration" });
    await world.olivia.until((seen) =>
      JSON.stringify(seen).includes("The snapshot soon-gone is gone. Nothing was done."),
    );
    expect(await state()).toBe("open");
    expect(await made()).toEqual([]);
  });

  it("is refused at the press when it turned out to be of another VM", async () => {
    const { made, run, snapshot, state } = await proposed("mislaid");
    await world.client.hset(world.key("snapshot-owners"), snapshot, "vm-payments-web-2");
    await answerTo(run, /The snapshot mislaid isn't one of db-1\. Nothing was done\./);
    expect(await state()).toBe("open");
    expect(await made()).toEqual([]);
  });

  it("is refused at the press when it is of no VM that its service sees", async () => {
    await replacePolicy(world, everything);
    const { made, run, state } = await cardOf("vm restore db-1 snap-elsewhere");
    await replacePolicy(world, proposing('{ operations: ["*"] }', '["payments"]'));
    await answerTo(run, /deploy no longer sees the snapshot snap-elsewhere\. Nothing was done\./);
    expect(await state()).toBe("open");
    expect(await made()).toEqual([]);
  });
});

describe("a target that became protected since", () => {
  it("is refused to whoever runs it, and whoever had the right dismisses it (decision 166)", async () => {
    await replacePolicy(world, everything);
    const { card, run, state } = await cardOf("vm stop web-2");
    await replacePolicy(world, everythingWith({ protect: ["web-*"] }));
    await answerTo(run, /web-2 is protected/);
    expect(await state()).toBe("open");
    await world.olivia.presses("Dismiss", { in: card });
    await opens(world.olivia, "Dismiss");
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
    await replacePolicy(world, byName);
    const { made, run, state } = await cardOf("vm snapshot db-1");
    world.compute.edit.renameVm({ vm: "db-1", name: "ledger-9" });
    world.compute.weather(weather);
    // The name never comes, so this passes on any machine
    if (!("without" in weather)) onHandle = () => stretchDeadlines(0.2);
    await answerTo(run, said);
    onHandle = () => undefined;
    stretchDeadlines(30);
    expect(await state()).toBe("open");
    expect(await made()).toEqual([]);
    world.compute.clear();
    world.compute.edit.renameVm({ vm: "ledger-9", name: "db-1" });
    await run();
    await until(state).toBe("done");
  });
});
