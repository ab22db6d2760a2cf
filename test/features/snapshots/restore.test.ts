import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { describeSeen } from "../../../sandbox/slack/describe-seen.ts";
import { createSnapshots, takenWords } from "../../../src/fleet/inventory/snapshots.ts";
import { snapshotIdOf } from "../../core/asking.ts";
import { hears, wordsOf } from "../../stories/words.ts";
import { policyWith, startWorld, testPolicy, type TestWorld } from "../../support/start-world.ts";
import { until } from "../../support/until.ts";

const snapshotsOf = ({ client, key }: TestWorld, vm: string) =>
  createSnapshots(client, key).of(`vm-payments-${vm}`);

/** Takes a snapshot, and resolves with its ID once Gatehouse knows it, which is a moment after the request is done. */
async function takes(world: TestWorld, words: string, vm: string): Promise<string> {
  await world.olivia.types("ops", words);
  const request = await world.ended("vm snapshot");
  expect(request.state).toBe("done");
  const id = snapshotIdOf(request);
  await until(async () => (await snapshotsOf(world, vm)).some((one) => one.id === id));
  return id;
}

const formOf = (world: TestWorld) =>
  world.olivia.until(({ modals }) => modals.some(({ submit }) => submit === "Request approval"));

const restores = (world: TestWorld) =>
  world.compute.writes().filter(({ path }) => path.endsWith("/restore"));

