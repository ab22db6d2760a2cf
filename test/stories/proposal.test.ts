import { readFile, writeFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { deployJob, deployPolicy, apiEnv } from "../features/proposals/deploy-job.ts";
import { auditOf, snapshotIdOf } from "../core/asking.ts";
import { startWorld, type TestWorld } from "../support/start-world.ts";
import { expire } from "../features/proposals/expire.ts";
import { buttonOn, pressPayload, sendSigned } from "./forge.ts";
import { hears, wordsOf } from "./words.ts";
import { until } from "../support/until.ts";

const startApi = (more: Parameters<typeof startWorld>[0] = {}) =>
  startWorld({ env: apiEnv, policy: deployPolicy(), ...more });

/** What `propose` answers, with the card once it stands in Slack. */
async function proposed(world: TestWorld, command = "vm snapshot db-1 before-deploy") {
  const job = deployJob(world);
  const { status, body } = await job.proposes(command);
  expect([status, body.title]).toEqual([202, undefined]);
  const card = await hears(world.olivia, "ops", new RegExp(`deploy proposes[^]*${body.id}`));
  const state = async () => (await job.asks(body.id)).body.state;
  return { job, id: body.id, card: card.ts, state };
}

const writes = (world: TestWorld) => world.compute.writes().map(({ path }) => path);

describe.concurrent("a deploy job that proposes", () => {
  it("gets its snapshot once someone runs it, and goes on", async () => {
    await using world = await startApi();
    const job = deployJob(world);
    const { status, headers, body } = await job.proposes("/vm snapshot db-1 before-deploy");
    const url = `/v1/requests/${body.id}`;
    expect(status).toBe(202);
    expect(headers.get("location")).toBe(url);
    expect(body).toMatchObject({ state: "open", final: false, url });

    const card = await hears(world.olivia, "ops", /deploy proposes/);
    expect(wordsOf(card)).toMatch(
      /deploy proposes: Snapshot db-1 \(payments\) as before-deploy: “release 42”\nUntil .*\n\[Run\] \[Dismiss\]/,
    );
    const next = job.asks(body.id, "?wait=30&after=open");
    await world.olivia.presses("Run", { in: card.ts });
    const request = await world.ended("vm snapshot");
    expect(request.record).toMatchObject({
      requester: { id: "U0OLIVIA" },
      origin: { kind: "proposal", proposal: body.id },
    });
    expect((await next).body.state).not.toBe("open");
    await until(async () => (await job.asks(body.id)).body.state).toBe("done");
    expect((await job.asks(body.id)).body).toMatchObject({
      final: true,
      by: "olivia",
      request: request.record.id,
      card: expect.stringMatching(/^https:\/\/\S+\/archives\/C01OPS\/p\d+$/),
      result: expect.stringMatching(/^Took a snapshot of db-1 as before-deploy in \d+ s/),
    });
    const ran = await hears(
      world.vera,
      "ops",
      /✅ Took a snapshot of db-1 as before-deploy in .* \(olivia\)[^]*<https:[^>]*\|r-/,
    );
    expect(ran.ts).toBe(card.ts);
    expect(wordsOf(ran)).not.toContain("[Run]");
    const result = await hears(world.vera, "ops", /✅ <@U0OLIVIA> /);
    expect(result.threadTs).toBe(card.ts);
    const trail = await auditOf(world.client, world.key("audit"));
    expect(trail).toContainEqual(
      expect.objectContaining({
        what: "proposal",
        proposal: body.id,
        who: "services.deploy",
        move: "open",
        command: "vm snapshot",
        why: "release 42",
      }),
    );
    expect(trail).toContainEqual(
      expect.objectContaining({
        what: "request",
        origin: { kind: "proposal", proposal: body.id },
        who: "U0OLIVIA",
      }),
    );
  });

  it("shows until when, with the day, since that may be two days on, and who then requests it", async () => {
    await using world = await startApi({ policy: deployPolicy("    expires: 2d\n") });
    const { id } = await proposed(world);
    const record = await world.client.hget(world.key("proposal", id), "record");
    const at = Math.floor(JSON.parse(String(record)).expiresAt / 1000);
    const [own] = world.slack.messages().filter(({ text }) => text.startsWith("deploy proposes"));
    expect(JSON.stringify(own)).toContain(`Until <!date^${at}^{date_short_pretty} {time}|`);
    expect(JSON.stringify(own)).toContain(
      "Press *Run* and it runs in your name, with the usual approvals.",
    );
  });

  it("gets a restore only by the form, the typed name, and someone else's approval", async () => {
    await using world = await startApi();
    await world.olivia.types("ops", "/vm snapshot db-1 nightly");
    const taken = await world.ended("vm snapshot");
    const snapshotId = snapshotIdOf(taken);
    await until(() => world.client.hlen(world.key("snapshots", "vm-payments-db-1"))).toBe(1);
    const { card, state } = await proposed(world, "vm restore db-1 nightly");
    expect(wordsOf(await hears(world.amir, "ops", /deploy proposes/))).toMatch(
      /⚠️ Everything written to db-1 since .* is replaced\. A safety snapshot is taken first, so it can be undone\.\n🤖 deploy proposes: Restore db-1 \(payments\) from nightly/,
    );
    await world.olivia.presses("Run", { in: card });
    await world.olivia.until(({ modals }) =>
      modals.some(({ submit }) => submit === "Request approval"),
    );
    expect(await state()).toBe("open");
    await world.olivia.submits({ "Type db-1 to confirm": "db-1", Reason: "bad migration" });
    await until(() => state()).toBe("draft");
    const asking = await hears(world.amir, "ops", /Waiting for approval/);
    await world.amir.presses("Approve", { in: asking.ts });
    const { record } = await world.ended("vm restore");
    expect(record).toMatchObject({
      input: { snapshot: snapshotId },
      requester: { name: "olivia" },
    });
    await until(() => state()).toBe("done");
  });

  it("may have nothing else made of it: a form that changes what was proposed is refused", async () => {
    await using world = await startApi();
    await world.olivia.types("ops", "/vm snapshot db-1 nightly");
    await world.ended("vm snapshot");
    const { card, state } = await proposed(world, "vm restore db-1 nightly");
    await world.olivia.presses("Run", { in: card });
    await world.olivia.until(({ modals }) =>
      modals.some(({ submit }) => submit === "Request approval"),
    );
    const snapshot = "snap-another";
    const filled = { "Type db-1 to confirm": "db-1", Reason: "bad migration", Snapshot: snapshot };
    await world.olivia.submits(filled);
    await world.olivia.until((seen) =>
      JSON.stringify(seen).includes("This is no longer what was proposed. Nothing was done."),
    );
    expect(await state()).toBe("open");
    expect(await world.store.recentIds({}, 10)).toHaveLength(1);
  });

  it("has one request, though two people press Run at once", async () => {
    const policy = deployPolicy("", { operate: ["S01ONCALL", "U0AMIR"] });
    await using world = await startApi({ policy });
    const { card, state } = await proposed(world);
    await Promise.all([
      world.olivia.presses("Run", { in: card }),
      world.amir.presses("Run", { in: card }),
    ]);
    await until(() => state()).toBe("done");
    await world.settled();
    expect(await world.store.recentIds({}, 10)).toHaveLength(1);
    expect(writes(world)).toHaveLength(1);
    const { record } = await world.ended();
    await hears(
      world.vera,
      "ops",
      new RegExp(`✅ Took a snapshot of db-1 .*\\(${record.requester.name}\\)`),
    );
    const other = record.requester.name === "olivia" ? world.amir : world.olivia;
    await hears(other, "ops", /Someone already ran this\./);
  });

  it("stays with its card where Slack opens no form in time: the same button makes its one request", async () => {
    await using world = await startApi();
    const { olivia } = world;
    await olivia.types("ops", "/vm snapshot db-1 nightly");
    await world.ended("vm snapshot");
    await until(() => world.client.hlen(world.key("snapshots", "vm-payments-db-1"))).toBe(1);
    const { id, card, state } = await proposed(world, "vm restore db-1 nightly");
    world.slack.weather.add({
      method: "views.open",
      kind: "error",
      error: "expired_trigger_id",
      times: 1,
    });
    await olivia.presses("Run", { in: card });
    const late = await hears(olivia, "ops", /took too long|Restore db-1[^]*Press the button/);
    expect(wordsOf(late)).toBe(
      "That took too long to open. Nothing was done.\nPress the button again.",
    );
    expect(await state()).toBe("open");
    await olivia.presses("Run", { in: card });
    await olivia.until(({ modals }) => modals.some(({ submit }) => submit === "Request approval"));
    await olivia.submits({ "Type db-1 to confirm": "db-1", Reason: "bad migration" });
    await until(() => state()).toBe("draft");
    const requests = await world.store.getMany(await world.store.recentIds({ open: true }, 10));
    expect(requests.map(({ record }) => record.origin)).toEqual([
      { kind: "proposal", proposal: id },
    ]);
  });

  it("is told of a request that came after it had expired, from a process that was held up", async () => {
    const { promise: heldUp, resolve: goOn } = Promise.withResolvers<void>();
    await using world = await startApi({
      receive: "http",
      at: async (point) => (point === "proposal-taken" ? heldUp : undefined),
    });
    const { job, id, card } = await proposed(world);
    const asking = await hears(world.olivia, "ops", /deploy proposes/);
    await world.olivia.presses("Run", { in: card });
    await expire(world, id);
    await hears(world.vera, "ops", /Expired: no one ran it in time/);
    expect((await job.asks(id)).body).toMatchObject({ state: "expired", final: true });
    goOn();
    const { record } = await world.ended("vm snapshot");
    expect(record.origin).toEqual({ kind: "proposal", proposal: id });
    expect((await job.asks(id)).body).toMatchObject({
      state: "done",
      request: record.id,
      by: "olivia",
    });
    const ran = await hears(world.vera, "ops", /✅ Took a snapshot of db-1 .*\(olivia\)/);
    expect(ran.ts).toBe(card);
    expect(wordsOf(ran)).not.toContain("Expired");
    // As if that process had died before it told the proposal, and the press were handled again.
    const stored = world.key("proposal", id);
    await world.client.hset(stored, "state", "expired");
    await world.client.hdel(stored, "request");
    await sendSigned(world, pressPayload(world, "olivia", asking, buttonOn(asking, "Run")));
    await hears(world.olivia, "ops", /Someone already ran this\./);
    await until(() => world.client.hget(stored, "request")).toBe(record.id);
    expect(writes(world)).toHaveLength(1);
  });

  it("is told by whom and why it was dismissed; nobody runs it afterwards", async () => {
    await using world = await startApi();
    const { job, id, card } = await proposed(world);
    await world.vera.presses("Dismiss", { in: card });
    await hears(world.vera, "ops", /Only @oncall can snapshot db-1/);
    await world.olivia.presses("Dismiss", { in: card });
    await world.olivia.until(({ modals }) => modals.some(({ submit }) => submit === "Dismiss"));
    await world.olivia.submits({ Reason: "the release is off" });
    expect((await job.asks(id, "?wait=10&after=open")).body).toMatchObject({
      state: "dismissed",
      final: true,
      by: "olivia",
      why: "the release is off",
    });
    const gone = await hears(
      world.amir,
      "ops",
      /Dismissed by olivia: “the release is off”\. Nothing was done\./,
    );
    expect(wordsOf(gone)).not.toContain("[Run]");
    expect(await auditOf(world.client, world.key("audit"))).toContainEqual(
      expect.objectContaining({
        what: "dismissal",
        proposal: id,
        who: "U0OLIVIA",
        why: "the release is off",
      }),
    );
    expect(await world.store.recentIds({}, 10)).toEqual([]);
  });

  it("is run or dismissed, never both, where two people do so at once", async () => {
    const policy = deployPolicy("", { operate: ["S01ONCALL", "U0AMIR"] });
    await using world = await startApi({ policy });
    for (const round of [1, 2, 3]) {
      const { card, state, id } = await proposed(world, `vm snapshot db-1 round-${round}`);
      await world.amir.presses("Dismiss", { in: card });
      await world.amir.until(({ modals }) => modals.some(({ submit }) => submit === "Dismiss"));
      await Promise.all([
        world.amir.submits({ Reason: "not now" }),
        world.olivia.presses("Run", { in: card }),
      ]);
      await until(() => state()).toMatch(/done|dismissed/);
      await world.settled();
      const requests = await world.store.getMany(await world.store.recentIds({}, 10));
      const made = requests.filter(
        ({ record: { origin } }) => origin.kind === "proposal" && origin.proposal === id,
      ).length;
      expect(made).toBe((await state()) === "done" ? 1 : 0);
      if (made === 1) await world.amir.closes({ all: true }).catch(() => undefined);
    }
  });

  it("is run by the next press, or goes on with the first, where a process died between taking it and its request", async () => {
    let dies: "throws" | "hangs" | undefined = "throws";
    await using world = await startApi({
      async at(point) {
        if (point !== "proposal-taken") return;
        if (dies === "throws") throw new Error("killed here");
        if (dies === "hangs") await new Promise(() => undefined);
      },
    });
    const first = await proposed(world);
    await world.olivia.presses("Run", { in: first.card });
    await hears(world.olivia, "ops", /failed|went wrong|reference/i);
    expect(await first.state()).toBe("open");
    dies = undefined;
    await world.olivia.presses("Run", { in: first.card });
    await until(() => first.state()).toBe("done");

    const second = await proposed(world, "vm snapshot db-1 second");
    dies = "hangs";
    await world.olivia.presses("Run", { in: second.card });
    const taken = () => world.client.hget(world.key("proposal", second.id), "state");
    await until(() => taken()).toBe("running");
    await world.processes[0]?.close();
    dies = undefined;
    await world.startProcess("all");
    await until(() => second.state()).toBe("done");
    expect(writes(world)).toHaveLength(2);
  });

  it("expires by Redis time where nobody runs it, and then can't be run", async () => {
    const policy = deployPolicy("    expires: 1500ms\n");
    await using world = await startApi({ policy });
    const { job, id, card } = await proposed(world);
    expect((await job.asks(id, "?wait=10")).body).toMatchObject({
      state: "expired",
      final: true,
      why: "no one ran it in time",
    });
    await world.olivia.presses("Run", { in: card }).catch(() => undefined);
    const over = await hears(world.vera, "ops", /Expired: no one ran it in time/);
    expect(over.ts).toBe(card);
    expect(wordsOf(over)).not.toContain("[Run]");
    expect(await world.store.recentIds({}, 10)).toEqual([]);
    expect(await auditOf(world.client, world.key("audit"))).toContainEqual(
      expect.objectContaining({ what: "proposal", proposal: id, move: "expired" }),
    );
  });

  it("is no longer run once gatehouse.yml doesn't name its service, or what it may propose", async () => {
    await using world = await startApi();
    const file = world.env["GATEHOUSE_CONFIG"] ?? "";
    const { card } = await proposed(world);
    await writeFile(file, (await readFile(file, "utf8")).replaceAll("vm.snapshot", "vm.stop"));
    await world.processes[0]?.reload();
    await world.olivia.presses("Run", { in: card });
    const no = /gatehouse\.yml no longer lets deploy propose this\. Nothing was done\./;
    const first = await hears(world.olivia, "ops", no);
    await writeFile(file, (await readFile(file, "utf8")).split("services:")[0] ?? "");
    await world.processes[0]?.reload();
    await world.olivia.presses("Run", { in: card });
    await until(async () => (await hears(world.olivia, "ops", no)).ts).not.toBe(first.ts);
    expect(await world.store.recentIds({}, 10)).toEqual([]);
  });

  it("is no longer run once its service doesn't see the target any more", async () => {
    await using world = await startApi();
    const file = world.env["GATEHOUSE_CONFIG"] ?? "";
    const { card, state } = await proposed(world);
    const narrowed = deployPolicy().replace('view: ["payments"]', 'view: ["ml"]');
    await writeFile(file, narrowed);
    await world.processes[0]?.reload();
    await world.olivia.presses("Run", { in: card });
    await hears(world.olivia, "ops", /gatehouse\.yml no longer lets deploy propose this\./);
    expect(await world.store.recentIds({}, 10)).toEqual([]);
    await writeFile(file, deployPolicy());
    await world.processes[0]?.reload();
    await world.olivia.presses("Run", { in: card });
    await until(() => state()).toBe("done");
  });

  it("is judged as its target is called and whose it is at the press", async () => {
    const byName = deployPolicy().replace('targets: ["payments/*"]', 'targets: ["payments/db-*"]');
    await using world = await startWorld({ env: apiEnv, policy: byName });
    const { card, state } = await proposed(world);
    const no = /gatehouse\.yml no longer lets deploy propose this\. Nothing was done\./;
    world.compute.edit.renameVm({ vm: "db-1", name: "ledger-9" });
    await world.olivia.presses("Run", { in: card });
    const first = await hears(world.olivia, "ops", no);
    world.compute.edit.renameVm({ vm: "ledger-9", name: "db-1" });
    world.compute.edit.renameProject({ project: "payments", name: "vault" });
    await world.olivia.presses("Run", { in: card });
    await until(async () => (await hears(world.olivia, "ops", no)).ts).not.toBe(first.ts);
    expect(await world.store.recentIds({}, 10)).toEqual([]);
    world.compute.edit.renameProject({ project: "vault", name: "payments" });
    await world.olivia.presses("Run", { in: card });
    await until(() => state()).toBe("done");
  });

  it("can be dismissed when it can't be run any more: its target is gone, or its service lost the right", async () => {
    await using world = await startApi();
    const { card, state } = await proposed(world);
    world.compute.edit.replaceVm({ vm: "db-1" });
    await world.olivia.presses("Run", { in: card });
    await hears(world.olivia, "ops", /db-1 is gone\. Nothing was done\.[^]*Dismiss this proposal/);
    const file = world.env["GATEHOUSE_CONFIG"] ?? "";
    await writeFile(file, deployPolicy().replaceAll("vm.snapshot", "vm.stop"));
    await world.processes[0]?.reload();
    await world.olivia.presses("Dismiss", { in: card });
    await world.olivia.until(({ modals }) => modals.some(({ submit }) => submit === "Dismiss"));
    await world.olivia.submits({ Reason: "its VM is gone" });
    await until(() => state()).toBe("dismissed");
    expect(await world.store.recentIds({}, 10)).toEqual([]);
  });

  it("that nobody may ever run makes no card: the answer says why", async () => {
    const all = deployPolicy()
      .replace('view: ["payments"]', 'view: ["*"]')
      .replace('targets: ["payments/*"]', 'targets: ["*"]')
      .replace('"vm.restore"', '"vm.restore", "vm.stop", "project.delete"');
    await using world = await startWorld({ env: apiEnv, policy: all });
    const job = deployJob(world);
    for (const [words, why] of [
      ["vm stop vault-1", /^vault-1 is protected, so nobody can run \/vm stop on it\.$/],
      ["project delete vault", /protected/],
      ["vm restore db-1", /^The snapshot is missing\.$/],
    ] as const) {
      const { status, body } = await job.proposes(words);
      expect([status, body.title], words).toEqual([422, expect.stringMatching(why)]);
    }
    expect(await world.client.keys(world.key("proposal", "*"))).toEqual([]);
  });

  it("can't be run while changes are frozen, as its card says, and is as it was after the thaw", async () => {
    await using world = await startApi();
    await world.olivia.types("ops", "/vm snapshot db-1 nightly");
    await world.ended("vm snapshot");
    const { card, state } = await proposed(world, "vm restore db-1 nightly");
    const before = writes(world);
    await world.olivia.presses("Run", { in: card });
    const isForm = ({ submit = "" }) => submit === "Request approval";
    await world.olivia.until(({ modals }) => modals.some(isForm));
    await world.ada.types("random", "/gatehouse freeze the storage is failing");
    const frozen = /All changes are frozen by ada: the storage is failing\. Nothing runs until/;
    expect(wordsOf(await hears(world.vera, "ops", frozen))).toMatch(/\n\[Dismiss\]/);
    const filled = { "Type db-1 to confirm": "db-1", Reason: "bad migration" };
    await world.olivia.submits(filled);
    await world.olivia.until((seen) => {
      const said = JSON.stringify(seen);
      return said.includes("the storage is failing. Nothing was done.");
    });
    expect(await state()).toBe("open");
    expect(await world.store.recentIds({}, 10)).toHaveLength(1);

    await world.ada.types("random", "/gatehouse thaw");
    const again = /deploy proposes: Restore[^]*\[Run\] \[Dismiss\]/;
    expect((await hears(world.vera, "ops", again)).ts).toBe(card);
    await world.olivia.presses("Run", { in: card });
    await world.olivia.until(({ modals }) => modals.some(isForm));
    await world.olivia.submits(filled);
    await until(() => state()).toBe("draft");
    expect(writes(world)).toEqual(before);
  });
});
