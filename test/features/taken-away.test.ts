import { describe, expect, it } from "vitest";
import { features } from "../../src/features/index.ts";
import { hears } from "../stories/words.ts";
import { startWorld } from "../support/start-world.ts";

const without = (feature: string) => features.filter(({ name }) => name !== feature);

describe("what people read where a feature was taken away", () => {
  it("is without rollouts that a command takes one VM, and how to go on", async () => {
    await using world = await startWorld({ features: without("rollouts") });
    const refused = (names: string) =>
      new RegExp(
        `Here /vm restart takes one VM, not a list or a glob\\. Nothing was done\\.\nRun it for each: ${names}\\.`,
      );
    await world.olivia.types("ops", "/vm restart web-*");
    await hears(world.olivia, "ops", refused("payments/web-1, web-2, staging/web-1"));
    await world.olivia.types("ops", "/vm restart payments/web-1 db-1");
    await hears(world.olivia, "ops", refused("payments/web-1, db-1"));
    expect(world.compute.writes()).toEqual([]);
    await world.olivia.types("ops", "/vm restart payments/web-1");
    await hears(world.olivia, "ops", /Restarted/);
  });
});
