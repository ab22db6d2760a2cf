import { hash } from "node:crypto";
import { rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { readStoredPolicy, storedPolicyKey } from "../../src/audit/stored-policy.ts";
import { auditOf } from "../core/asking.ts";
import { policyWith, startWorld, testPolicy, type TestWorld } from "../support/start-world.ts";
import { privateRedis } from "../support/with-redis.ts";
import { hears, wordsOf } from "./words.ts";
import { until } from "../support/until.ts";

const approvals = 'approvals: [{ operations: ["vm.restart"], required: 1, expires: 1m }]\n';
const restartsNeedOne = policyWith({}, approvals);
const protect = ["vault-*", "db-*"];

/** A process looks often whether its policy is in force, and stands still soon when it isn't. */
const pace = { heartbeatMs: 400 };

const file = (world: TestWorld) => world.env["GATEHOUSE_CONFIG"] ?? "";
const logged = (world: TestWorld, event: string) =>
  world.lines
    .map((line) => JSON.parse(line) as { event: string; [key: string]: unknown })
    .filter((line) => line.event === event);

async function figures(world: TestWorld, process = 0): Promise<string> {
  const port = world.processes[process]?.opsPort;
  return (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
}

async function readiness(world: TestWorld, process: number): Promise<string> {
  const answer = await fetch(`http://127.0.0.1:${world.processes[process]?.opsPort}/readyz`);
  return `${answer.status} ${await answer.text()}`;
}

/** What the audit channel had read before the test began. */
let readBefore = new Set<string>();
const inAudit = (world: TestWorld, words: RegExp) =>
  world.ada
    .seesChannel("audit")
    .messages.filter((message) => !readBefore.has(message.ts) && words.test(wordsOf(message)));

/** The words of the audit channel, once it reads this in the test. */
const isTold = async (world: TestWorld, words: RegExp) =>
  wordsOf(await until(() => inAudit(world, words).at(-1)));

const changesIn = async (world: TestWorld) =>
  (await auditOf(world.client, world.key("audit"))).filter(({ what }) => what === "policy");

/** Starts a world before the tests of a block, which share it, and notes before each what the audit channel has read. */
function sharedWorld(start: () => Promise<TestWorld>): () => TestWorld {
  let world: TestWorld;
  beforeAll(async () => {
    world = await start();
  });
  beforeEach(() => {
    readBefore = new Set(world.ada.seesChannel("audit").messages.map(({ ts }) => ts));
  });
  afterAll(async () => {
    await world.close();
    readBefore = new Set();
  });
  return () => world;
}

describe("a policy that is replaced while Gatehouse runs", () => {
  const replaced = policyWith({ protect, approve: ["S02LEADS", "U0VERA"] }, "channels: [C01OPS]\n");
  const shared = sharedWorld(() => startWorld({ policy: restartsNeedOne }));

  it("counts at once, tells the audit channel what it changes, and cancels what waited under the former one", async () => {
    const world = shared();
    await world.olivia.types("ops", "/vm restart web-2");
    await hears(world.olivia, "ops", /Restart web-2[^]*Waiting for approval/);
    await writeFile(file(world), replaced);
    await world.processes[0]?.reload();
    const news = wordsOf(await hears(world.ada, "audit", /The policy changed/));
    expect(news).toMatch(/access.approve: added vera \(U0VERA\)/);
    expect(news).toMatch(/approvals: removed \(operations vm.restart; required 1; expires 1m\)/);
    expect(news).toMatch(/protect: added db-/);
    expect(news).toMatch(/channels: not set → /);
    expect(news).toMatch(
      /Canceled, because it was requested under the former policy:\n• vm restart payments\/web-2, requested by olivia \(\S+\) · <https:\S+\|Open its message>/,
    );
    await hears(world.olivia, "ops", /the policy changed while this waited for approval/);
    expect(await world.ended()).toMatchObject({ state: "cancelled" });
    await world.olivia.types("ops", "/vm restart web-2");
    await hears(world.olivia, "ops", /Restarted web-2/);
    expect(world.compute.writes()).toHaveLength(1);
    const changed = (await auditOf(world.client, world.key("audit"))).filter(
      ({ what }) => what === "policy",
    );
    expect(changed).toMatchObject([{ changes: expect.arrayContaining(["protect: added db-*"]) }]);
    expect(inAudit(world, /The policy changed/)).toHaveLength(1);
    const page = await figures(world);
    expect(page).toContain('gatehouse_policy_reloads_total{outcome="changed"} 1');
    expect(page).toMatch(/gatehouse_policy_info\{version="[0-9a-f]{12}"\} 1/);
  });

  it("stays as it was when the file can't be used: told once with the line, until it is mended", async () => {
    const world = shared();
    await writeFile(file(world), replaced.replace("operate:", "oprate:"));
    await world.processes[0]?.reload();
    await world.processes[0]?.reload();
    const news = wordsOf(await hears(world.ada, "audit", /can't be used/));
    expect(news).toMatch(/line 3: access.oprate isn't known; did you mean operate\?/);
    await world.vera.types("ops", "/gatehouse status");
    await hears(
      world.vera,
      "ops",
      /Policy: \S*gatehouse.yml line 3 can't be used; the former policy still applies/,
    );
    await world.olivia.types("ops", "/vm restart payments/web-1");
    await hears(world.olivia, "ops", /Restarted payments\/web-1/);
    const bad = await figures(world);
    expect(bad).toMatch(/^gatehouse_policy_file_unusable 1$/m);
    expect(bad).toContain('gatehouse_policy_reloads_total{outcome="kept"} 1');
    await writeFile(file(world), `# mended\n${replaced}`);
    await world.processes[0]?.reload();
    expect(await figures(world)).toMatch(/^gatehouse_policy_file_unusable 0$/m);
    expect(inAudit(world, /can't be used/)).toHaveLength(1);
    expect(inAudit(world, /policy changed|gatehouse.yml changed\./)).toHaveLength(0);
    expect(logged(world, "policy.kept")).toHaveLength(1);
  });

  it("names user groups: the audit channel is told who came and went, and a vote counts by its members of the moment", async () => {
    const world = shared();
    const sent = world.compute.writes().length;
    await writeFile(file(world), restartsNeedOne);
    await world.processes[0]?.reload();
    await world.olivia.types("ops", "/vm restart db-1");
    const card = await hears(world.olivia, "ops", /Restart db-1[^]*Waiting for approval/);
    await world.slack.edit.setGroupMembers("leads", ["ada", "vera"]);
    const news = await isTold(world, /The user group/);
    expect(news).toMatch(
      /The user group @leads \(S02LEADS\), which the policy names, changed: vera joined; amir left\. It counts at once\./,
    );
    expect(news).not.toMatch(/<[@!]/);
    await world.amir.presses("Approve", { in: card.ts });
    await world.amir.until((seen) => JSON.stringify(seen).includes("your vote doesn't count"));
    expect(world.compute.writes()).toHaveLength(sent);
    await world.vera.presses("Approve", { in: card.ts });
    await hears(world.olivia, "ops", /Restarted db-1/);
    expect(inAudit(world, /The user group/)).toHaveLength(1);
  });

  it("is adopted and told when Redis is back, where it was away meanwhile", async () => {
    await using redis = await privateRedis();
    await using world = await startWorld({ redisUrl: redis.url });
    await redis.stop();
    await writeFile(file(world), restartsNeedOne);
    const reloading = world.processes[0]?.reload();
    await redis.start();
    await reloading;
    await hears(world.ada, "audit", /The policy changed[^]*approvals: added/);
    // The test's own connection may come back later than Gatehouse's
    const trail = await until(() => auditOf(world.client, world.key("audit")));
    const noted = trail.filter(({ what }) => what === "policy");
    expect(noted).toHaveLength(1);
  });

  it.for(["by one that goes on", "by the next one that starts"])(
    "is told once though its process dies between adopting and telling it: %s",
    async (by) => {
      let isDying = true;
      await using world = await startWorld({
        at: async (point) => {
          if (point === "policy-adopted" && isDying) throw new Error("killed here");
        },
      });
      const goesOn = by === "by one that goes on";
      if (goesOn) await world.startProcess("worker");
      await writeFile(file(world), restartsNeedOne);
      await world.processes[0]?.reload();
      await world.processes[0]?.close();
      isDying = false;
      if (!goesOn) await world.startProcess("worker");
      const news = wordsOf(await hears(world.ada, "audit", /The policy changed/));
      expect(news).toMatch(/approvals: added \(operations vm.restart/);
      expect(inAudit(world, /The policy changed/)).toHaveLength(1);
    },
  );

  it("is told where the former one was told, also by a process that never had that", async () => {
    await using world = await startWorld();
    const other = path.join(path.dirname(file(world)), "other.yml");
    await writeFile(other, policyWith({ audit: undefined }, approvals));
    await world.startProcess("worker", { GATEHOUSE_CONFIG: other });
    const news = wordsOf(await hears(world.ada, "audit", /The policy changed/));
    expect(news).toMatch(/approvals: added \(operations vm.restart/);
    expect(news).toMatch(/audit: \(channel C03AUDIT\) → not set/);
  });
});

describe("a policy file that is watched", () => {
  const watching = sharedWorld(() => startWorld({ env: { GATEHOUSE_WATCH: "1" }, pace }));

  it("stays as it was when the file is removed, also where it is watched", async () => {
    const world = watching();
    const policy = () => readStoredPolicy(world.client, world.key);
    const before = await policy();
    await rm(file(world));
    const news = wordsOf(await hears(world.ada, "audit", /can't be used/));
    expect(news).toMatch(/gatehouse.yml can't be read \(ENOENT\)/);
    await world.processes[0]?.reload();
    await world.olivia.types("ops", "/vm restart web-2");
    await hears(world.olivia, "ops", /Restarted web-2/);
    expect(await policy()).toEqual(before);
    expect(await readiness(world, 0)).toMatch(/^200/);
  });

  it("is followed with GATEHOUSE_WATCH alone, in the channel that it names for that and in the one before", async () => {
    const world = watching();
    await writeFile(file(world), policyWith({ audit: "C02STATUS" }));
    await hears(world.ada, "audit", /gatehouse.yml changed\.[^]*audit.channel: /);
    await hears(world.vera, "status", /gatehouse.yml changed\.[^]*audit.channel: /);
  });
});

describe("a policy of a process that is restarted", () => {
  const restarted = sharedWorld(() => startWorld());

  it("comes back by a restart with the older file, where the process had the newer one", async () => {
    const world = restarted();
    await writeFile(file(world), restartsNeedOne);
    await world.processes[0]?.reload();
    await world.processes[0]?.close();
    await writeFile(file(world), testPolicy);
    await world.startProcess("worker");
    await isTold(world, /The policy changed[^]*approvals: removed \(operations vm/);
  });

  it("is told by a restart with a file that only moves the audit channel", async () => {
    const world = restarted();
    await world.processes.at(-1)?.close();
    await writeFile(file(world), policyWith({ audit: "C02STATUS" }));
    await world.startProcess("worker");
    await isTold(world, /gatehouse.yml changed\.[^]*audit.channel: /);
    await hears(world.vera, "status", /gatehouse.yml changed\.[^]*audit.channel: /);
  });
});

/** Another policy file than that of the first process. */
const beside = (world: TestWorld) => path.join(path.dirname(file(world)), "other.yml");

describe("a policy without versions, in processes with files of their own", () => {
  const two = sharedWorld(() => startWorld({ pace }));

  it("changes nothing in a process that doesn't get it, until it does", async () => {
    const world = two();
    const other = beside(world);
    await writeFile(other, testPolicy);
    const worker = await world.startProcess("worker", { GATEHOUSE_CONFIG: other });
    await writeFile(other, restartsNeedOne);
    await worker.reload();
    await until(() => readiness(world, 0)).toMatch(
      /^503 .*policy: nothing changes here: version \w+ of the policy replaced \w+, and this process doesn't have it: its policy file isn't that one/,
    );
    expect(await readiness(world, 1)).toMatch(/^200/);
    await world.olivia.types("ops", "/vm restart web-2");
    await world.olivia.until((seen) =>
      JSON.stringify(seen).includes("doesn't have the new one yet, so it changes nothing"),
    );
    await world.vera.types("ops", "/gatehouse status");
    await hears(world.vera, "ops", /Policy: nothing changes here: version/);
    await until(() => figures(world)).toMatch(/^gatehouse_policy_superseded 1$/m);
    expect(logged(world, "policy.standstill")).toHaveLength(1);
    // Read anew by itself: nobody has to tell this process
    await writeFile(file(world), restartsNeedOne);
    await until(() => readiness(world, 0)).toMatch(/^200/);
    await world.olivia.types("ops", "/vm restart web-2");
    await hears(world.olivia, "ops", /Restart web-2[^]*Waiting for approval/);
    expect(world.compute.writes()).toEqual([]);
    expect(inAudit(world, /The policy changed/)).toHaveLength(1);
  });

  it("is the one that was loaded last: a process that starts with an old file brings that back, and the audit channel is told", async () => {
    const world = two();
    const before = (await changesIn(world)).length;
    const old = path.join(path.dirname(file(world)), "old.yml");
    await writeFile(old, testPolicy);
    await world.startProcess("worker", { GATEHOUSE_CONFIG: old });
    await isTold(world, /The policy changed[^]*approvals: removed \(operations vm/);
    await until(() => readiness(world, 0)).toMatch(
      /^503 .*policy: nothing changes here: version \w+ of the policy replaced \w+/,
    );
    // A running process takes nothing back by itself: one start, one change
    expect(await readiness(world, 2)).toMatch(/^200/);
    await world.processes[0]?.close();
    await world.startProcess("all");
    await until(() => readiness(world, 3)).toMatch(/^200/);
    expect((await changesIn(world)).slice(before)).toMatchObject([
      { changes: [expect.stringContaining("approvals: removed")] },
      { changes: [expect.stringContaining("approvals: added")] },
    ]);
  });
});

const numbered = (version: number, text: string) => `version: ${version}\n${text}`;

describe("a policy file with a version", () => {
  const shared = sharedWorld(() => startWorld({ policy: numbered(1, testPolicy), pace }));

  it("replaces a lower one, and is named by it to the audit channel, in status, and by a process that lacks it", async () => {
    const world = shared();
    const other = beside(world);
    await writeFile(other, numbered(1, testPolicy));
    await world.startProcess("worker", { GATEHOUSE_CONFIG: other });
    await writeFile(file(world), numbered(2, restartsNeedOne));
    await world.processes[0]?.reload();
    const news = await isTold(world, /The policy changed/);
    expect(news).toMatch(/version 2 \(\w{12}\) replaces 1 \(\w{12}\)/);
    expect(news).toMatch(/approvals: added \(operations vm.restart/);
    expect(news).not.toMatch(/version: /);
    await world.vera.types("ops", "/gatehouse status");
    await hears(world.vera, "ops", /Policy: version 2 \(\w{12}\)/);
    await until(() => readiness(world, 1)).toMatch(
      /^503 .*policy: nothing changes here: version 2 \(\w{12}\) of the policy replaced 1 \(\w{12}\), and this process doesn't have it: its policy file isn't that one/,
    );
    await writeFile(other, numbered(2, restartsNeedOne));
    await until(() => readiness(world, 1)).toMatch(/^200/);
  });

  it("isn't replaced by a process that starts with a lower one, or without: it changes nothing from its first moment on", async () => {
    const world = shared();
    const other = beside(world);
    await writeFile(other, numbered(1, testPolicy));
    await world.startProcess("worker", { GATEHOUSE_CONFIG: other });
    expect(await readiness(world, 2)).toMatch(
      /^503 .*policy: nothing changes here: \S*other.yml has version 1 and needs one above 2, which is in force/,
    );
    await writeFile(other, testPolicy);
    await world.startProcess("worker", { GATEHOUSE_CONFIG: other });
    expect(await readiness(world, 3)).toMatch(
      /^503 .*policy: nothing changes here: \S*other.yml has no version and needs one above 2, which is in force/,
    );
    expect(await readiness(world, 0)).toMatch(/^200/);
    await world.olivia.types("ops", "/vm restart web-2");
    await hears(world.olivia, "ops", /Restart web-2[^]*Waiting for approval/);
    expect(world.compute.writes()).toEqual([]);
    expect(inAudit(world, /The policy changed/)).toEqual([]);
    for (const process of world.processes.slice(1)) await process.close();
  });

  it("stays where its file becomes a lower one, or the same with another content: told once, until it has a higher one", async () => {
    const world = shared();
    await writeFile(file(world), numbered(1, testPolicy));
    await world.processes[0]?.reload();
    const lower = await isTold(world, /needs one above 2, which is in force/);
    expect(lower).toMatch(/The policy before it stays \(version 2 \(\w{12}\)\)/);
    await writeFile(file(world), numbered(2, testPolicy));
    await world.processes[0]?.reload();
    await world.processes[0]?.reload();
    await isTold(world, /version 2, which is in force with another content/);
    await world.vera.types("ops", "/gatehouse status");
    await hears(
      world.vera,
      "ops",
      /Policy: \S*gatehouse.yml has version 2, which is in force with another content, and needs a higher one; the former policy still applies/,
    );
    expect(await readiness(world, 0)).toMatch(/^200/);
    await world.olivia.types("ops", "/vm restart payments/web-1");
    await hears(world.olivia, "ops", /Restart payments\/web-1[^]*Waiting for approval/);
    expect(inAudit(world, /can't be used/)).toHaveLength(2);
    await writeFile(file(world), numbered(3, testPolicy));
    await world.processes[0]?.reload();
    await isTold(world, /version 3 \(\w{12}\) replaces 2/);
    expect(await figures(world)).toMatch(/^gatehouse_policy_file_unusable 0$/m);
  });

  it("is put back by whoever had it when Redis was emptied, not by a process that lacked it, and the audit channel is told", async () => {
    const world = shared();
    const low = path.join(path.dirname(file(world)), "low.yml");
    await writeFile(low, numbered(1, restartsNeedOne));
    await world.startProcess("worker", { GATEHOUSE_CONFIG: low });
    const lacking = world.processes.length - 1;
    expect(await readiness(world, lacking)).toMatch(/^503/);
    await world.client.del(storedPolicyKey(world.key));
    await world.client.del(...(await world.client.keys(world.key("notice", "policy-*"))));
    await isTold(
      world,
      /The policy has version 3 \(\w{12}\)\.\S* Redis had none: Gatehouse started for the first time, or Redis was emptied/,
    );
    expect(inAudit(world, /Redis had none/)).toHaveLength(1);
    expect(await readStoredPolicy(world.client, world.key)).toMatchObject({ version: 3 });
    expect(await readiness(world, lacking)).toMatch(/^503/);
    expect(await readiness(world, 0)).toMatch(/^200/);
  });

  it("may be raised alone: nothing waits anew, no process stands still, and nobody is told", async () => {
    await using world = await startWorld({ policy: numbered(1, restartsNeedOne) });
    const other = path.join(path.dirname(file(world)), "other.yml");
    await writeFile(other, numbered(1, restartsNeedOne));
    await world.startProcess("worker", { GATEHOUSE_CONFIG: other });
    await world.olivia.types("ops", "/vm restart web-2");
    const card = await hears(world.olivia, "ops", /Restart web-2[^]*Waiting for approval/);
    await writeFile(file(world), numbered(2, restartsNeedOne));
    await world.processes[0]?.reload();
    await until(() => readStoredPolicy(world.client, world.key)).toMatchObject({ version: 2 });
    await world.amir.presses("Approve", { in: card.ts });
    await hears(world.olivia, "ops", /Restarted web-2/);
    expect(logged(world, "policy.superseded")).toEqual([]);
    expect(inAudit(world, /changed/)).toEqual([]);
  });
});

/** What a service with this token is answered when it reads. */
async function readsAsService({ processes: [first] }: TestWorld): Promise<number> {
  const headers = { authorization: "Bearer test-token" };
  return (await fetch(`http://127.0.0.1:${first?.apiPort}/v1/vms`, { headers })).status;
}

const service = (token: string) =>
  `services: { ci: { tokens: ["sha256:${hash("sha256", token)}"], view: ["*"] } }\n`;

describe("a policy file that a gateway and a worker share", () => {
  const apart = sharedWorld(() =>
    startWorld({
      policy: restartsNeedOne + service("test-token"),
      env: { API_PORT: "0" },
      roles: ["gateway", "worker"],
      pace: { ...pace, peopleCacheMs: 60_000 },
    }),
  );

  it("has services that, once replaced, cancel nothing that waits, are in the trail, and count for each process that shares the file, whichever is told", async () => {
    const world = apart();
    await world.olivia.types("ops", "/vm restart web-2");
    const card = await hears(world.olivia, "ops", /Restart web-2[^]*Waiting for approval/);
    expect(await readsAsService(world)).toBe(200);
    await writeFile(file(world), restartsNeedOne + service("another-token"));
    await world.processes[1]?.reload();
    await until(() => readsAsService(world)).toBe(401);
    await hears(world.ada, "audit", /gatehouse.yml changed\.[^]*services.ci.tokens: /);
    const noted = (await auditOf(world.client, world.key("audit"))).filter(
      ({ what }) => what === "policy",
    );
    expect(noted).toMatchObject([{ changes: [expect.stringMatching(/^services.ci.tokens: /)] }]);
    expect(logged(world, "policy.superseded")).toEqual([]);
    await world.amir.presses("Approve", { in: card.ts });
    await hears(world.olivia, "ops", /Restarted web-2/);
  });

  it("has sections that decide nothing: each process follows them, whichever is told", async () => {
    const world = apart();
    const known = logged(world, "policy.changed").length;
    const moved = policyWith({ alerts: "C01OPS" }, approvals);
    await writeFile(file(world), moved + service("another-token"));
    await world.processes[1]?.reload();
    await until(() =>
      logged(world, "policy.changed")
        .slice(known)
        .map(({ role }) => role),
    ).toEqual(["worker", "gateway"]);
    await until(() => inAudit(world, /gatehouse.yml changed\./)).toHaveLength(1);
  });

  it("names user groups, which every process follows, not the one alone that Slack tells", async () => {
    const world = apart();
    const known = logged(world, "policy.changed").length;
    await writeFile(file(world), testPolicy);
    await world.processes[1]?.reload();
    await until(() => logged(world, "policy.changed").length).toBe(known + 2);
    await world.olivia.types("ops", "/vm restart web-2");
    await hears(world.olivia, "ops", /Restarted web-2/);
    await world.slack.edit.setGroupMembers("oncall", ["vera"]);
    await until(() => logged(world, "people.groups-changed").map(({ role }) => role)).toEqual(
      expect.arrayContaining(["gateway", "worker"]),
    );
    // The worker asks Slack anew as well, although its cache may be a minute old
    await world.vera.types("ops", "/vm restart payments/web-1");
    await hears(world.vera, "ops", /Restarted payments\/web-1/);
  });
});

describe("services that are replaced in the policy file", () => {
  it("shut a process that doesn't get them, until it does: a token that was taken must not live on there", async () => {
    await using world = await startWorld({
      policy: testPolicy + service("test-token"),
      env: { API_PORT: "0" },
      roles: ["gateway"],
      pace,
    });
    const other = path.join(path.dirname(file(world)), "other.yml");
    await writeFile(other, testPolicy + service("test-token"));
    const worker = await world.startProcess("worker", { GATEHOUSE_CONFIG: other });
    await writeFile(other, testPolicy);
    await worker.reload();
    await until(() => readiness(world, 0)).toMatch(
      /^503 .*policy: nothing changes here: the services in gatehouse.yml were replaced, and this process doesn't have the new ones: its policy file isn't that one/,
    );
    expect(await readsAsService(world)).toBe(503);
    await writeFile(file(world), testPolicy);
    await until(() => readiness(world, 0)).toMatch(/^200/);
    expect(await readsAsService(world)).toBe(401);
  });
});
