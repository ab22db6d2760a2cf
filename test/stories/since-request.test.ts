import { describe, expect, it } from "vitest";
import { describeSeen } from "../../sandbox/slack/describe-seen.ts";
import { startWorld, type TestWorld } from "../support/start-world.ts";
import { hears, wordsOf } from "./words.ts";

/** "33 s ago", "for 2 min", "(33 s)": true only at the moment at which it was written. */
const relative = /\b\d+ (?:s|min|h|d)\b(?: \d+ (?:s|min)\b)?(?: ago|\))|\bfor \d+ (?:s|min|h|d)\b/;

const formOf = (world: TestWorld) =>
  world.olivia.until(({ modals }) => modals.some(({ submit }) => submit === "Request approval"));

describe("a card that waits for approval", () => {
  it("names times, and no age that is wrong a minute later: in its facts, its question, and its notification", async () => {
    await using world = await startWorld();
    await world.olivia.types("ops", "/vm snapshot db-1 nightly");
    await world.ended("vm snapshot");
    await world.olivia.types("ops", "/vm restore db-1 nightly");
    await formOf(world);
    expect(JSON.stringify(world.olivia.sees().modals)).not.toMatch(relative);
    await world.olivia.submits({ "Type db-1 to confirm": "db-1", Reason: "corrupt index" });
    const card = await hears(world.amir, "ops", /Waiting for approval/);
    expect(wordsOf(card)).toMatch(
      /Everything written to db-1 since \d+:\d\d [AP]M UTC is replaced\.[^]*Earlier request: \w{3} \d+, \d+:\d\d [AP]M UTC, vm snapshot by olivia, done/,
    );
    expect(JSON.stringify(card)).not.toMatch(relative);
    await world.amir.types("ops", "/gatehouse approvals");
    const list = await hears(world.amir, "ops", /1 request waits for your approval/);
    expect(JSON.stringify(list)).not.toMatch(relative);
    await world.amir.opensHome();
    await world.amir.until((seen) => describeSeen(seen).includes("Waiting for you"));
    await world.amir.presses("Review", { in: "home" });
    await world.amir.until((seen) =>
      /Home[^]*Fingerprint[^]*Waiting for you/.test(describeSeen(seen)),
    );
    // How old its list of VMs is stands at the end: that is drawn anew each time that Home is opened
    const home = describeSeen(world.amir.sees()).split("Home")[1]?.split("Statuses read")[0];
    expect(home).not.toMatch(relative);
  });

  it("says what happened to its target since it was requested, as soon as that is known and without a vote", async () => {
    await using world = await startWorld();
    await world.olivia.types("ops", "/vm snapshot db-1 nightly");
    await world.ended("vm snapshot");
    await world.olivia.types("ops", "/vm restore db-1 nightly");
    await formOf(world);
    await world.olivia.submits({ "Type db-1 to confirm": "db-1", Reason: "corrupt index" });
    const { ts } = await hears(world.amir, "ops", /Waiting for approval/);
    await world.olivia.types("ops", "/vm snapshot db-1 before");
    await world.settled();
    await hears(
      world.amir,
      "ops",
      /Since the request: olivia took a snapshot of it as before, [^]*Waiting for approval/,
    );
    await world.olivia.types("ops", "/vm restart db-1");
    await world.settled();
    const card = await hears(
      world.amir,
      "ops",
      /Since the request: olivia restarted it, \d+:\d\d [AP]M UTC; olivia took a snapshot of it as before, \d+:\d\d [AP]M UTC\n[^]*Waiting for approval/,
    );
    expect(card.ts).toBe(ts);
    // What was there when it was requested is told as that, and not again
    expect(wordsOf(card).match(/Since the request:.*/)?.[0]).not.toContain("nightly");

    await world.amir.types("ops", "/gatehouse approvals");
    await hears(
      world.amir,
      "ops",
      /1 request waits for your approval[^]*Since the request: olivia restarted it/,
    );
    const approve = await hears(world.amir, "ops", /Since the request/);
    expect(JSON.stringify(approve)).toMatch(/"confirm":.*Since the request: olivia restarted it/);
  });

  it("says that the status of its target is another one by now, whoever changed it, and no longer once it is back", async () => {
    await using world = await startWorld({ pace: { inventoryRefreshMs: 300 } });
    await world.olivia.types("ops", "/vm snapshot db-1 nightly");
    await world.ended("vm snapshot");
    await world.olivia.types("ops", "/vm restore db-1 nightly");
    await formOf(world);
    await world.olivia.submits({ "Type db-1 to confirm": "db-1", Reason: "corrupt index" });
    await hears(world.amir, "ops", /Waiting for approval/);
    world.compute.edit.setStatus({ vm: "vm-payments-db-1", status: "ERROR" });
    await hears(
      world.amir,
      "ops",
      /Since the request: its status changed from RUNNING to ERROR\n[^]*Waiting for approval/,
    );
    world.compute.edit.setStatus({ vm: "vm-payments-db-1", status: "RUNNING" });
    await world.amir.until(
      () =>
        !world.amir
          .seesChannel("ops")
          .messages.some((message) => wordsOf(message).includes("its status changed")),
    );
  });

  it("tells what happened to the project of its VM, and to the VMs of its project", async () => {
    await using world = await startWorld();
    await world.olivia.types("ops", "/project delete staging");
    await formOf(world);
    await world.olivia.submits({ "Type staging to confirm": "staging", Reason: "no longer used" });
    await hears(world.amir, "ops", /Waiting for approval/);
    await world.olivia.types("ops", "/vm restart staging/web-1");
    await world.settled();
    await hears(
      world.amir,
      "ops",
      /Since the request: olivia restarted staging\/web-1, [^]*Waiting for approval/,
    );
  });
});
