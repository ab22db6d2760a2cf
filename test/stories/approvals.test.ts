import { writeFile } from "node:fs/promises";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { personOf } from "../../sandbox/slack/state/people.ts";
import type { SeenMessage } from "../../sandbox/slack/seen.ts";
import { describeSeen } from "../../sandbox/slack/describe-seen.ts";
import { auditOf } from "../core/asking.ts";
import { policyWith, startWorld, testTiming, type TestWorld } from "../support/start-world.ts";
import { buttonOn, pressPayload, sendSigned } from "./forge.ts";
import { hears, wordsOf } from "./words.ts";
import { until } from "../support/until.ts";

const approvals = 'approvals: [{ operations: ["vm.restart"], required: 1 }]\n';
const restartsNeedOne = policyWith({}, approvals);
const soonGone = `approvals:
  - { operations: ["vm.restart"], required: 1 }
  - { operations: ["project.delete"], targets: ["docs-site"], required: 1, expires: 400ms }
`;

/** The world of most tests here; each has VMs of its own. */
let world: TestWorld;
beforeAll(async () => {
  world = await startWorld({
    policy: policyWith({}, soonGone),
    receive: "http",
    // requests that nobody answered are looked for that often
    pace: { sweepMs: 500 },
    prepare({ edit }) {
      for (const name of ["one", "two", "three", "four", "five", "six"])
        edit.addVm({ project: "payments", name, id: `vm-${name}` });
    },
  });
});
afterAll(() => world.close());

const trail = () => auditOf(world.client, world.key("audit"));

/** Olivia asks for a restart; resolves with its card, which waits for approval. */
async function waits(vm: string, channel = "ops", { olivia } = world) {
  const name = vm.split("/").at(-1) ?? vm;
  await olivia.types(channel, `/vm restart ${vm}`);
  return hears(olivia, channel, new RegExp(`Restart (?:\\w+/)?${name}[^]*Waiting for approval`));
}

const waiting = async ({ store } = world) => {
  const open = await store.getMany(await store.openIds());
  const found = open.find(({ state }) => state === "draft");
  if (!found) throw new Error("nothing waits");
  return found;
};

/** Keeps a target busy, so that what is authorized goes through the gate again and again but isn't sent. */
async function busy(vmId: string) {
  const lock = world.key("lock", `vm:${vmId}`);
  await world.client.set(lock, "r-somebody22");
  return () => world.client.del(lock);
}

const writes = ({ compute } = world) =>
  compute.writes().map(({ method, path }) => `${method} ${path}`);

