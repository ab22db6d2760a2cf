import { describe, expect, it } from "vitest";
import { snapshotIdOf } from "../../core/asking.ts";
import { hears, wordsOf } from "../../stories/words.ts";
import { startWorld, type TestWorld } from "../../support/start-world.ts";

const why = "Migration 42 broke the ledger table";

/** Olivia asks for a restore, and Amir denies it. */
async function denied(world: TestWorld): Promise<void> {
  await world.olivia.types("ops", "/vm snapshot db-1 nightly");
  const taken = await world.ended("vm snapshot");
  await world.settled();
  await world.olivia.types("ops", `/vm restore db-1 ${snapshotIdOf(taken)}`);
  await formOf(world);
  await world.olivia.submits({ "Type db-1 to confirm": "db-1", Reason: why });
  const card = await hears(world.amir, "ops", /Waiting for approval/);
  await world.amir.presses("Deny", { in: card.ts });
  expect((await world.ended("vm restore")).state).toBe("denied");
}

const formOf = (world: TestWorld) =>
  world.olivia.until(({ modals }) => modals.some(({ submit }) => submit === "Request approval"));

describe("the reason of a request", () => {
  it("is there again after Request again, so that it isn't typed twice", async () => {
    await using world = await startWorld();
    await denied(world);
    await world.olivia.presses("Request again");
    await formOf(world);
    const sent = await world.olivia.submits({ "Type db-1 to confirm": "db-1" });
    expect(sent.errors).toBeUndefined();
    const card = await hears(world.amir, "ops", /Waiting for approval/);
    expect(wordsOf(card)).toContain(`“${why}”`);
  });
});
