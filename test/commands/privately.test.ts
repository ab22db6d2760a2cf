import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hears, wordsOf } from "../stories/words.ts";
import { startWorld, type TestWorld } from "../support/start-world.ts";

let world: TestWorld;
beforeAll(async () => {
  world = await startWorld();
});
afterAll(() => world.close());

describe("what is only read", () => {
  it("is answered to the asker alone, until they share it", async () => {
    await world.vera.types("ops", "/vm list payments");
    const list = await hears(world.vera, "ops", /3 VMs in payments: 3 RUNNING/);
    expect(list.ephemeral).toBe(true);
    expect(world.olivia.seesChannel("ops").messages).toEqual([]);
    await world.vera.presses("Share in channel", { in: list.ts });
    const shared = await hears(world.olivia, "ops", /3 VMs in payments: 3 RUNNING/);
    expect(shared.ephemeral).toBe(false);
    expect(wordsOf(shared)).toContain("Shared by vera");
  });

  it("pings nobody when it is shared, whatever a VM is called", async () => {
    const names = ["<!channel>", "<@U0OLIVIA>", "<!subteam^S01ONCALL>", "@here <!here>"];
    for (const name of names) world.compute.edit.addVm({ project: "payments", name });
    await world.vera.types("ops", "/project show payments");
    const shown = await hears(world.vera, "ops", /7 VMs: /);
    for (const name of names) expect(wordsOf(shown)).toContain(name);
    await world.vera.presses("Share in channel", { in: shown.ts });
    const shared = await hears(world.olivia, "ops", /7 VMs: /);
    expect(wordsOf(shared)).toContain("Shared by vera");
    for (const person of [world.olivia, world.amir, world.vera, world.ada])
      expect(person.mentions()).toEqual([]);
  });

  it.each([
    ["/gatehouse jobs", /No requests are running or waiting/],
    ["/gatehouse approvals", /No requests are waiting/],
    ["/gatehouse status", /Slack/],
    ["/gatehouse help", /What you can run/],
  ])("%s answers somebody who may only look", async (words, answer) => {
    await world.vera.types("ops", words);
    expect((await hears(world.vera, "ops", answer)).ephemeral).toBe(true);
  });

  it("shows the trail of /gatehouse audit to administrators, and says so to others", async () => {
    await world.vera.types("ops", "/gatehouse audit");
    const refused = await hears(world.vera, "ops", /Only ada can run/);
    expect(refused.ephemeral).toBe(true);
    await world.ada.types("ops", "/gatehouse audit");
    const trail = await hears(world.ada, "ops", /gatehouse audit/);
    expect(trail.ephemeral).toBe(true);
    expect(wordsOf(trail)).toMatch(/refus/i);
  });
});
