import { describe, expect, it } from "vitest";
import { sentAtOf } from "../../../src/core/request/stored-request.ts";
import { snapshotIdOf } from "../../core/asking.ts";
import { describeSeen } from "../../../sandbox/slack/describe-seen.ts";
import { policyWith, startWorld, testPolicy } from "../../support/start-world.ts";
import { utcNear } from "../../../src/text/time-words.ts";
import { hears, wordsOf } from "../../stories/words.ts";
import { until } from "../../support/until.ts";

describe("restoring a snapshot with approval", () => {
  it("asks for the name and a reason, waits for somebody else, and restores once", async () => {
    await using world = await startWorld();
    await world.olivia.types("ops", "/vm snapshot db-1 nightly");
    const taken = await world.ended("vm snapshot");
    expect(taken.state).toBe("done");
    const snapshotId = snapshotIdOf(taken);
    world.compute.forget();

    await world.olivia.types("ops", `/vm restore db-1 ${snapshotId}`);
    await world.olivia.until((seen) =>
      seen.modals.some(({ submit }) => submit === "Request approval"),
    );
    const wrong = await world.olivia.submits({
      "Type db-1 to confirm": "db-2",
      Reason: "corrupt index",
    });
    expect(wrong.errors).toEqual({ confirm: "Type db-1 exactly as shown." });
    await world.olivia.submits({ "Type db-1 to confirm": "db-1", Reason: "corrupt index" });
    await world.amir.until((seen) => JSON.stringify(seen).includes("vote:approve"));

    const own = await world.olivia.presses("Approve");
    expect(own.acked).toBe(true);
    await world.olivia.until((seen) =>
      JSON.stringify(seen).includes("You requested this; someone else"),
    );
    expect(world.compute.writes().filter(({ path }) => path.endsWith("/restore"))).toEqual([]);

    await world.amir.presses("Approve");
    const request = await world.ended("vm restore");
    expect(request.state).toBe("done");
    expect(world.compute.writes().filter(({ path }) => path.endsWith("/restore"))).toHaveLength(1);
    const card = await hears(world.vera, "ops", /Restored db-1 from [^]*in payments/);
    expect(wordsOf(card)).toContain(", approved by amir");
    const result = await hears(world.vera, "ops", /db-1 has settled with the snapshot's data\./);
    expect(result.threadTs).toBe(card.ts);
  });

  it("distinguishes two snapshots with one name: a warning, two buttons, and the title of the card", async () => {
    await using world = await startWorld();
    const takes = async (words: string, count: number) => {
      await world.olivia.types("ops", words);
      // The snapshot becomes known a moment after the request is done.
      await until(() => world.client.hlen(world.key("snapshots", "vm-payments-db-1"))).toBe(count);
      const taken = await world.ended("vm snapshot");
      return {
        id: snapshotIdOf(taken),
        at: utcNear(sentAtOf(taken), Date.now()),
      };
    };
    const first = await takes("/vm snapshot db-1 nightly", 1);
    const second = await takes("/vm snapshot db-1 --name nightly", 2);
    await hears(
      world.olivia,
      "ops",
      /⚠️ db-1 already has a snapshot called nightly, taken .*\. This one gets the same name: only the time/,
    );
    await world.olivia.types("ops", "/vm restore db-1 nightly");
    const asked = await hears(
      world.olivia,
      "ops",
      /2 snapshots of db-1 are called nightly\. Which/,
    );
    // Within one minute, only the ID tells them apart.
    const [one, other] = [first, second].map(({ at, id }) =>
      first.at === second.at ? `${at}, ${id}` : at,
    );
    expect(wordsOf(asked)).toContain(`[${other}] [${one}]`);
    await world.olivia.presses(one ?? "", { in: asked.ts });
    const called = `nightly of ${one}`;
    const form = await world.olivia.until(({ modals }) =>
      modals.some(({ submit }) => submit === "Request approval"),
    );
    expect(JSON.stringify(form.modals)).toContain(`"text":"${called}"`);
    await world.olivia.submits({ "Type db-1 to confirm": "db-1", Reason: "bad migration" });
    const card = await hears(world.amir, "ops", /Waiting for approval/);
    expect(wordsOf(card)).toContain(`Restore db-1 in payments from ${called}`);
    expect(wordsOf(card)).toContain(
      `Snapshot: ${called}${called.endsWith(first.id) ? "" : ` (${first.id})`}\n`,
    );
    await world.amir.presses("Approve", { in: card.ts });
    const { record } = await world.ended("vm restore");
    expect(record.input["snapshot"]).toBe(first.id);
    await hears(world.olivia, "ops", /Restored db-1 from nightly of \d/);
  });

  it("needs one approval for each list and one more for an old snapshot, even if the lists overlap", async () => {
    await using world = await startWorld({
      policy: `${testPolicy}attestation: { maxSnapshotAge: 1s }
approvals: [{ operations: ["vm.restore"], votes: [{ from: ["U0AMIR", "U0ADA", "U0VERA"] }, { from: ["U0AMIR"] }] }]
`,
    });
    await world.olivia.types("ops", "/vm snapshot db-1 nightly");
    const taken = await world.ended("vm snapshot");
    const { record } = taken;
    await until(() => Date.now() - record.createdAt).toBeGreaterThan(2_000);
    await world.olivia.types("ops", `/vm restore db-1 ${snapshotIdOf(taken)}`);
    await world.olivia.until((seen) =>
      seen.modals.some(({ submit }) => submit === "Request approval"),
    );
    expect(describeSeen(world.olivia.sees())).toContain("One more than usual");
    await world.olivia.submits({ "Type db-1 to confirm": "db-1", Reason: "corrupt index" });
    for (const person of [world.vera, world.ada, world.amir]) {
      await person.until((seen) => JSON.stringify(seen).includes("vote:approve"));
      await person.presses("Approve");
    }
    expect(await world.ended("vm restore")).toMatchObject({ state: "done" });
    expect(world.compute.writes().filter(({ path }) => path.endsWith("/restore"))).toHaveLength(1);
  });

  it("says what to do when an old snapshot needs more people than exist", async () => {
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
