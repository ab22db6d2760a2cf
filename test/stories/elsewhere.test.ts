import { describe, expect, it } from "vitest";
import { startWorld, type TestWorld } from "../support/start-world.ts";
import { hears, wordsOf } from "./words.ts";
import { until } from "../support/until.ts";

/** The list is read by itself once in an hour only: what is newer was looked for. */
const pace = { inventoryRefreshMs: 3_600_000 };

async function known(world: TestWorld) {
  await world.vera.types("ops", "/vm list payments");
  await hears(world.vera, "ops", /3 VMs in payments/);
}

describe("what was just created in another tool", () => {
  it("is there: by its ID, by its name, for a glob, in lists, and in a digest", async () => {
    await using world = await startWorld({ pace });
    const { edit } = world.compute;
    await known(world);
    const id = edit.addVm({ project: "payments", name: "new-1" });
    await world.vera.types("ops", `/vm show ${id}`);
    await hears(world.vera, "ops", /new-1 is RUNNING/);
    edit.addVm({ project: "payments", name: "new-2" });
    await world.vera.types("ops", "/vm show new-2");
    await hears(world.vera, "ops", /new-2 is RUNNING/);
    edit.addVm({ project: "payments", name: "new-3" });
    await world.vera.types("ops", "/vm list payments");
    await hears(world.vera, "ops", /6 VMs in payments/);
    edit.addVm({ project: "payments", name: "new-4", status: "ERROR" });
    await world.olivia.types("ops", "/gatehouse digest now");
    await hears(world.olivia, "ops", /new-4/);
    edit.addVm({ project: "payments", name: "new-5" });
    await world.olivia.types("ops", "/vm restart new-*");
    await world.olivia.until(({ modals }) => JSON.stringify(modals).includes("new-5"));
  });

  it("is looked for at a bounded cost, and a denial says how old the list is", async () => {
    await using world = await startWorld({ pace });
    await known(world);
    world.compute.forget();
    for (let n = 0; n < 10; n += 1) await world.vera.types("ops", `/vm show nowhere-${n}`);
    await hears(world.vera, "ops", /There is no VM called nowhere-9/);
    expect(world.compute.calls().length).toBeLessThanOrEqual(60);
    world.compute.weather({ match: "*", status: 503 });
    const denied = async () => {
      await world.vera.types("ops", "/vm show elsewhere-1");
      return wordsOf(await hears(world.vera, "ops", /There is no VM called elsewhere-1/));
    };
    await until(denied).toMatch(/read the list \d+ s ago/);
  });
});
