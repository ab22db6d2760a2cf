import { writeFile } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { personOf } from "../../sandbox/slack/state/people.ts";
import type { SeenMessage } from "../../sandbox/slack/seen.ts";
import { describeSeen } from "../../sandbox/slack/describe-seen.ts";
import { auditOf } from "../core/asking.ts";
import {
  policyWith,
  startWorld,
  testPolicy,
  testTiming,
  type TestWorld,
} from "../support/start-world.ts";
import { buttonOn, pressPayload, sendSigned } from "./forge.ts";
import { hears, wordsOf } from "./words.ts";

const approvals = 'approvals: [{ operations: ["vm.restart"], required: 1, expires: 1m }]\n';
const restartsNeedOne = policyWith({}, approvals);

const trail = (world: TestWorld) => auditOf(world.client, world.key("audit"));

/** Olivia asks for a restart; resolves with its card, which waits for approval. */
async function waits(world: TestWorld, vm: string, channel = "ops") {
  const name = vm.split("/").at(-1) ?? vm;
  await world.olivia.types(channel, `/vm restart ${vm}`);
  return hears(
    world.olivia,
    channel,
    new RegExp(`Restart (?:\\w+/)?${name}[^]*Waiting for approval`),
  );
}

const waiting = async (world: TestWorld) => {
  const open = await world.store.getMany(await world.store.openIds());
  const found = open.find(({ state }) => state === "draft");
  if (!found) throw new Error("nothing waits");
  return found;
};

/** Keeps a target busy, so that what is authorized goes through the gate again and again but isn't sent. */
async function busy(world: TestWorld, vmId: string) {
  const lock = world.key("lock", `vm:${vmId}`);
  await world.client.set(lock, "r-somebody22");
  return () => world.client.del(lock);
}

const writes = (world: TestWorld) =>
  world.compute.writes().map(({ method, path }) => `${method} ${path}`);