describe("a vote that doesn't count", () => {
  let card: SeenMessage;
  beforeAll(async () => {
    await world.slack.edit.setGroupMembers("leads", [
      "amir",
      "ada",
      "gina",
      "stan",
      "deploybot",
      "dora",
    ]);
    card = await waits("web-2");
  });
  afterAll(() => world.slack.edit.setGroupMembers("leads", ["amir", "ada"]));

  it.each([
    ["the requester", "olivia", "own-request"],
    ["somebody who may only look", "vera", "not-an-approver"],
    ["a guest who is listed", "gina", "not-one-of-us"],
    ["somebody of another company who is listed", "stan", "not-one-of-us"],
    ["a bot that is listed", "deploybot", "not-one-of-us"],
    ["a deactivated account that is listed", "dora", "not-one-of-us"],
  ])("is refused, explained and audited if it comes from %s", async (_what, who, why) => {
    const { id } = (await waiting()).record;
    const { id: voter } = personOf(world.slack.workspace, who);
    const before = world.slack.workspace.ephemerals.length;
    for (const label of ["Approve", "Deny"]) {
      expect(await sendSigned(world, pressPayload(world, who, card, buttonOn(card, label)))).toBe(
        200,
      );
    }
    await world.slack.until(() => world.slack.workspace.ephemerals.length >= before + 2);
    const noted = (await trail()).filter(
      ({ what, who: by }) => what === "vote-refused" && by === voter,
    );
    expect(noted).toMatchObject([
      { request: id, why },
      { request: id, why },
    ]);
    expect(await world.store.get(id)).toMatchObject({ state: "draft", votes: [] });
  });

  it("is one that was pressed on a copy of the card in another channel", async () => {
    const copy = await world.vera.types("random", "look at this");
    world.slack.edit.tamper("random", copy.ts ?? "", { text: card.text, blocks: card.blocks });
    await world.amir.presses("Approve", { channel: "random" });
    await hears(world.amir, "random", /doesn't belong to a request that can be voted on/);
    expect((await waiting()).votes).toEqual([]);
  });

  it("carries a forged value: none changes anything", async () => {
    const request = await waiting();
    const { id } = request.record;
    const right = { request: id, digest: request.record.approval?.digest.slice(0, 16) ?? "" };
    const forged = forgeries(right);
    const actions = [
      "vote:approve",
      "vote:deny",
      "vote:approve:",
      "request:approve",
      "vote:__proto__",
    ];
    const before = world.slack.workspace.ephemerals.length;
    let next = 0;
    const sender = async () => {
      for (let n = next++; n < forged.length; n = next++) {
        const pressed = { action: actions[n % (n < 20 ? 2 : 5)] ?? "", value: forged[n] ?? "" };
        await sendSigned(world, pressPayload(world, "amir", card, pressed));
      }
    };
    await Promise.all(Array.from({ length: 10 }, sender));
    await world.slack.until(
      () => world.slack.workspace.ephemerals.length >= before + forged.length,
    );
    expect(await world.store.get(id)).toMatchObject({
      state: "draft",
      votes: [],
      revision: request.revision,
    });
    expect(writes()).toEqual([]);
    await world.amir.presses("Approve", { in: card.ts });
    expect((await world.ended("vm restart")).state).toBe("done");
  });

  it("comes after the end: a replayed press is told that it is decided", async () => {
    const [request] = await world.store.getMany(await world.store.recentIds({}, 1));
    const digest = request?.record.approval?.digest.slice(0, 16);
    const pressed = {
      action: "vote:deny",
      value: JSON.stringify({ request: request?.record.id, digest }),
    };
    await sendSigned(world, pressPayload(world, "ada", card, pressed));
    await hears(world.ada, "ops", /This is already decided/);
    expect((await world.store.get(request?.record.id ?? ""))?.state).toBe("done");
    expect(writes()).toHaveLength(1);
  });
});

/** Values that are nearly right, or nothing like it. */
function forgeries({ request, digest }: { request: string; digest: string }): string[] {
  const otherAt = (at: number) => {
    const other = digest[at] === "0" ? "1" : "0";
    return digest.slice(0, at) + other + digest.slice(at + 1);
  };
  const forged: unknown[] = [
    "",
    "null",
    "[]",
    "{",
    request,
    { request },
    { digest },
    { request: [request], digest: [digest, "x"] },
    { request, digest: { toString: digest } },
    { request: `${request} `, digest },
    { request: `../${request}`, digest },
    { request: request.toUpperCase(), digest },
    { request, digest: digest.slice(0, 15) },
    { request, digest: `${digest}0` },
    { request, digest: digest.toUpperCase().replace(/[0-9]/, "a") },
    { request: "*", digest },
    { request: "__proto__", digest },
    { request, digest: "................" },
    { request, digest: 0 },
    { request, digest: null },
    ...[0, 1, 7, 14, 15].map((at) => ({ request, digest: otherAt(at) })),
    ...[3, 8, 15].map((at) => ({ request, digest: otherAt(at) + digest })),
  ];
  return forged.map((value) => (typeof value === "string" ? value : JSON.stringify(value)));
}

describe("between the last approval and the send", () => {
  beforeEach(() => world.compute.forget());

  it("somebody who approved leaves the group: nothing is sent", async () => {
    const free = await busy("vm-one");
    const card = await waits("one");
    await world.amir.presses("Approve", { in: card.ts });
    await hears(world.olivia, "ops", /Restart one[^]*Waiting for another request/);
    await world.slack.edit.setGroupMembers("leads", ["ada"]);
    const request = await world.ended();
    await free();
    expect(request).toMatchObject({
      state: "cancelled",
      stage: { why: "0 of 1 approvals are still valid" },
    });
    expect(writes()).toEqual([]);
    await world.slack.edit.setGroupMembers("leads", ["amir", "ada"]);
  });

  it("the VM is renamed, resized, or replaced by another one of its name: nothing is sent, and the thread says what differs", async () => {
    const { edit } = world.compute;
    const cases = [
      {
        vm: "two",
        id: "vm-two",
        channel: "ops",
        change: () => edit.renameVm({ vm: "two", name: "web-9" }),
        why: "two is now called web-9",
      },
      {
        vm: "db-1",
        id: "vm-payments-db-1",
        channel: "status",
        change: () => edit.changeBehindTheBack({ vm: "db-1", specs: { cpu: 99 } }),
        why: "db-1 changed since the request: cpu 16 → 99",
      },
      {
        vm: "payments/web-1",
        id: "vm-payments-web-1",
        channel: "vendor",
        change: () => edit.replaceVm({ vm: "payments/web-1" }),
        why: "web-1 is gone",
      },
    ];
    await Promise.all(
      cases.map(async ({ vm, id, channel, change, why }) => {
        await busy(id);
        const card = await waits(vm, channel);
        await world.amir.presses("Approve", { in: card.ts, channel });
        const name = vm.split("/").at(-1) ?? "";
        await hears(world.olivia, channel, new RegExp(`${name}[^]*Waiting for another request`));
        change();
        await hears(world.olivia, channel, new RegExp(`was canceled: ${why}`));
      }),
    );
    const ended = (await world.settled()).filter(({ record }) =>
      cases.some(({ id }) => id === record.target.id),
    );
    expect(ended.map(({ state }) => state)).toEqual(["cancelled", "cancelled", "cancelled"]);
    expect(writes()).toEqual([]);
  });

  it("a project gains a VM: it isn't deleted, and the difference is told", async () => {
    await world.client.set(world.key("lock", "project:prj-ml"), "r-somebody22");
    await world.olivia.types("ops", "/project delete ml");
    await world.olivia.until(({ modals }) =>
      modals.some(({ submit }) => submit === "Request approval"),
    );
    await world.olivia.submits({ "Type ml to confirm": "ml", Reason: "over and done" });
    const card = await hears(world.amir, "ops", /Delete ml[^]*Waiting for approval/);
    expect(wordsOf(card)).toMatch(/gpu-1 \(STOPPED\), train-7 \(ERROR\)/);
    await world.amir.presses("Approve", { in: card.ts });
    world.compute.edit.addVm({ project: "ml", name: "fresh-1" });
    await hears(world.olivia, "ops", /ml changed since the request: fresh-1 added/);
    expect(writes()).toEqual([]);
  });
});

describe("a request that waits for approval", () => {
  beforeEach(() => world.compute.forget());

  it("is named in the details that a shared card opens, as on a card of its own", async () => {
    const card = await waits("three");
    await world.amir.presses("Approve", { in: card.ts });
    const { record } = await world.ended();
    const details = { action: "request:show", value: JSON.stringify({ request: record.id }) };
    await sendSigned(world, pressPayload(world, "vera", card, details));
    const shown = await hears(world.vera, "ops", /✅ olivia: Restarted three in/);
    expect(shown.ephemeral).toBe(true);
    expect(wordsOf(shown)).toContain(", approved by amir ·");
  });

  it("calls those who may decide once, and nobody else", async () => {
    const { amir, vera } = world;
    const called = [amir.mentions().length, vera.mentions().length] as const;
    const card = await waits("four");
    expect(amir.mentions().at(-1)).toMatchObject({ because: "group" });
    await world.amir.presses("Approve", { in: card.ts });
    expect((await world.ended()).state).toBe("done");
    expect(amir.mentions()).toHaveLength(called[0] + 1);
    expect(vera.mentions()).toHaveLength(called[1]);
    expect(writes()).toEqual(["POST /v1/vms/vm-four/restart"]);
  });

  it("ends with a no, says whose, and tells the requester once", async () => {
    const before = world.olivia.mentions().length;
    const card = await waits("five");
    await world.ada.presses("Deny", { in: card.ts });
    expect((await world.ended()).state).toBe("denied");
    // It counts at once; why comes after it, and only from who denied it
    const asked = await world.ada.until(({ modals }) => modals.length > 0);
    expect(describeSeen(asked)).toContain("Denied: *Restart five (payments)*. Nothing was sent.");
    await world.ada.submits({ "Why? olivia reads it in the thread.": "a deploy is running" });
    const thread = await hears(world.olivia, "ops", /ada denied it: “a deploy is running”/);
    expect(thread.threadTs).toBe(card.ts);
    const denied = await hears(
      world.olivia,
      "ops",
      /❌ Restart of five was denied by ada: “a deploy/,
    );
    expect(world.olivia.mentions()).toHaveLength(before + 1);
    expect(await trail()).toContainEqual(
      expect.objectContaining({ vote: "deny", who: "U0ADA", why: "a deploy is running" }),
    );
    // Asking again is a request of its own
    await world.olivia.presses("Request again", { in: denied.ts });
    const again = await hears(world.amir, "ops", /Restart five[^]*Waiting for approval/);
    expect(writes()).toEqual([]);
    await world.olivia.presses("Cancel", { in: again.ts });
    expect((await world.ended()).state).toBe("cancelled");
  });

  it("is told to whoever cancels from an older list how it ended, and that nothing was sent", async () => {
    const { olivia, ada } = world;
    const listed = async (vm: string) => {
      await olivia.types("ops", "/gatehouse jobs");
      return hears(olivia, "ops", new RegExp(`1 request is open[^]*${vm}[^]*\\[Cancel\\]`));
    };
    const card = await waits("six");
    const older = await listed("six");
    await ada.presses("Deny", { in: card.ts });
    await world.ended("vm restart");
    await olivia.presses("Cancel", { in: older.ts });
    const over = await hears(olivia, "ops", /too late|Restart six .*: ada denied it/);
    expect(wordsOf(over)).toBe("Restart six (payments): ada denied it. Nothing was sent.");

    const next = await waits("db-1");
    const newer = await listed("db-1");
    await olivia.presses("Cancel", { in: next.ts });
    expect((await world.ended("vm restart")).state).toBe("cancelled");
    await olivia.presses("Cancel", { in: newer.ts });
    await hears(
      olivia,
      "ops",
      /^✓ Restart db-1 \(payments\): you canceled it\. Nothing was sent\.$/,
    );
    expect(writes()).toEqual([]);
  });

  it("expires without an answer, and asking again is a new dialog and a new request", async () => {
    const { olivia, store } = world;
    const interactions = async () => {
      await olivia.until(({ modals }) =>
        modals.some(({ submit }) => submit === "Request approval"),
      );
      await olivia.submits({ "Type docs-site to confirm": "docs-site", Reason: "over and done" });
    };
    await olivia.types("ops", "/project delete docs-site");
    await interactions();
    const first = await world.ended("project delete");
    expect(first.state).toBe("expired");
    const card = await hears(olivia, "ops", /Delete of docs-site expired[^]*Request again/);
    expect(JSON.stringify(card.blocks)).not.toContain("vote:");
    world.slack.weather.add({ method: "views.open", kind: "error", error: "trigger", times: 1 });
    await olivia.presses("Request again", { in: card.ts });
    await hears(olivia, "ops", /took too long to open\. Nothing was done\./);
    await olivia.presses("Request again", { in: card.ts });
    await interactions();
    // This one may have expired as well by now
    const again = await until(async () => {
      const all = await store.getMany(await store.recentIds({ targetId: "prj-docs-site" }, 5));
      return all.find(
        ({ record, delivered }) => record.id !== first.record.id && delivered.card !== undefined,
      );
    });
    expect(again.delivered.card?.ts).not.toBe(card.ts);
    expect((await store.get(first.record.id))?.state).toBe("expired");
    expect(writes()).toEqual([]);
  });

  it("is cancelled at once where the bot is no member, because nobody could see it, and says how to be seen", async () => {
    await world.olivia.types("random", "/project delete staging");
    await world.olivia.until((seen) =>
      seen.modals.some(({ submit }) => submit === "Request approval"),
    );
    await world.olivia.submits({
      "Type staging to confirm": "staging",
      Reason: "not used any more",
    });
    expect(await world.ended("project delete")).toMatchObject({
      state: "cancelled",
      stage: { why: "Gatehouse can't post in this channel, so no one can approve it" },
    });
    await world.olivia.until((seen) => JSON.stringify(seen).includes("/invite"));
    expect(writes()).toEqual([]);
  });
});

describe("a request that nobody else could approve", () => {
  let lonely: TestWorld;
  beforeAll(async () => {
    // Apart from the requester: a guest, somebody who has left, somebody of another company, and a bot
    const approve = ["U0GINA", "U0DORA", "U0STAN", "U0DEPLOYBOT", "U0OLIVIA"];
    lonely = await startWorld({ policy: policyWith({ approve }, approvals) });
  });
  afterAll(() => lonely.close());

  it("is refused at once, and names those whose vote never counts", async () => {
    await lonely.olivia.types("ops", "/vm restart web-2");
    const refused = /Not enough approvers: this needs 1 other than you/;
    const said = wordsOf(await hears(lonely.olivia, "ops", refused));
    expect(said).toContain("Named, but can't vote: gina, dora, stan, deploybot.");
    expect(await lonely.store.openIds()).toEqual([]);
  });

  it("isn't typed into a dialog", async () => {
    await lonely.olivia.types("ops", "/project delete staging");
    const { modals } = await lonely.olivia.until((seen) =>
      describeSeen({ ...seen, channels: [] }).includes(
        "Not enough approvers: this needs 1 other than you.",
      ),
    );
    expect(modals.map(({ submit }) => submit)).toEqual([""]);
  });
});

describe("a new policy", () => {
  let changed: TestWorld;
  let id = "";
  beforeAll(async () => {
    changed = await startWorld({ policy: restartsNeedOne, pace: { sweepMs: 500 } });
    await waits("web-2", "ops", changed);
    const { record } = await waiting(changed);
    ({ id } = record);
    expect(record.approval?.votes).toEqual([{ from: ["S02LEADS"], required: 1 }]);
    await changed.processes[0]?.close();
    const teams = `access: { view: ["U0VERA", "U0AMIR"], operate: [], approve: ["U0VERA"], administer: ["U0ADA"] }
teams:
  payments: { projects: ["payments"], operate: ["S01ONCALL"], approve: ["U0ADA"] }
  search: { projects: ["search"], approve: ["S02LEADS"] }
${testTiming}`;
    await writeFile(changed.env["GATEHOUSE_CONFIG"] ?? "", teams);
    await changed.startProcess("all");
    await changed.slack.connected();
  });
  afterAll(() => changed.close());

  it("cancels what waited for approval when Gatehouse starts with it, also where that needs none now", async () => {
    expect(await changed.ended()).toMatchObject({ state: "cancelled" });
    await hears(changed.olivia, "ops", /the policy changed while this waited for approval/);
    expect(writes(changed)).toEqual([]);
  });

  it("shows a request only to those whose approval it needed, not to those who may approve elsewhere now", async () => {
    await changed.vera.types("ops", `/gatehouse why ${id}`);
    await hears(changed.vera, "ops", /There is no request/);
    await changed.amir.types("ops", `/gatehouse why ${id}`);
    await hears(changed.amir, "ops", /vm restart of web-2[^]*State: canceled/);
  });
});
