import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { snapshotIdOf } from "../core/asking.ts";
import { type Page, startPage } from "../../sandbox/page/page.ts";
import { browserForTests, openBrowser, type TestBrowser } from "../support/browser.ts";
import { fleetOf } from "../features/rollouts/rollout-world.ts";
import { startWorld, type TestWorld } from "../support/start-world.ts";

describe.skipIf(browserForTests() === undefined)("in a browser", () => {
  let browser: TestBrowser;
  let world: TestWorld;
  let page: Page;
  beforeAll(async () => {
    browser = await openBrowser();
    world = await startWorld();
    page = await startPage({ slack: world.slack });
  });
  afterAll(async () => {
    await browser[Symbol.asyncDispose]();
    await page.close();
    await world.close();
  });

  it("a person restarts a VM, and another one looks at the same story", async () => {
    await using window = await browser.open(page.url, { as: "olivia", channel: "ops" });
    await window.type("/vm show web-2");
    await window.sees("web-2 is RUNNING");
    await window.press("Restart");
    // What interrupts asks once
    await window.sees("Restart web-2 in payments?");
    expect(world.compute.writes()).toEqual([]);
    await window.press("Restart");
    expect((await world.ended("vm restart")).state).toBe("done");
    await window.sees("Restarted web-2 in");
    await window.as("vera");
    await window.sees("Restarted web-2 in");
    await window.seesNot("Restart web-2: requested");
    expect(world.compute.writes()).toHaveLength(1);
    expect(window.errors).toEqual([]);
  });

  it("a thumb on a phone that slips from Snapshot finds nothing that interrupts beside it", async () => {
    const phone = { as: "olivia", channel: "ops", phone: true };
    await using window = await browser.open(page.url, phone);
    await window.type("/vm show web-2");
    await window.sees("web-2 is RUNNING");
    const topOf = async (label: string) =>
      (await window.tab.getByRole("button", { name: label, exact: true }).boundingBox())?.y ?? 0;
    expect(await topOf("Stop web-2")).toBeGreaterThan((await topOf("Snapshot web-2")) + 30);
    expect(await topOf("Snapshot web-2")).toBeGreaterThan((await topOf("Refresh web-2")) + 30);
  });

  it("a person restores a snapshot: dialog, typed name, a second person approves, the thread tells", async () => {
    await world.olivia.types("ops", "/vm snapshot db-1 nightly");
    const taken = await world.ended("vm snapshot");
    await using window = await browser.open(page.url, { as: "olivia", channel: "ops" });
    await window.type(`/vm restore db-1 ${snapshotIdOf(taken)}`);
    await window.sees("All data of db-1 is replaced");
    await window.fill("Type db-1 to confirm", "db-2");
    await window.fill("Reason", "corrupt index");
    await window.press("Request approval");
    await window.sees("Type db-1 exactly as shown.");
    await window.fill("Type db-1 to confirm", "db-1");
    await window.press("Request approval");
    await window.sees("One other person must approve");
    await window.as("amir");
    // What destroys is named once more
    await window.press("Approve");
    await window.sees("Restore db-1 (payments) from nightly.");
    await window.press("Approve");
    expect((await world.ended("vm restore")).state).toBe("done");
    await window.sees("approved by amir");
    await window.openThread("Restored db-1");
    await window.sees("db-1 has settled with the snapshot's data.");
    await window.sees("Undo restores the safety snapshot");
    expect(window.errors).toEqual([]);
  });

  it("a person pauses a roll and lets it go on", async () => {
    // The roll stands before its first send until it is paused
    const { promise: untilPaused, resolve: goOn } = Promise.withResolvers<void>();
    const at = (point: string) => (point === "gate" ? untilPaused : Promise.resolve());
    await using fleet = await startWorld({ ...fleetOf(5), at });
    await using rolling = await startPage({ slack: fleet.slack });
    await using window = await browser.open(rolling.url, { as: "olivia", channel: "ops" });
    await window.type("/vm restart vm-0000-*");
    await window.sees("vm-0000-004");
    await window.fill("Type 5 to confirm", "5");
    await window.press("Restart");
    await window.press("Pause");
    await window.sees("Paused");
    goOn();
    await window.press("Resume");
    await window.sees("Restarted 5 VMs");
    expect(fleet.compute.writes()).toHaveLength(5);
    expect(window.errors).toEqual([]);
  });
});