describe("a vote that doesn't count", () => {
  let world: TestWorld;
  let card: SeenMessage;
  beforeAll(async () => {
    world = await startWorld({ policy: restartsNeedOne, receive: "http" });
    await world.slack.edit.setGroupMembers("leads", [
      "amir",
      "ada",
      "gina",
      "stan",
      "deploybot",
      "dora",
    ]);
    card = await waits(world, "web-2");
  });
  afterAll(() => world.close());

  it.each([
    ["the requester", "olivia", "own-request"],
    ["somebody who may only look", "vera", "not-an-approver"],
    ["a guest who is listed", "gina", "not-one-of-us"],
    ["somebody of another company who is listed", "stan", "not-one-of-us"],
    ["a bot that is listed", "deploybot", "not-one-of-us"],
    ["a deactivated account that is listed", "dora", "not-one-of-us"],
  ])("is one of %s: refused, explained and audited", async (_what, who, why) => {
    const { id } = (await waiting(world)).record;
    const { id: voter } = personOf(world.slack.workspace, who);
    const before = world.slack.workspace.ephemerals.length;
    for (const label of ["Approve", "Deny"]) {
      expect(await sendSigned(world, pressPayload(world, who, card, buttonOn(card, label)))).toBe(
        200,
      );
    }
    await world.slack.until(() => world.slack.workspace.ephemerals.length >= before + 2);
    const noted = (await trail(world)).filter(
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
    expect((await waiting(world)).votes).toEqual([]);
  });

  it("carries a forged value: of 100 none changes anything", async () => {
    const request = await waiting(world);
    const { id } = request.record;
    const right = { request: id, digest: request.record.approval?.digest.slice(0, 16) ?? "" };
    const forged = forgeries(right, 100);
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
        const pressed = { action: actions[n % (n < 90 ? 2 : 5)] ?? "", value: forged[n] ?? "" };
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
    expect(writes(world)).toEqual([]);
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
    expect(writes(world)).toHaveLength(1);
  });
});

/** Values that are nearly right, or nothing like it. */
function forgeries(right: { request: string; digest: string }, count: number): string[] {
  const odd: unknown[] = [
    "",
    "null",
    "[]",
    "{",
    right.request,
    { request: right.request },
    { digest: right.digest },
    { request: [right.request], digest: [right.digest, "x"] },
    { request: right.request, digest: { toString: right.digest } },
    { request: `${right.request} `, digest: right.digest },
    { request: `../${right.request}`, digest: right.digest },
    { request: right.request.toUpperCase(), digest: right.digest },
    { request: right.request, digest: right.digest.slice(0, 15) },
    { request: right.request, digest: `${right.digest}0` },
    { request: right.request, digest: right.digest.toUpperCase().replace(/[0-9]/, "a") },
    { request: "*", digest: right.digest },
    { request: "__proto__", digest: right.digest },
    { request: right.request, digest: "................" },
    { request: right.request, digest: 0 },
    { request: right.request, digest: null },
  ];
  const values = odd.map((one) => (typeof one === "string" ? one : JSON.stringify(one)));
  for (let n = values.length; n < count; n += 1) {
    const at = n % 16;
    const other = ((Number.parseInt(right.digest[at] ?? "0", 16) + 1 + (n % 15)) % 16).toString(16);
    const digest = right.digest.slice(0, at) + other + right.digest.slice(at + 1);
    values.push(
      JSON.stringify({
        request: right.request,
        digest: n % 3 === 0 ? digest + right.digest : digest,
        n,
      }),
    );
  }
  return values;
}

describe("between the last approval and the send", () => {
  it("somebody who approved leaves the group: nothing is sent", async () => {
    await using world = await startWorld({ policy: restartsNeedOne });
    const free = await busy(world, "vm-payments-web-2");
    const card = await waits(world, "web-2");
    await world.amir.presses("Approve", { in: card.ts });
    await hears(world.olivia, "ops", /Restart web-2[^]*Waiting for another request/);
    await world.slack.edit.setGroupMembers("leads", ["ada"]);
    const request = await world.ended();
    await free();
    expect(request).toMatchObject({
      state: "cancelled",
      stage: { why: "0 of 1 approvals are still valid" },
    });
    expect(writes(world)).toEqual([]);
  });

  it("the VM is renamed, resized, or replaced by another one of its name: nothing is sent, and the thread says what differs", async () => {
    await using world = await startWorld({ policy: restartsNeedOne });
    const { edit } = world.compute;
    const cases = [
      {
        vm: "web-2",
        id: "vm-payments-web-2",
        channel: "ops",
        change: () => edit.renameVm({ vm: "web-2", name: "web-9" }),
        why: "web-2 is now called web-9",
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
        await busy(world, id);
        const card = await waits(world, vm, channel);
        await world.amir.presses("Approve", { in: card.ts, channel });
        await hears(world.olivia, channel, /Waiting for another request/);
        change();
        await hears(world.olivia, channel, new RegExp(`was canceled: ${why}`));
      }),
    );
    const ended = await world.settled();
    expect(ended.map(({ state }) => state)).toEqual(["cancelled", "cancelled", "cancelled"]);
    expect(writes(world)).toEqual([]);
  });

  it("a project gains a VM: it isn't deleted, and the difference is told", async () => {
    await using world = await startWorld();
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
    expect(writes(world)).toEqual([]);
  });
});

