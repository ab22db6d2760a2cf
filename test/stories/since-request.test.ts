import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { describeSeen } from "../../sandbox/slack/describe-seen.ts";
import { startWorld, type TestWorld } from "../support/start-world.ts";
import { hears, wordsOf } from "./words.ts";

/** "33 s ago", "for 2 min", "(33 s)": true only at the moment at which it was written. */
const relative = /\b\d+ (?:s|min|h|d)\b(?: \d+ (?:s|min)\b)?(?: ago|\))|\bfor \d+ (?:s|min|h|d)\b/;

let world: TestWorld;
beforeAll(async () => {
  world = await startWorld({ pace: { inventoryRefreshMs: 300 } });
});
afterAll(() => world.close());

/** Olivia fills in the form that asks for approval. */
async function fillsIn(target: string, reason: string) {
  const { modals } = await world.olivia.until((seen) =>
    seen.modals.some(({ submit }) => submit === "Request approval"),
  );
  await world.olivia.submits({ [`Type ${target} to confirm`]: target, Reason: reason });
  return JSON.stringify(modals);
}

/** Olivia asks for a restore of a snapshot that was just taken. */
async function asksForRestore(vm: string) {
  await world.olivia.types("ops", `/vm snapshot ${vm} nightly`);
  await world.ended("vm snapshot");
  await world.olivia.types("ops", `/vm restore ${vm} nightly`);
  const form = await fillsIn(vm.split("/").at(-1) ?? vm, "corrupt index");
  const card = await cardOf(vm);
  return { form, card };
}

const cardOf = (name: string, words = "") =>
  hears(world.amir, "ops", new RegExp(`${name} [^]*${words}[^]*Waiting for approval`));

describe("a card that waits for approval", () => {
  it("names times, and no age that is wrong a minute later: in its facts, its question, and its notification", async () => {
    const { form, card } = await asksForRestore("web-2");
    expect(form).not.toMatch(relative);
    expect(wordsOf(card)).toMatch(
      /Everything written to web-2 since \d+:\d\d [AP]M UTC is replaced\.[^]*Earlier request: \w{3} \d+, \d+:\d\d [AP]M UTC, vm snapshot by olivia, done/,
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
    const { card } = await asksForRestore("db-1");
    await world.olivia.types("ops", "/vm snapshot db-1 before");
    await world.settled();
    await cardOf("db-1", "Since the request: olivia took a snapshot of it as before, ");
    await world.olivia.types("ops", "/vm restart db-1");
    await world.settled();
    const edited = await hears(
      world.amir,
      "ops",
      /Since the request: olivia restarted it, \d+:\d\d [AP]M UTC; olivia took a snapshot of it as before, \d+:\d\d [AP]M UTC\n[^]*Waiting for approval/,
    );
    expect(edited.ts).toBe(card.ts);
    // What was there when it was requested is told as that, and not again
    expect(wordsOf(edited).match(/Since the request:.*/)?.[0]).not.toContain("nightly");

    await world.amir.types("ops", "/gatehouse approvals");
    await hears(
      world.amir,
      "ops",
      /2 requests wait for your approval[^]*Since the request: olivia restarted it/,
    );
    const approve = await hears(world.amir, "ops", /Since the request/);
    expect(JSON.stringify(approve)).toMatch(/"confirm":.*Since the request: olivia restarted it/);
  });

  it("says that the status of its target is another one by now, whoever changed it, and no longer once it is back", async () => {
    const { card } = await asksForRestore("payments/web-1");
    world.compute.edit.setStatus({ vm: "vm-payments-web-1", status: "ERROR" });
    await cardOf("web-1", "Since the request: its status changed from RUNNING to ERROR\n");
    world.compute.edit.setStatus({ vm: "vm-payments-web-1", status: "RUNNING" });
    await world.amir.until(() => {
      const edited = world.amir.seesChannel("ops").messages.find(({ ts }) => ts === card.ts);
      return edited !== undefined && !wordsOf(edited).includes("its status changed");
    });
  });

  it("blames no request for a status that it didn't leave", async () => {
    const { card } = await asksForRestore("worker-1");
    await world.olivia.types("ops", "/vm start worker-1");
    await world.settled();
    world.compute.edit.setStatus({ vm: "worker-1", status: "ERROR" });
    await cardOf(
      "worker-1",
      "Since the request: its status changed from STOPPED to ERROR; Gatehouse doesn't know what did that; olivia started it, ",
    );
    expect(card.ephemeral).toBe(false);
  });

  it("tells what happened to the project of its VM, and to the VMs of its project", async () => {
    await world.olivia.types("ops", "/project delete staging");
    await fillsIn("staging", "no longer used");
    await cardOf("staging");
    await world.olivia.types("ops", "/vm restart staging/web-1");
    await world.settled();
    await cardOf("staging", "Since the request: olivia restarted staging/web-1, ");
  });
});
