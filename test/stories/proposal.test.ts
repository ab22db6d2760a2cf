import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import {
  apiEnv,
  deployJob,
  deployPolicy,
  replacePolicy,
  roomy,
} from "../features/proposals/deploy-job.ts";
import { auditOf, snapshotIdOf } from "../core/asking.ts";
import type { PersonActions } from "../../sandbox/slack/actions.ts";
import { startWorld, type TestWorld } from "../support/start-world.ts";
import { expire } from "../features/proposals/expire.ts";
import { buttonOn, pressPayload, sendSigned } from "./forge.ts";
import { hears, wordsOf } from "./words.ts";
import { until } from "../support/until.ts";

/** No limit is met, and a proposal stands for two days. */
const usual = deployPolicy(`${roomy}    expires: 2d
limits: { requestsPerMinute: 10000, draftsPerPerson: 10000, destructivePerHour: 10000 }
`);
const withAmir = usual.replace('operate: ["S01ONCALL"]', 'operate: ["S01ONCALL", "U0AMIR"]');

/** What the process does once it has taken a proposal. */
let onTaken: () => void | Promise<void> = () => undefined;
let world: TestWorld;
beforeAll(async () => {
  world = await startWorld({
    env: apiEnv,
    policy: usual,
    receive: "http",
    at: async (point) => (point === "proposal-taken" ? onTaken() : undefined),
  });
});
afterAll(() => world.close());

/** What `propose` answers, with the card once it stands in Slack. */
async function proposed(command: string) {
  const job = deployJob(world);
  const { status, body } = await job.proposes(command);
  expect([status, body.title]).toEqual([202, undefined]);
  const { id } = body;
  const card = await hears(world.olivia, "ops", new RegExp(`deploy proposes[^]*${id}`));
  const state = async () => (await job.asks(id)).body.state;
  return { job, id, card: card.ts, words: wordsOf(card), state };
}

/** The requests that were made of a proposal. */
const madeOf = async (id: string) =>
  (await world.store.getMany(await world.store.recentIds({}, 200))).filter(
    ({ record: { origin } }) => origin.kind === "proposal" && origin.proposal === id,
  );

const writes = () => world.compute.writes().map(({ path }) => path);

/** Takes a snapshot of db-1, which a restore can then name. */
async function takesSnapshot(name: string) {
  await world.olivia.types("ops", `/vm snapshot db-1 ${name}`);
  const id = snapshotIdOf(await world.ended("vm snapshot"));
  await until(async () =>
    Object.keys(await world.client.hgetall(world.key("snapshots", "vm-payments-db-1"))),
  ).toContain(id);
  return id;
}

const opens = (person: PersonActions, label: string) =>
  person.until(({ modals }) => modals.some(({ submit }) => submit === label));

/** The words that a person reads in answer to what they do, and hadn't read before. */
async function answerTo(person: PersonActions, act: () => Promise<unknown>, words: RegExp) {
  const before = new Set(person.seesChannel("ops").messages.map(({ ts }) => ts));
  await act();
  return until(() =>
    person
      .seesChannel("ops")
      .messages.find((message) => !before.has(message.ts) && words.test(wordsOf(message))),
  );
}

const noLonger = /gatehouse\.yml no longer lets deploy propose this\. Nothing was done\./;

