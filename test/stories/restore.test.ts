import { describe, expect, it } from "vitest";
import { describeSeen } from "../../sandbox/slack/describe-seen.ts";
import { startWorld, testPolicy } from "../support/start-world.ts";

describe("restoring a snapshot with approval", () => {
  it("asks for the name and a reason, waits for somebody else, and restores once", async () => {
    await using world = await startWorld();
    await world.olivia.types("ops", "/vm snapshot db-1 nightly");
    const taken = await world.ended("vm snapshot");
    expect(taken.state).toBe("done");
    const snapshotId = taken.progress.answer?.snapshotId ?? "";
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
    const card = world.vera
      .seesChannel("ops")
      .messages.find(({ text }) => text.startsWith("Restore db-1"));
    expect(JSON.stringify(card?.blocks)).toContain("Approved by amir");
  });

  it("takes a seat for each entry and one more for an old snapshot, of lists that overlap", async () => {
    await using world = await startWorld({
      policy: `${testPolicy}attestation: { maxSnapshotAge: 1s }
approvals: [{ operations: ["vm.restore"], votes: [{ from: ["U0AMIR", "U0ADA", "U0VERA"] }, { from: ["U0AMIR"] }] }]
`,
    });
    await world.olivia.types("ops", "/vm snapshot db-1 nightly");
    const { progress, record } = await world.ended("vm snapshot");
    await expect
      .poll(() => Date.now() - record.createdAt, { timeout: 5_000 })
      .toBeGreaterThan(2_000);
    await world.olivia.types("ops", `/vm restore db-1 ${progress.answer?.snapshotId}`);
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

  it("says what to do where an old snapshot asks for more people than there are", async () => {
    await using world = await startWorld({
      policy: `${testPolicy.replace('approve: ["S02LEADS"]', 'approve: ["U0AMIR"]')}approvals: [{ operations: ["vm.restore"], required: 1 }]
`,
    });
    await world.olivia.types("ops", "/vm restore db-1 snap-of-another-time");
    await world.olivia.until((seen) => describeSeen(seen).includes("Not enough approvers"));
    expect(describeSeen(world.olivia.sees())).toContain(
      "One of these is added because Gatehouse has no record of this snapshot. Choose another snapshot: `/vm snapshots` lists those that Gatehouse took.",
    );
  });
});