describe("restoring a snapshot with approval", () => {
  let world: TestWorld;
  beforeAll(async () => {
    world = await startWorld();
  });
  afterAll(() => world.close());

  const cardOf = (vm: string) =>
    hears(world.amir, "ops", new RegExp(`${vm} [^]*Waiting for approval`));

  it("asks for the name and a reason, waits for somebody else, and restores once", async () => {
    const snapshotId = await takes(world, "/vm snapshot db-1 nightly", "db-1");
    await world.olivia.types("ops", `/vm restore db-1 ${snapshotId}`);
    await formOf(world);
    const wrong = await world.olivia.submits({
      "Type db-1 to confirm": "db-2",
      Reason: "corrupt index",
    });
    expect(wrong.errors).toEqual({ confirm: "Type db-1 exactly as shown." });
    await world.olivia.submits({ "Type db-1 to confirm": "db-1", Reason: "corrupt index" });
    const { ts } = await cardOf("db-1");

    const own = await world.olivia.presses("Approve", { in: ts });
    expect(own.acked).toBe(true);
    await world.olivia.until((seen) =>
      JSON.stringify(seen).includes("You requested this; someone else"),
    );
    expect(restores(world)).toEqual([]);

    await world.amir.presses("Approve", { in: ts });
    const request = await world.ended("vm restore");
    expect(request.state).toBe("done");
    expect(restores(world)).toHaveLength(1);
    const card = await hears(world.vera, "ops", /Restored db-1 from [^]*in payments/);
    expect(wordsOf(card)).toContain(", approved by amir");
    const result = await hears(world.vera, "ops", /db-1 has settled with the snapshot's data\./);
    expect(result.threadTs).toBe(card.ts);
  });

  it("distinguishes two snapshots with one name: a warning, two buttons, and the title of the card", async () => {
    const first = await takes(world, "/vm snapshot web-2 nightly", "web-2");
    await takes(world, "/vm snapshot web-2 --name nightly", "web-2");
    await hears(
      world.olivia,
      "ops",
      /⚠️ web-2 already has a snapshot called nightly, taken .*\. This one gets the same name: only the time/,
    );
    await world.olivia.types("ops", "/vm restore web-2 nightly");
    const asked = await hears(
      world.olivia,
      "ops",
      /2 snapshots of web-2 are called nightly\. Which/,
    );
    const known = await snapshotsOf(world, "web-2");
    const [other, one] = known.map((snapshot) => takenWords(snapshot, known, Date.now()));
    expect(known[1]?.id).toBe(first);
    expect(wordsOf(asked)).toContain(`[${other}] [${one}]`);
    await world.olivia.presses(one ?? "", { in: asked.ts });
    const called = `nightly of ${one}`;
    const form = await formOf(world);
    expect(JSON.stringify(form.modals)).toContain(`"text":"${called}"`);
    await world.olivia.submits({ "Type web-2 to confirm": "web-2", Reason: "bad migration" });
    const card = await cardOf("web-2");
    expect(wordsOf(card)).toContain(`Restore web-2 in payments from ${called}`);
    expect(wordsOf(card)).toContain(
      `Snapshot: ${called}${called.endsWith(first) ? "" : ` (${first})`}\n`,
    );
    await world.amir.presses("Approve", { in: card.ts });
    const { record } = await world.ended("vm restore");
    expect(record.input["snapshot"]).toBe(first);
    await hears(world.olivia, "ops", /Restored web-2 from nightly of \d/);
  });

  it("isn't sent with one approval once the VM has another image than the snapshot", async () => {
    const snapshotId = await takes(world, "/vm snapshot payments/web-1 nightly", "web-1");
    await world.olivia.types("ops", `/vm restore payments/web-1 ${snapshotId}`);
    await formOf(world);
    await world.olivia.submits({ "Type web-1 to confirm": "web-1", Reason: "bad keys" });
    const card = await cardOf("web-1");
    expect(wordsOf(card)).not.toContain("One additional approval");
    const before = restores(world).length;
    world.compute.edit.setMachine({ vm: "payments/web-1", image: "vault 2" });
    await world.amir.presses("Approve", { in: card.ts });
    expect((await world.ended("vm restore")).state).toBe("cancelled");
    await hears(
      world.olivia,
      "ops",
      /web-1 now needs more approvals: the snapshot was taken under another measurement/,
    );
    expect(restores(world)).toHaveLength(before);
  });

  it("has the reason again after Request again, so that it isn't typed twice", async () => {
    const why = "Migration 42 broke the ledger table";
    await world.olivia.types("ops", "/vm restore payments/web-1 snap-1");
    await formOf(world);
    await world.olivia.submits({ "Type web-1 to confirm": "web-1", Reason: why });
    const denied = await cardOf("web-1");
    await world.amir.presses("Deny", { in: denied.ts });
    expect((await world.ended("vm restore")).state).toBe("denied");
    await world.olivia.presses("Request again");
    await formOf(world);
    const sent = await world.olivia.submits({ "Type web-1 to confirm": "web-1" });
    expect(sent.errors).toBeUndefined();
    const card = await cardOf("web-1");
    expect(card.ts).not.toBe(denied.ts);
    expect(wordsOf(card)).toContain(`“${why}”`);
  });
});

describe("restoring an old snapshot", () => {
  it("needs one approval for each list and one more, even if the lists overlap", async () => {
    await using world = await startWorld({
      policy: `${testPolicy}attestation: { maxSnapshotAge: 1d }
approvals: [{ operations: ["vm.restore"], votes: [{ from: ["U0AMIR", "U0ADA", "U0VERA"] }, { from: ["U0AMIR"] }] }]
`,
    });
    const id = await takes(world, "/vm snapshot db-1 nightly", "db-1");
    const [taken] = await snapshotsOf(world, "db-1");
    const old = { ...taken, at: Date.now() - 2 * 86_400_000 };
    await world.client.hset(world.key("snapshots", "vm-payments-db-1"), id, JSON.stringify(old));
    await world.olivia.types("ops", `/vm restore db-1 ${id}`);
    await formOf(world);
    expect(describeSeen(world.olivia.sees())).toContain("One more than usual");
    await world.olivia.submits({ "Type db-1 to confirm": "db-1", Reason: "corrupt index" });
    for (const person of [world.vera, world.ada, world.amir]) {
      await person.until((seen) => JSON.stringify(seen).includes("vote:approve"));
      await person.presses("Approve");
    }
    expect(await world.ended("vm restore")).toMatchObject({ state: "done" });
    expect(restores(world)).toHaveLength(1);
  });

  it("says what to do when it needs more people than exist", async () => {
    await using world = await startWorld({
      policy: policyWith(
        { approve: ["U0AMIR"] },
        'approvals: [{ operations: ["vm.restore"], required: 1 }]\n',
      ),
    });
    await world.olivia.types("ops", "/vm restore db-1 snap-of-another-time");
    await world.olivia.until((seen) => describeSeen(seen).includes("Not enough approvers"));
    expect(describeSeen(world.olivia.sees())).toContain(
      "One of these is added because Gatehouse has no record of this snapshot. Choose another snapshot: `/vm snapshots` lists those that Gatehouse took.",
    );
  });
});
