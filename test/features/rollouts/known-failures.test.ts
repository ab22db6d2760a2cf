import { writeFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { firstBlockingTarget } from "../../../src/features/rollouts/rollout.ts";
import { vmTarget } from "../../core/asking.ts";
import { hears, wordsOf } from "../../stories/words.ts";
import {
  policyWith,
  shortDeadlines,
  startWorld,
  testPolicy,
  type TestWorld,
} from "../../support/start-world.ts";
import { dialogOf, fleetOf, theRollout, touched } from "./rollout-world.ts";

const locked = "vm-0000-002";

/** A fleet in which one VM is locked, because the outcome of its snapshot is unknown. */
async function startWithLocked(vms: number): Promise<TestWorld> {
  const policy = policyWith({ timing: shortDeadlines.timing });
  const world = await startWorld({ ...fleetOf(vms), policy, pace: shortDeadlines.pace });
  world.compute.weather({ match: "POST /v1/vms/:id/snapshots", lost: "after", times: 1 });
  await world.olivia.types("ops", `/vm snapshot ${locked} before`);
  await world.ended();
  // Everything else has time
  await writeFile(world.env["GATEHOUSE_CONFIG"] ?? "", testPolicy);
  await world.processes[0]?.reload();
  world.compute.forget();
  return world;
}

/** The modal on top once it has these words. */
async function shows(world: TestWorld, words: RegExp): Promise<string> {
  const top = () => world.olivia.sees().modals.at(-1);
  await world.olivia.until(() => words.test(JSON.stringify(top()?.blocks)));
  return wordsOf({ blocks: top()?.blocks ?? [], text: "" } as never);
}

describe("the form of a rollout", () => {
  it("names what is known to fail and where that stops it, and leaves it out by a press, keeping what was typed", async () => {
    await using world = await startWithLocked(5);
    await world.olivia.types("ops", "/vm restart vm-0000-*");
    const dialog = await dialogOf(world.olivia);
    expect(dialog).toContain(
      "🛑 1 of these is known to fail. It would stop at vm-0000-002, number 3 of 5.",
    );
    expect(dialog).toMatch(
      /• vm-0000-002 is locked for changes: nobody has recorded whether olivia's snapshot \(r-\w+\), sent at [^\n]*, happened\./,
    );
    await world.olivia.chooses("roll:most", "2");
    await world.olivia.presses("Leave it out");
    const without = await shows(world, /Skipped/);
    expect(without).toContain("Restart 4 VMs");
    expect(without).toMatch(/Skipped:\n• is locked for changes: [^\n]*: vm-0000-002/);
    expect(without).not.toContain("is known to fail");
    expect(touched(world)).toEqual([]);
    const sent = await world.olivia.submits({ "roll:number": "4" });
    expect(sent.errors).toBeUndefined();
    await hears(world.olivia, "ops", /<@U0OLIVIA> Restarted 4 VMs/);
    expect(touched(world).toSorted()).toEqual(
      ["000", "001", "003", "004"].map((n) => `vm-0000-${n}`),
    );
    const all = await world.client.keys(world.key("roll", "roll-????????"));
    expect(all).toHaveLength(2);
  });

  it("says what would happen with the options that are filled in, and begins nothing", async () => {
    await using world = await startWorld(fleetOf(6));
    await world.olivia.types("ops", "/vm restart vm-0000-000");
    await world.ended();
    world.compute.forget();
    await world.olivia.types("ops", "/vm restart vm-0000-*");
    await dialogOf(world.olivia);
    await world.olivia.chooses("roll:most", "3");
    await world.olivia.presses("What would happen?");
    const told = await shows(world, /Nothing was requested/);
    expect(told).toContain("Restart 6 VMs");
    expect(told).toContain("✅ Nothing is known that would stop it.");
    expect(told).toMatch(
      /⏱️ 1 earlier restart of these VMs took \d+ s; 6 VMs, 3 at a time, take about \d+ s\./,
    );
    expect((await theRollout(world)).state).toBe("planned");
    expect(touched(world)).toEqual([]);
  });

  it("sends the list of many VMs only when it is asked for", async () => {
    await using world = await startWorld(fleetOf(60));
    await world.olivia.types("ops", "/vm restart vm-0000-*");
    expect(await dialogOf(world.olivia)).toContain("[As a file]");
    const files = () =>
      world.olivia.seesChannel("gatehouse").messages.flatMap((one) => one.files.map((f) => f.name));
    expect(files()).toEqual([]);
    await world.olivia.presses("As a file");
    await shows(world, /The list of them is in your direct messages/);
    expect(files()).toEqual(["vms.csv"]);
  });
});

describe("where a rollout stops", () => {
  const targets = ["a", "b", "c", "d"].map((name) => vmTarget(name));
  const known = (...all: (readonly [string, "fails" | "halts"])[]) =>
    new Map(all.map(([name, effect]) => [`vm-payments-${name}`, effect]));
  const options = { canary: false, stopOnFailure: 2 };

  it("is the failure that is one too many, a failed attestation, or a failed canary", () => {
    expect(firstBlockingTarget(targets, known(["b", "fails"]), options)).toBeUndefined();
    expect(firstBlockingTarget(targets, known(["b", "fails"], ["d", "fails"]), options)).toBe(3);
    expect(firstBlockingTarget(targets, known(["c", "halts"]), options)).toBe(2);
    const canary = { ...options, canary: true };
    expect(firstBlockingTarget(targets, known(["a", "fails"]), canary)).toBe(0);
    expect(firstBlockingTarget(targets, known(["b", "fails"]), canary)).toBeUndefined();
  });
});