describe("a deploy job that proposes", () => {
  afterEach(async () => {
    onTaken = () => undefined;
    for (const person of [world.olivia, world.amir])
      if (person.sees().modals.length > 0) await person.closes({ all: true });
  });

  it("gets its snapshot once someone runs it, and goes on", async () => {
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
    await world.olivia.presses("Run", { in: card.ts });
    const request = await world.ended("vm snapshot");
    expect(request.record).toMatchObject({
      requester: { id: "U0OLIVIA" },
      origin: { kind: "proposal", proposal: body.id },
    });
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
    const { id, card } = await proposed("vm snapshot db-1 until-when");
    const record = await world.client.hget(world.key("proposal", id), "record");
    const at = Math.floor(JSON.parse(String(record)).expiresAt / 1000);
    const [own] = world.slack.messages().filter(({ ts }) => ts === card);
    expect(JSON.stringify(own)).toContain(`Until <!date^${at}^{date_short_pretty} {time}|`);
    expect(JSON.stringify(own)).toContain(
      "Press *Run* and it runs in your name, with the usual approvals.",
    );
  });

  it("gets a restore only by the form, the typed name, and someone else's approval", async () => {
    const snapshotId = await takesSnapshot("nightly");
    const { card, state, words } = await proposed("vm restore db-1 nightly");
    expect(words).toMatch(
      /⚠️ Everything written to db-1 since .* is replaced\. A safety snapshot is taken first, so it can be undone\.\n🤖 deploy proposes: Restore db-1 \(payments\) from nightly/,
    );
    await world.olivia.presses("Run", { in: card });
    await opens(world.olivia, "Request approval");
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
    await takesSnapshot("unchanged");
    const { card, id, state } = await proposed("vm restore db-1 unchanged");
    await world.olivia.presses("Run", { in: card });
    await opens(world.olivia, "Request approval");
    const snapshot = "snap-another";
    const filled = { "Type db-1 to confirm": "db-1", Reason: "bad migration", Snapshot: snapshot };
    await world.olivia.submits(filled);
    await world.olivia.until((seen) =>
      JSON.stringify(seen).includes("This is no longer what was proposed. Nothing was done."),
    );
    expect(await state()).toBe("open");
    expect(await madeOf(id)).toEqual([]);
  });

  it("stays with its card where Slack opens no form in time: the same button makes its one request", async () => {
    const { olivia } = world;
    await takesSnapshot("too-late");
    const { id, card, state } = await proposed("vm restore db-1 too-late");
    world.slack.weather.add({
      method: "views.open",
      kind: "error",
      error: "expired_trigger_id",
      times: 1,
    });
    const late = await answerTo(
      olivia,
      () => olivia.presses("Run", { in: card }),
      /took too long|Restore db-1[^]*Press the button/,
    );
    expect(wordsOf(late)).toBe(
      "That took too long to open. Nothing was done.\nPress the button again.",
    );
    expect(await state()).toBe("open");
    await olivia.presses("Run", { in: card });
    await opens(olivia, "Request approval");
    await olivia.submits({ "Type db-1 to confirm": "db-1", Reason: "bad migration" });
    await until(() => state()).toBe("draft");
    expect(await madeOf(id)).toHaveLength(1);
  });

  it("is told of a request that came after it had expired, from a process that was held up", async () => {
    const { promise: heldUp, resolve: goOn } = Promise.withResolvers<void>();
    onTaken = () => heldUp;
    const { job, id, card } = await proposed("vm snapshot db-1 held-up");
    const asking = await hears(world.olivia, "ops", new RegExp(id));
    const sent = writes().length;
    await world.olivia.presses("Run", { in: card });
    await expire(world, id);
    await hears(world.vera, "ops", /Expired: nobody ran .* in time/);
    expect((await job.asks(id)).body).toMatchObject({ state: "expired", final: true });
    goOn();
    const record = await until(async () => (await madeOf(id))[0]?.record);
    await until(async () => (await job.asks(id)).body).toMatchObject({
      state: "done",
      request: record.id,
      by: "olivia",
    });
    const ran = await hears(world.vera, "ops", /✅ Took a snapshot of db-1 as held-up.*\(olivia\)/);
    expect(ran.ts).toBe(card);
    expect(wordsOf(ran)).not.toContain("Expired");
    // As if that process had died before it told the proposal, and the press were handled again.
    const stored = world.key("proposal", id);
    await world.client.hset(stored, "state", "expired");
    await world.client.hdel(stored, "request");
    const again = pressPayload(world, "olivia", asking, buttonOn(asking, "Run"));
    await answerTo(world.olivia, () => sendSigned(world, again), /Someone already ran this\./);
    await until(() => world.client.hget(stored, "request")).toBe(record.id);
    expect(writes()).toHaveLength(sent + 1);
  });

  it("is told by whom and why it was dismissed; nobody runs it afterwards", async () => {
    const { job, id, card } = await proposed("vm snapshot db-1 dismissed");
    await world.vera.presses("Dismiss", { in: card });
    await hears(world.vera, "ops", /Only @oncall can snapshot db-1/);
    await world.olivia.presses("Dismiss", { in: card });
    await opens(world.olivia, "Dismiss");
    await world.olivia.submits({ Reason: "the release is off" });
    expect((await job.asks(id, "?wait=30&after=open")).body).toMatchObject({
      state: "dismissed",
      final: true,
      by: "olivia",
      why: "the release is off",
    });
    const gone = await hears(
      world.amir,
      "ops",
      /olivia dismissed .*: “the release is off”\. Nothing was done\./,
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
    expect(await madeOf(id)).toEqual([]);
  });

  it("has one request, though two people press Run at once", async () => {
    await replacePolicy(world, withAmir);
    const { id, card, state } = await proposed("vm snapshot db-1 at-once");
    const sent = writes().length;
    await Promise.all([
      world.olivia.presses("Run", { in: card }),
      world.amir.presses("Run", { in: card }),
    ]);
    await until(() => state()).toBe("done");
    await world.settled();
    const [request, ...more] = await madeOf(id);
    expect(more).toEqual([]);
    expect(writes()).toHaveLength(sent + 1);
    const { name } = request?.record.requester ?? {};
    await hears(
      world.vera,
      "ops",
      new RegExp(`✅ Took a snapshot of db-1 as at-once.*\\(${name}\\)`),
    );
    const other = name === "olivia" ? world.amir : world.olivia;
    await until(() =>
      other
        .seesChannel("ops")
        .messages.some(
          (one) => one.ts > card && wordsOf(one).includes("Someone already ran this."),
        ),
    );
  });

  it("is run or dismissed, never both, where two people do so at once", async () => {
    await replacePolicy(world, withAmir);
    for (const round of [1, 2, 3]) {
      const { card, state, id } = await proposed(`vm snapshot db-1 round-${round}`);
      await world.amir.presses("Dismiss", { in: card });
      await opens(world.amir, "Dismiss");
      await Promise.all([
        world.amir.submits({ Reason: "not now" }),
        world.olivia.presses("Run", { in: card }),
      ]);
      await until(() => state()).toMatch(/done|dismissed/);
      await world.settled();
      expect(await madeOf(id)).toHaveLength((await state()) === "done" ? 1 : 0);
      if (world.amir.sees().modals.length > 0) await world.amir.closes({ all: true });
    }
  });

  it("expires by Redis time where nobody runs it, and then can't be run", async () => {
    await replacePolicy(world, usual.replace("expires: 2d", "expires: 500ms"));
    const job = deployJob(world);
    const { id } = (await job.proposes("vm snapshot db-1 expiring")).body;
    expect((await job.asks(id, "?wait=30&after=open")).body).toMatchObject({
      state: "expired",
      final: true,
      why: "no one ran it in time",
    });
    const over = await hears(world.vera, "ops", /as expiring[^]*Expired: nobody ran .* in time/);
    expect(wordsOf(over)).not.toContain("[Run]");
    const all = world.vera.seesChannel("ops").messages;
    expect(all.filter((one) => wordsOf(one).includes("as expiring"))).toHaveLength(1);
    const pressed = { action: "proposal:run", value: JSON.stringify({ proposal: id }) };
    const late = pressPayload(world, "olivia", over, pressed);
    await answerTo(world.olivia, () => sendSigned(world, late), /This proposal has expired\./);
    expect(await madeOf(id)).toEqual([]);
    expect(await auditOf(world.client, world.key("audit"))).toContainEqual(
      expect.objectContaining({ what: "proposal", proposal: id, move: "expired" }),
    );
  });

  it("is no longer run once gatehouse.yml doesn't name its service, or what it may propose", async () => {
    await replacePolicy(world, usual);
    const { card, id } = await proposed("vm snapshot db-1 unlisted");
    const run = () => world.olivia.presses("Run", { in: card });
    const without = [usual.replaceAll("vm.snapshot", "vm.stop"), usual.split("services:")[0] ?? ""];
    for (const policy of without) {
      await replacePolicy(world, policy);
      await answerTo(world.olivia, run, noLonger);
    }
    expect(await madeOf(id)).toEqual([]);
  });

  it("is no longer run while its service doesn't see the target", async () => {
    await replacePolicy(world, usual);
    const { card, id, state } = await proposed("vm snapshot db-1 unseen");
    const run = () => world.olivia.presses("Run", { in: card });
    await replacePolicy(world, usual.replace('view: ["payments"]', 'view: ["ml"]'));
    await answerTo(world.olivia, run, noLonger);
    expect(await madeOf(id)).toEqual([]);
    await replacePolicy(world, usual);
    await run();
    await until(() => state()).toBe("done");
  });

  it("is judged as its target is called and whose it is at the press", async () => {
    await replacePolicy(
      world,
      usual.replace('targets: ["payments/*"]', 'targets: ["payments/db-*"]'),
    );
    const { edit } = world.compute;
    const { card, id, state } = await proposed("vm snapshot db-1 renamed");
    const run = () => world.olivia.presses("Run", { in: card });
    edit.renameVm({ vm: "db-1", name: "ledger-9" });
    await answerTo(world.olivia, run, noLonger);
    edit.renameVm({ vm: "ledger-9", name: "db-1" });
    edit.renameProject({ project: "payments", name: "vault" });
    await answerTo(world.olivia, run, noLonger);
    expect(await madeOf(id)).toEqual([]);
    edit.renameProject({ project: "vault", name: "payments" });
    await run();
    await until(() => state()).toBe("done");
  });

  it("can be dismissed when it can't be run any more: its target is gone, or its service lost the right", async () => {
    await replacePolicy(world, usual);
    const { card, id, state } = await proposed("vm snapshot web-1 replaced");
    world.compute.edit.replaceVm({ vm: "vm-payments-web-1" });
    await world.olivia.presses("Run", { in: card });
    await hears(world.olivia, "ops", /web-1 is gone\. Nothing was done\.[^]*Dismiss this proposal/);
    await replacePolicy(world, usual.replaceAll("vm.snapshot", "vm.stop"));
    await world.olivia.presses("Dismiss", { in: card });
    await opens(world.olivia, "Dismiss");
    await world.olivia.submits({ Reason: "its VM is gone" });
    await until(() => state()).toBe("dismissed");
    expect(await madeOf(id)).toEqual([]);
  });

  it("can't be run while changes are frozen, as its card says, and is as it was after the thaw", async () => {
    await replacePolicy(world, usual);
    await takesSnapshot("frozen");
    const { card, id, state } = await proposed("vm restore db-1 frozen");
    const before = writes();
    await world.olivia.presses("Run", { in: card });
    await opens(world.olivia, "Request approval");
    await world.ada.types("random", "/gatehouse freeze the storage is failing");
    const shows = async (words: RegExp) =>
      until(() =>
        wordsOf(world.vera.seesChannel("ops").messages.find(({ ts }) => ts === card) ?? never()),
      ).toMatch(words);
    await shows(
      /All changes are frozen by ada: the storage is failing\. Nothing runs until[^]*\n\[Dismiss\]/,
    );
    const filled = { "Type db-1 to confirm": "db-1", Reason: "bad migration" };
    await world.olivia.submits(filled);
    await world.olivia.until((seen) => {
      const said = JSON.stringify(seen);
      return said.includes("the storage is failing. Nothing was done.");
    });
    expect(await state()).toBe("open");
    expect(await madeOf(id)).toEqual([]);

    await world.ada.types("random", "/gatehouse thaw");
    await shows(/deploy proposes: Restore[^]*\[Run\] \[Dismiss\]/);
    await world.olivia.presses("Run", { in: card });
    await opens(world.olivia, "Request approval");
    await world.olivia.submits(filled);
    await until(() => state()).toBe("draft");
    expect(writes()).toEqual(before);
  });

  it("is run by the next press, or goes on with the first, where a process died between taking it and its request", async () => {
    await replacePolicy(world, usual);
    const sent = writes().length;
    const first = await proposed("vm snapshot db-1 first");
    onTaken = () => {
      throw new Error("killed here");
    };
    await answerTo(
      world.olivia,
      () => world.olivia.presses("Run", { in: first.card }),
      /failed|went wrong|reference/i,
    );
    expect(await first.state()).toBe("open");
    onTaken = () => undefined;
    await world.olivia.presses("Run", { in: first.card });
    await until(() => first.state()).toBe("done");

    const second = await proposed("vm snapshot db-1 second");
    onTaken = () => new Promise(() => undefined);
    await world.olivia.presses("Run", { in: second.card });
    const taken = () => world.client.hget(world.key("proposal", second.id), "state");
    await until(() => taken()).toBe("running");
    await world.processes[0]?.close();
    onTaken = () => undefined;
    await world.startProcess("all");
    await until(() => second.state()).toBe("done");
    expect(writes()).toHaveLength(sent + 2);
  });
});

const never = (): never => {
  throw new Error("there is no card");
};
