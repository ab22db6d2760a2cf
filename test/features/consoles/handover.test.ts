import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { features } from "../../../src/features/index.ts";
import { hears, wordsOf } from "../../stories/words.ts";
import { isOffered } from "../../support/is-offered.ts";
import { startWorld, type TestWorld } from "../../support/start-world.ts";

let world: TestWorld;
beforeAll(async () => {
  world = await startWorld();
});
afterAll(() => world.close());

describe.runIf(isOffered("gatehouse digest"))("a handover", () => {
  it("lists the consoles that are open, by whom and until when", async () => {
    const { olivia } = world;
    await olivia.types("ops", "/gatehouse handover");
    await hears(
      olivia,
      "ops",
      /Running:.* nothing\.\n.*Consoles open:.* none that Gatehouse opened\./,
    );
    await olivia.types("ops", "/vm console web-2");
    const offer = await hears(olivia, "ops", /Anyone with the address/);
    await olivia.presses("Open console", { in: offer.ts });
    await hears(olivia, "ops", /olivia opened a console on web-2/);
    // However much happens meanwhile, as in a rollout
    await Promise.all(Array.from({ length: 1_100 }, () => world.store.note({ what: "roll" })));
    await olivia.types("ops", "/gatehouse handover");
    await hears(olivia, "ops", /Consoles open:.*\n• web-2: <@U0OLIVIA>, until /);
  });

  it("doesn't speak of them where there are none", async () => {
    const without = features.filter(({ name }) => name !== "consoles");
    await using other = await startWorld({ features: without });
    await other.olivia.types("ops", "/gatehouse handover");
    const told = wordsOf(await hears(other.olivia, "ops", /Handover/));
    expect(told).toMatch(/Running: nothing\./);
    expect(told).not.toMatch(/console/i);
  });
});

it("a rehearsal names who has a console open on a VM that the change interrupts", async () => {
  const { olivia } = world;
  await olivia.types("ops", "/vm console db-1");
  const offer = await hears(olivia, "ops", /Anyone with the address[^]*db-1/);
  await olivia.presses("Open console", { in: offer.ts });
  await hears(olivia, "ops", /olivia opened a console on db-1/);
  await olivia.types("ops", "/gatehouse can-i vm restart db-1");
  const told = wordsOf(await hears(olivia, "ops", /you can run \/vm restart/));
  expect(told).toMatch(/⚠️ db-1 has a console that olivia opened, until /);
  await olivia.types("ops", "/gatehouse can-i vm snapshot db-1");
  const other = wordsOf(await hears(olivia, "ops", /you can run \/vm snapshot/));
  expect(other).not.toContain("console");
});

it("a stopped VM has no console: its start is offered instead", async () => {
  const { olivia } = world;
  await olivia.types("ops", "/vm console worker-1");
  const told = wordsOf(
    await hears(olivia, "ops", /worker-1 is stopped\. A console needs a running VM/),
  );
  expect(told).toMatch(/Start/);
});
