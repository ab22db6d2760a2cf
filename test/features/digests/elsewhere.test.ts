import { it } from "vitest";
import { hears } from "../../stories/words.ts";
import { startWorld } from "../../support/start-world.ts";

it("a digest tells of a VM that was just created in another tool, before the list is read again", async () => {
  await using world = await startWorld({ pace: { inventoryRefreshMs: 3_600_000 } });
  await world.vera.types("ops", "/vm list payments");
  await hears(world.vera, "ops", /3 VMs in payments/);
  world.compute.edit.addVm({ project: "payments", name: "new-4", status: "ERROR" });
  await world.olivia.types("ops", "/gatehouse digest now");
  await hears(world.olivia, "ops", /new-4/);
});
