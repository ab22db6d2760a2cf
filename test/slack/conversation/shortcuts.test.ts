import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hears, wordsOf } from "../../stories/words.ts";
import { startWorld, type TestWorld } from "../../support/start-world.ts";

let world: TestWorld;
beforeAll(async () => {
  world = await startWorld();
});
afterAll(() => world.close());

describe("the shortcut “Restart a VM…”", () => {
  it("restarts the VM that was chosen by typing, once, and tells it in the chosen channel", async () => {
    await world.olivia.picksShortcut("restart-vm");
    await world.olivia.until(({ modals }) => modals.some(({ title }) => title === "Restart a VM"));
    await world.olivia.suggests("VM", "web-2");
    await world.olivia.submits({ VM: "web-2 in payments", "Channel for the result": "status" });
    expect((await world.ended("vm restart")).record).toMatchObject({
      channelId: "C02STATUS",
      via: "modal",
    });
    await hears(world.vera, "status", /Restarted web-2/);
    expect(world.compute.writes().map(({ path }) => path)).toEqual([
      "/v1/vms/vm-payments-web-2/restart",
    ]);
  });

  it("is refused to whoever may not restart, when they submit it", async () => {
    world.compute.forget();
    await world.vera.picksShortcut("restart-vm");
    await world.vera.until(({ modals }) => modals.length > 0);
    await world.vera.suggests("VM", "db-1");
    await world.vera.submits({ VM: "db-1 in payments", "Channel for the result": "random" });
    await world.vera.until((seen) =>
      JSON.stringify(seen.channels).includes("You can't run /vm restart"),
    );
    expect(world.compute.writes()).toEqual([]);
  });
});

/** What Vera is shown about a message that she writes. */
async function shows(text: string, says: RegExp): Promise<string> {
  const { ts = "" } = await world.vera.types("ops", text);
  await world.vera.picksMessageShortcut("show-vms", ts);
  return wordsOf(await hears(world.vera, "ops", says));
}

describe("the shortcut “Show the VMs named here”", () => {
  it("shows them once each, only to whoever asked, and names within longer words are none", async () => {
    const said = await shows(
      "db-1 is slow; gpu-1, (gpu-1) and `vm-payments-web-2`! but not mydb-1x or web-22.",
      /3 VMs are named/,
    );
    for (const name of ["db-1", "gpu-1", "web-2"]) expect(said).toContain(name);
    expect(said.match(/gpu-1/g)).toHaveLength(2);
    expect(
      world.amir.seesChannel("ops").messages.some((one) => /VMs are named/.test(wordsOf(one))),
    ).toBe(false);
  });

  it("shows both of two VMs with one name", async () => {
    const said = await shows("web-1 again", /2 VMs are named/);
    expect(said).toMatch(/payments[^]*staging|staging[^]*payments/);
  });

  it("says so when there are none, however long or odd the message is", async () => {
    await shows("nothing of ours here", /That message names no known VM/);
    const { ts = "" } = await world.vera.types(
      "random",
      `${"word ".repeat(700)}<!channel> ../../etc`,
    );
    await world.vera.picksMessageShortcut("show-vms", ts);
    await hears(world.vera, "random", /That message names no known VM/);
  });
});
