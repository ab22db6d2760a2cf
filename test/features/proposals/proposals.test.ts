import { hash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { snapshot } from "../../support/commands.ts";
import {
  createProposals,
  hasExpired,
  proposalRefusal,
  type StoredProposal,
} from "../../../src/features/proposals/proposals.ts";
import { closedField } from "../../../src/core/deliver/open-place.ts";
import { testRedis } from "../../support/with-redis.ts";
import { hears } from "../../stories/words.ts";
import { auditOf, snapshotIdOf } from "../../core/asking.ts";
import { startWorld, type TestWorld } from "../../support/start-world.ts";
import { vmTarget } from "../../core/asking.ts";
import { policyOf } from "../../core/permit/sample.ts";
import { channelNamed } from "../alerts/sending.ts";
import { deployJob, deployPolicy, apiEnv, replacePolicy, roomy, tokens } from "./deploy-job.ts";
import { until } from "../../support/until.ts";

/** A service beside the deploy job, with a token of its own. */
const otherToken = "fake-token-other";
const other = `  other:
    tokens: ["sha256:${hash("sha256", otherToken)}"]
    propose: [{ operations: ["vm.*"] }]
    channel: C01OPS
`;
const usual = deployPolicy(`${roomy}${other}`);

/** A team that has the VMs of the deploy job, told in this channel. */
const withTeam = (channel: string) =>
  `${usual}teams:
  pay: { projects: ["payments"], operate: ["S01ONCALL"], channel: ${channel} }
`;

const cardsWith = (world: TestWorld, words: string, channel = "ops") =>
  world.vera
    .seesChannel(channel)
    .messages.filter((one) => /proposes/.test(JSON.stringify(one)))
    .filter((one) => JSON.stringify(one).includes(words));

const kept = async (world: TestWorld) =>
  (await world.client.keys(world.key("proposal", "*"))).toSorted();

describe("a service at the API", () => {
  let world: TestWorld;
  beforeAll(async () => {
    world = await startWorld({ env: apiEnv, policy: usual });
  });
  afterAll(() => world.close());

  it("is accepted with either of its tokens; anything else is 401 without a reason, and nothing is counted or posted", async () => {
    const call = (name: string, authorization?: string) =>
      fetch(`${deployJob(world).url()}/v1/proposals`, {
        method: "POST",
        headers: authorization === undefined ? {} : { authorization },
        body: JSON.stringify({ command: `vm snapshot db-1 ${name}`, reason: "release 42" }),
      });
    const before = await kept(world);
    const said = new Set<string>();
    const wrong = ["Bearer fake-token-three", `Basic ${tokens[0]}`, `Bearer ${tokens.join(" ")}`];
    for (const authorization of [undefined, "", "Bearer ", ...wrong]) {
      const answer = await call("by-nobody", authorization);
      expect(answer.status).toBe(401);
      said.add(await answer.text());
    }
    expect([...said].map((text) => JSON.parse(text))).toEqual([
      { type: "about:blank", title: "Unauthorized", status: 401 },
    ]);
    for (const token of tokens)
      expect((await call("by-token", `Bearer ${token}`)).status).toBe(202);
    await until(() => cardsWith(world, "by-token").length).toBe(2);
    expect(cardsWith(world, "by-nobody")).toEqual([]);
    expect(await kept(world)).toHaveLength(before.length + 2);
    const { asks } = deployJob(world, "fake-token-three");
    expect((await asks("p-anything")).status).toBe(401);
    expect(world.lines.join("")).not.toContain("fake-token");
  });

  it("gets the same proposal for the same key, however often and concurrently; other words are refused", async () => {
    const job = deployJob(world);
    const sent = ["one", "two", "three"].map(() =>
      job.proposes("vm snapshot db-1 keyed", "release 42", "run-7"),
    );
    const all = await Promise.all(sent);
    expect(new Set(all.map(({ status, body }) => `${status} ${body.id}`)).size).toBe(1);
    for (const [command, reason] of [
      ["vm snapshot db-1 other", "release 42"],
      ["vm snapshot db-1 keyed", "release 43"],
    ])
      expect(await job.proposes(command, reason, "run-7")).toMatchObject({
        status: 422,
        body: { field: "Idempotency-Key" },
      });
    const second = await job.proposes("vm snapshot db-1 keyed", "release 42", "run-8");
    expect(second.body.id).not.toBe(all[0]?.body.id);
    await until(() => cardsWith(world, second.body.id).length).toBe(1);
    expect(cardsWith(world, "keyed")).toHaveLength(2);
  });

  it.each<[what: string, body: unknown, status: number, said: object]>([
    ["a read", ["vm list"], 422, { title: "/vm list can't be proposed like this." }],
    ["what administers", ["gatehouse thaw"], 422, { field: "command" }],
    ["break-glass", ['vm restart web-2 --break-glass "now"'], 422, { field: "command" }],
    ["several VMs", ["vm snapshot web-*"], 422, { title: "A proposal is for one VM." }],
    ["no command", ["make it work"], 422, { field: "command" }],
    ["nothing", [""], 422, { title: "`command` must not be empty." }],
    ["a list for a command", [["vm snapshot db-1"]], 422, { title: "`command` must be text." }],
    ["no reason", ["vm snapshot db-1", " "], 422, { title: "`reason` must not be empty." }],
    ["a long reason", ["vm snapshot db-1", "x".repeat(301)], 422, { field: "reason" }],
    ["a key of two words", ["vm snapshot db-1", "why", "a b"], 422, { field: "Idempotency-Key" }],
  ])("may not propose %s", async (_what, body, status, said) => {
    const before = await kept(world);
    const [command, reason, key] = body as [string, string?, string?];
    expect(await deployJob(world).proposes(command, reason, key)).toMatchObject({
      status,
      body: said,
    });
    expect(await kept(world)).toEqual(before);
  });

  it("may not propose a command or a target that gatehouse.yml doesn't list, and the audit trail notes it, as for a person", async () => {
    const before = await kept(world);
    const job = deployJob(world);
    for (const [words, title] of [
      ["vm stop web-2", "deploy may not propose /vm stop."],
      ["vm restart db-1", "deploy may not propose /vm restart on db-1."],
    ])
      expect(await job.proposes(words)).toMatchObject({ status: 403, body: { title } });
    expect(await kept(world)).toEqual(before);
    const by = { what: "refusal", who: "services.deploy", rule: "services.deploy.propose" };
    const noted = (await auditOf(world.client, world.key("audit"))).filter(
      ({ what }) => what === "refusal",
    );
    expect(noted).toEqual([
      expect.objectContaining({ ...by, command: "vm stop", targets: [] }),
      expect.objectContaining({ ...by, command: "vm restart", targets: ["vm-payments-db-1"] }),
    ]);
  });

  it("can't propose a restore from a snapshot that it doesn't see: that is like one that doesn't exist", async () => {
    const before = await kept(world);
    await world.olivia.types("ops", "/vm snapshot gpu-1 theirs");
    const hidden = snapshotIdOf(await world.ended("vm snapshot"));
    const job = deployJob(world);
    const about = async (words: string) => {
      const { status, body } = await job.proposes(`vm restore db-1 ${words}`);
      return JSON.stringify([status, body]).replaceAll(words, "X");
    };
    const unknown = await about("snap-0000000000");
    expect(unknown).toMatch(/^\[422,.*knows no snapshot X of a VM that you can see.*"command"/);
    for (const one of [hidden, "theirs"]) expect(await about(one)).toBe(unknown);
    expect(await kept(world)).toEqual(before);
  });

  it("gets the same answer for a VM that it doesn't see and for one that doesn't exist", async () => {
    const job = deployJob(world);
    const about = async (vm: string) => {
      const { status, body } = await job.proposes(`vm snapshot ${vm}`);
      return JSON.stringify([status, body]).replaceAll(vm, "X");
    };
    const unknown = await about("nobody-1");
    expect(unknown).toMatch(/^\[422,.*There is no VM called X.*"field":"command"/);
    // `vault-1` is in another project. Its ID must reveal no more than its name.
    for (const hidden of ["vault-1", "vm-vault-vault-1", "vault/vault-1"])
      expect(await about(hidden)).toBe(unknown);
  });

  it("is told nothing of proposals of other services, nor of requests that aren't made of its own", async () => {
    const job = deployJob(world);
    const { body } = await job.proposes("vm snapshot db-1");
    await world.olivia.types("ops", "/vm restart web-2");
    const { record } = await world.ended("vm restart");
    const raw = await world.client.hget(world.key("proposal", body.id), "record");
    await world.client.hset(
      world.key("proposal", body.id),
      "record",
      String(raw).replace('"service":"deploy"', '"service":"other"'),
    );
    for (const id of [body.id, record.id, "p-unknown", "%00", "p-"])
      expect(await job.asks(id)).toMatchObject({
        status: 404,
        body: { title: "There is no such request." },
      });
  });

  it("has its words shown inert: no mention, no link, no marks that reorder text", async () => {
    const reason = "<!channel> <https://evil.example|click> \u202eevil @here *bold*";
    const { body } = await deployJob(world).proposes("vm snapshot db-1", reason);
    await hears(world.vera, "ops", new RegExp(body.id));
    const shown = JSON.stringify(cardsWith(world, body.id));
    expect(shown).toContain("click");
    for (const mark of ["<!channel>", "<https", "\u202e", "@here", "*bold*"])
      expect(shown).not.toContain(mark);
  });

  it("is answered at once if the state differs from the one it knows, and otherwise only when it changes or the wait ends", async () => {
    const job = deployJob(world);
    const { body } = await job.proposes("vm snapshot db-1 awaited");
    let hasWaited = false;
    const next = job.asks(body.id, "?wait=30&after=open").finally(() => (hasWaited = true));
    for (const query of ["?wait=30&after=draft", "", "?wait=many"])
      expect((await job.asks(body.id, query)).body.state).toBe("open");
    expect((await job.asks(body.id, "?wait=0.3&after=open")).body.state).toBe("open");
    // The call that came before all of these waits still
    expect(hasWaited).toBe(false);
    const card = await hears(world.olivia, "ops", new RegExp(body.id));
    await world.olivia.presses("Run", { in: card.ts });
    expect((await next).body.state).not.toBe("open");
    await until(async () => (await job.asks(body.id)).body.state).toBe("done");
  });

  it("finds only the field, and none of its words, in the log when they are refused", async () => {
    const job = deployJob(world, otherToken);
    const all = ["vm snapsot secret-two", "secret-three", "vm snapshot secret-four"];
    const told = ["vm snapshot db-1 x secret-five", "vm restart secret-six"];
    for (const words of [...all, ...told]) expect((await job.proposes(words)).status).toBe(422);
    const headers = { authorization: `Bearer ${otherToken}` };
    for (const path of ["vms/secret-seven", "vms?project=secret-eight"])
      expect((await fetch(`${job.url()}/v1/${path}`, { headers })).status, path).toBeGreaterThan(
        400,
      );
    const refused = world.lines.filter(
      (line) => line.includes("api.refused") && line.includes('"services.other"'),
    );
    expect(refused).toHaveLength(7);
    expect(refused.filter((line) => line.includes('"field":"command"'))).toHaveLength(5);
    expect(world.lines.join("")).not.toMatch(/secret-(?:two|three|four|five|six|seven|eight)/);
    expect(refused.join("")).not.toContain("snapsot");
  });

  it("mentions whom its `notify` names on the card, once, while it asks", async () => {
    await replacePolicy(world, deployPolicy(`${roomy}    notify: ["S01ONCALL"]\n`));
    await deployJob(world).proposes("vm snapshot db-1 noticed");
    const card = await hears(
      world.olivia,
      "ops",
      /deploy proposes to <!subteam\^S01ONCALL[^]*as noticed[^]*\[Run\]/,
    );
    await world.olivia.presses("Run", { in: card.ts });
    const end = await hears(
      world.olivia,
      "ops",
      /deploy proposes:[^]*✅ Took a snapshot of db-1 as noticed/,
    );
    expect(end.ts).toBe(card.ts);
    const called = world.olivia.mentions().filter(({ ts }) => ts === card.ts);
    expect(called).toHaveLength(1);
    expect(world.amir.mentions()).toEqual([]);
  });

  it("posts in the target's team's channel when its own channel belongs to another team", async () => {
    await replacePolicy(world, withTeam("C02STATUS"));
    const { body } = await deployJob(world).proposes("vm snapshot db-1");
    await until(() => cardsWith(world, body.id, "status").length).toBe(1);
    expect(cardsWith(world, body.id)).toEqual([]);
  });

  it("posts in no channel of others while its team's own is closed", async () => {
    await replacePolicy(world, withTeam("C01OPS"));
    channelNamed(world, "ops").archived = true;
    const { body } = await deployJob(world).proposes("vm snapshot db-1");
    await hears(world.ada, "audit", new RegExp(`deploy proposes[^]*${body.id}`));
    expect(cardsWith(world, body.id, "status")).toEqual([]);
    channelNamed(world, "ops").archived = false;
  });

  it("posts in the channel of alerts while its own is closed, where the proposal can be run", async () => {
    await replacePolicy(world, usual);
    channelNamed(world, "ops").archived = true;
    const { body } = await deployJob(world).proposes("vm snapshot db-1");
    const card = await hears(world.olivia, "status", new RegExp(`deploy proposes[^]*${body.id}`));
    await world.olivia.presses("Run", { in: card.ts });
    await until(async () => (await deployJob(world).asks(body.id)).body.state).toBe("done");
    channelNamed(world, "ops").archived = false;
  });

  it("waits for its channel where there is no other, and status says so meanwhile", async () => {
    await replacePolicy(world, deployPolicy(roomy, { alerts: undefined, audit: undefined }));
    channelNamed(world, "ops").archived = true;
    const { body } = await deployJob(world).proposes("vm snapshot db-1");
    await until(() =>
      world.lines.some((line) => line.includes("is_archived") && line.includes(body.id)),
    ).toBe(true);
    await world.client.hset(world.key("proposal", body.id), "createdAt", 0);
    await world.ada.types("status", "/gatehouse status");
    await hears(world.ada, "status", /1 proposal of services\.deploy can be shown in no channel/);
    channelNamed(world, "ops").archived = false;
    // As if it had been tried long ago
    await world.client.hset(world.key("proposal", body.id), closedField("C01OPS", 0));
    await createProposals(world.client, world.key).redraw(body.id);
    await until(() => cardsWith(world, body.id).length).toBe(1);
  });

  it("is told nothing any more once gatehouse.yml doesn't name it, not even at the end of a wait", async () => {
    const job = deployJob(world);
    const { body } = await job.proposes("vm snapshot db-1");
    const waiting = job.asks(body.id, "?wait=30&after=open");
    await until(() => cardsWith(world, body.id).length).toBe(1);
    await replacePolicy(world, usual.split("services:")[0] ?? "");
    expect((await waiting).status).toBe(401);
  });
});

describe("a service at the limit of its open proposals", () => {
  let world: TestWorld;
  beforeAll(async () => {
    const limits = "    limits: { requestsPerMinute: 90, openProposals: 2 }\n";
    world = await startWorld({ env: apiEnv, policy: deployPolicy(limits) });
  });
  afterAll(() => world.close());

  it("has no more open than that, though it proposes them all at once, at two gateways", async () => {
    await world.startProcess("gateway");
    const jobs = world.processes.map((one) => deployJob({ processes: [one] }));
    expect(new Set(jobs.map(({ url }) => url())).size).toBe(2);
    const names = Array.from({ length: 15 }, (_, n) => `vm snapshot db-1 n${n}`);
    const all = await Promise.all(
      names.flatMap((command) => jobs.map((job) => job.proposes(command))),
    );
    const counted = (of: number) => all.filter(({ status }) => status === of).length;
    expect([counted(202), counted(429)]).toEqual([2, 28]);
    expect(await kept(world)).toHaveLength(2);
  });

  it("is told what to do, as the audit channel is, and may propose again once one is run", async () => {
    const job = deployJob(world);
    expect(await job.proposes("vm snapshot db-1 c")).toMatchObject({
      status: 429,
      body: {
        title: "2 of your proposals are open, which is the limit.",
        detail: expect.stringContaining("Wait until one is run or dismissed"),
      },
    });
    await hears(world.ada, "audit", /services\.deploy is at its limit of 2 open proposals/);
    const card = await hears(world.olivia, "ops", /deploy proposes[^]*\[Run\]/);
    await world.olivia.presses("Run", { in: card.ts });
    await world.ended("vm snapshot");
    await hears(world.olivia, "ops", /✅ Took a snapshot of db-1 .*\(olivia\)/);
    expect((await job.proposes("vm snapshot db-1 c")).status).toBe(202);
  });

  it("has as many calls a minute as gatehouse.yml gives it, and is told when the next one has room", async () => {
    const limits = "    limits: { requestsPerMinute: 1, openProposals: 2 }\n";
    await replacePolicy(world, deployPolicy(limits));
    const over = await until(async () => {
      const answer = await deployJob(world).asks("p-anything");
      return answer.status === 429 && answer;
    });
    expect(Number(over.headers.get("retry-after"))).toBeGreaterThan(0);
  });
});

it("a proposal that is taken again doesn't expire under the press that took it", async () => {
  await using here = await testRedis();
  const proposals = createProposals(here.redis, here.key);
  const read = async () => {
    const proposal = await proposals.get("p-1");
    if (!proposal) throw new Error("it is gone");
    return proposal;
  };
  const expiresAt = (await proposals.now()) - 1;
  await proposals.propose({
    id: "p-1",
    by: { service: "deploy" },
    words: "vm restart db-1",
    reason: "it hangs",
    command: "vm restart",
    input: { vms: ["db-1"] },
    target: vmTarget("db-1"),
    labels: {},
    risk: [],
    channelId: "C01OPS",
    expiresAt,
  });
  expect(await proposals.take(await read())).toBe(true);
  const long = String(expiresAt - 120_000);
  await here.redis.hset(here.key("proposal", "p-1"), "takenAt", long);
  expect(hasExpired(await read(), await proposals.now())).toBe(true);
  expect(await proposals.take(await read())).toBe(true);
  expect(hasExpired(await read(), await proposals.now())).toBe(false);
});

describe("a person's own proposal", () => {
  it("is decided by that person alone, until it expires", () => {
    const by = { person: { id: "U0OLIVIA", teamId: "T0OURS", name: "olivia" } };
    const record = { by, target: vmTarget("db-1"), expiresAt: 1_000 };
    const stored = { record, state: "open", takenAt: 0 } as StoredProposal;
    const policy = policyOf("{}");
    const refused = (personId: string, now: number) =>
      proposalRefusal(stored, snapshot, { personId, policy, now });
    expect(refused("U0OLIVIA", 999)).toBeUndefined();
    expect(refused("U0ADA", 999)).toMatch(/in someone else's name/);
    expect(refused("U0OLIVIA", 1_000)).toBe("This proposal has expired. Nothing was done.");
  });
});
