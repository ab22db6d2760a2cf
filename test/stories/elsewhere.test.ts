import { describe, expect, it } from "vitest";
import { show } from "../../src/commands/vm/show.ts";
import { resolveTarget } from "../../src/core/submit/resolve-targets.ts";
import type { Inventory } from "../../src/fleet/inventory/inventory.ts";
import { member } from "../core/asking.ts";
import { askingFor } from "../support/permits.ts";
import { startWorld } from "../support/start-world.ts";
import { hears } from "./words.ts";

describe("what was just created in another tool", () => {
  it("is there: by its ID, by its name, for a glob, and in lists", async () => {
    // The list is read by itself once in an hour only: what is newer was looked for
    await using world = await startWorld({ pace: { inventoryRefreshMs: 3_600_000 } });
    const { edit } = world.compute;
    await world.vera.types("ops", "/vm list payments");
    await hears(world.vera, "ops", /3 VMs in payments/);
    const id = edit.addVm({ project: "payments", name: "new-1" });
    await world.vera.types("ops", `/vm show ${id}`);
    await hears(world.vera, "ops", /new-1 is RUNNING/);
    edit.addVm({ project: "payments", name: "new-2" });
    await world.vera.types("ops", "/vm show new-2");
    await hears(world.vera, "ops", /new-2 is RUNNING/);
    edit.addVm({ project: "payments", name: "new-3" });
    await world.vera.types("ops", "/vm list payments");
    await hears(world.vera, "ops", /6 VMs in payments/);
    edit.addVm({ project: "payments", name: "new-5" });
    await world.olivia.types("ops", "/vm restart new-*");
    await world.olivia.until(({ modals }) => JSON.stringify(modals).includes("new-5"));
  });

  it("is denied with the age of the list where that could not be read since", async () => {
    const denial = (refreshedAt: number) => {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- nothing else is asked of it
      const inventory = {
        findVm: async () => ({ unknown: [] }),
        state: async () => ({ refreshedAt }),
      } as unknown as Inventory;
      return resolveTarget(askingFor(show, member("U0VERA")), "vm", "new-6", inventory);
    };
    const aged = "There is no VM called new-6. Gatehouse read the list 3 h ago.";
    await expect(denial(Date.now() - 3 * 3_600_000)).rejects.toThrow(aged);
    await expect(denial(Date.now() + 60_000)).rejects.toThrow(/^There is no VM called new-6\.$/);
  });
});