describe("a request that waits for approval", () => {
  it("is cancelled when Gatehouse starts with another policy, and never runs under the new one by itself", async () => {
    await using world = await startWorld({ policy: restartsNeedOne });
    await waits(world, "web-2");
    await world.processes[0]?.close();
    await writeFile(world.env["GATEHOUSE_CONFIG"] ?? "", testPolicy);
    await world.startProcess("all");
    const request = await world.ended();
    expect(request).toMatchObject({ state: "cancelled" });
    await hears(world.olivia, "ops", /the policy changed while this waited for approval/);
    expect(writes(world)).toEqual([]);
  });

  it("keeps whose approval it needed, and is read by nobody whom a later policy lets approve elsewhere", async () => {
    await using world = await startWorld({ policy: restartsNeedOne });
    await waits(world, "web-2");
    const { record } = await waiting(world);
    expect(record.approval?.votes).toEqual([{ from: ["S02LEADS"], required: 1 }]);
    await world.processes[0]?.close();
    const teams = `access: { view: ["U0VERA", "U0AMIR"], operate: [], approve: ["U0VERA"], administer: ["U0ADA"] }
teams: { all: { projects: ["*"], operate: ["S01ONCALL"], approve: ["U0ADA"] } }
${testTiming}`;
    await writeFile(world.env["GATEHOUSE_CONFIG"] ?? "", teams);
    await world.startProcess("all");
    await world.slack.connected();
    await world.vera.types("ops", `/gatehouse why ${record.id}`);
    await hears(world.vera, "ops", /There is no request/);
    await world.amir.types("ops", `/gatehouse why ${record.id}`);
    await hears(world.amir, "ops", /Restart web-2/);
  });

  it("is refused at once when nobody else could approve it", async () => {
    await using world = await startWorld({
      policy: policyWith({ approve: ["U0OLIVIA"] }, approvals),
    });
    await world.olivia.types("ops", "/vm restart web-2");
    await hears(world.olivia, "ops", /Not enough approvers: this needs 1 other than you/);
    expect(await world.store.openIds()).toEqual([]);
  });

  it.each([
    ["a guest", "U0GINA"],
    ["who has left", "U0DORA"],
    ["of another company", "U0STAN"],
    ["a bot", "U0DEPLOYBOT"],
  ])(
    "is refused at once when the one who is named is %s, whose vote never counts",
    async (_, id) => {
      await using world = await startWorld({
        policy: policyWith({ approve: [id, "U0OLIVIA"] }, approvals),
      });
      await world.olivia.types("ops", "/vm restart web-2");
      const said = await hears(
        world.olivia,
        "ops",
        /Not enough approvers: this needs 1 other than you/,
      );
      expect(wordsOf(said)).toMatch(/Named, but can't vote: \S+\. The team that runs Gatehouse/);
      expect(await world.store.openIds()).toEqual([]);
    },
  );

  it("isn't typed into a dialog when nobody else could approve it", async () => {
    await using world = await startWorld({
      policy: policyWith({ approve: ["U0OLIVIA"] }),
    });
    await world.olivia.types("ops", "/project delete staging");
    const { modals } = await world.olivia.until((seen) =>
      describeSeen(seen).includes("Not enough approvers: this needs 1 other than you."),
    );
    expect(describeSeen(world.olivia.sees())).toContain("Nobody but you could approve.");
    expect(modals.map(({ submit }) => submit)).toEqual([""]);
  });

  it("is named in the details that a shared card opens, as on a card of its own", async () => {
    await using world = await startWorld({ policy: restartsNeedOne, receive: "http" });
    const card = await waits(world, "web-2");
    await world.amir.presses("Approve", { in: card.ts });
    const { record } = await world.ended();
    const details = { action: "request:show", value: JSON.stringify({ request: record.id }) };
    await sendSigned(world, pressPayload(world, "vera", card, details));
    const shown = await hears(world.vera, "ops", /✅ olivia: Restarted web-2 in/);
    expect(shown.ephemeral).toBe(true);
    expect(wordsOf(shown)).toContain(", approved by amir ·");
  });

  it("ends with a no, says whose, and tells the requester once", async () => {
    await using world = await startWorld({ policy: restartsNeedOne });
    const card = await waits(world, "web-2");
    await world.ada.presses("Deny", { in: card.ts });
    expect((await world.ended()).state).toBe("denied");
    // It counts at once; why comes after it, and only from who denied it
    const asked = await world.ada.until(({ modals }) => modals.length > 0);
    expect(describeSeen(asked)).toContain("Denied: *Restart web-2 (payments)*. Nothing was sent.");
    await world.ada.submits({ "Why? olivia reads it in the thread.": "a deploy is running" });
    const thread = await hears(world.olivia, "ops", /ada denied it: “a deploy is running”/);
    expect(thread.threadTs).toBe(card.ts);
    const denied = await hears(
      world.olivia,
      "ops",
      /❌ Restart of web-2 was denied by ada: “a deploy/,
    );
    expect(world.olivia.mentions()).toHaveLength(1);
    expect(await trail(world)).toContainEqual(
      expect.objectContaining({ vote: "deny", who: "U0ADA", why: "a deploy is running" }),
    );
    // Asking again is a request of its own
    await world.olivia.presses("Request again", { in: denied.ts });
    await hears(world.amir, "ops", /Restart web-2[^]*Waiting for approval/);
    expect(writes(world)).toEqual([]);
  });

  it("is told to whoever cancels from an older list how it ended, and that nothing was sent", async () => {
    await using world = await startWorld({ policy: restartsNeedOne });
    const { olivia, ada } = world;
    const listed = async (vm: string) => {
      await olivia.types("ops", "/gatehouse jobs");
      return hears(olivia, "ops", new RegExp(`1 request is open[^]*${vm}[^]*\\[Cancel\\]`));
    };
    const card = await waits(world, "web-2");
    const older = await listed("web-2");
    await ada.presses("Deny", { in: card.ts });
    await world.ended("vm restart");
    await olivia.presses("Cancel", { in: older.ts });
    const over = await hears(olivia, "ops", /too late|Restart web-2 .*: ada denied it/);
    expect(wordsOf(over)).toBe("Restart web-2 (payments): ada denied it. Nothing was sent.");

    const next = await waits(world, "db-1");
    const newer = await listed("db-1");
    await olivia.presses("Cancel", { in: next.ts });
    expect((await world.ended("vm restart")).state).toBe("cancelled");
    await olivia.presses("Cancel", { in: newer.ts });
    await hears(
      olivia,
      "ops",
      /^✓ Restart db-1 \(payments\): you canceled it\. Nothing was sent\.$/,
    );
    expect(writes(world)).toEqual([]);
  });

  it("calls those who may decide once, and nobody else", async () => {
    await using world = await startWorld({ policy: restartsNeedOne });
    const card = await waits(world, "web-2");
    expect(world.amir.mentions()).toMatchObject([{ because: "group" }]);
    await world.amir.presses("Approve", { in: card.ts });
    expect((await world.ended()).state).toBe("done");
    expect(world.amir.mentions()).toHaveLength(1);
    expect(world.vera.mentions()).toEqual([]);
    expect(writes(world)).toEqual(["POST /v1/vms/vm-payments-web-2/restart"]);
  });

  it("expires without an answer, and asking again is a new dialog and a new request", async () => {
    await using world = await startWorld({
      policy: `${testPolicy}approvals: [{ operations: ["project.delete"], required: 1, expires: 400ms }]\n`,
    });
    const interactions = async () => {
      await world.olivia.until(({ modals }) =>
        modals.some(({ submit }) => submit === "Request approval"),
      );
      await world.olivia.submits({ "Type ml to confirm": "ml", Reason: "over and done" });
    };
    await world.olivia.types("ops", "/project delete ml");
    await interactions();
    const first = await world.ended("project delete");
    expect(first.state).toBe("expired");
    const card = await hears(world.olivia, "ops", /Delete of ml expired[^]*Request again/);
    expect(JSON.stringify(card.blocks)).not.toContain("vote:");
    world.slack.weather.add({ method: "views.open", kind: "error", error: "trigger", times: 1 });
    await world.olivia.presses("Request again", { in: card.ts });
    await hears(world.olivia, "ops", /took too long to open\. Nothing was done\./);
    await world.olivia.presses("Request again", { in: card.ts });
    await interactions();
    const again = await hears(world.amir, "ops", /Delete ml[^]*Waiting for approval/);
    expect(again.ts).not.toBe(card.ts);
    expect((await world.store.get(first.record.id))?.state).toBe("expired");
    expect(writes(world)).toEqual([]);
  });
});

describe("asking for approval where the bot is no member", () => {
  it("is cancelled at once, because nobody could see it, and says how to be seen", async () => {
    await using world = await startWorld();
    await world.olivia.types("random", "/project delete staging");
    await world.olivia.until((seen) =>
      seen.modals.some(({ submit }) => submit === "Request approval"),
    );
    await world.olivia.submits({
      "Type staging to confirm": "staging",
      Reason: "not used any more",
    });
    const request = await world.ended("project delete");
    expect(request).toMatchObject({
      state: "cancelled",
      stage: { why: "Gatehouse can't post in this channel, so no one can approve it" },
    });
    await world.olivia.until((seen) => JSON.stringify(seen).includes("/invite"));
    expect(world.compute.writes()).toEqual([]);
  });
});
