import { describe, expect, it } from "vitest";
import { startWorld } from "../support/start-world.ts";

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
});
