import { describe, expect, it } from "vitest";
import { auditOf } from "../../core/asking.ts";
import { hears } from "../../stories/words.ts";
import { startWorld, type TestWorld } from "../../support/start-world.ts";
import { until } from "../../support/until.ts";

const call = "POST /v1/vms/vm-payments-web-2/console";

/** The records about consoles, each by its kind. */
async function recorded(world: TestWorld) {
  const trail = await auditOf(world.client, world.key("audit"));
  return trail.filter(({ what }) => String(what).startsWith("console"));
}

const kinds = async (world: TestWorld) => (await recorded(world)).map(({ what }) => what);

/** Olivia is offered a console on this VM, and presses its button. */
async function opens({ olivia }: TestWorld, vm = "web-2") {
  await olivia.types("ops", `/vm console ${vm}`);
  const offer = await hears(olivia, "ops", new RegExp(`Anyone with the address[^]*${vm}`));
  await olivia.presses("Open console", { in: offer.ts });
}

describe("opening a console", () => {
  it("is on record before its call leaves, and what came of it afterwards", async () => {
    await using world = await startWorld();
    // This one never answers, so that what is on record while it is under way can be read at any pace.
    world.compute.weather({ match: "POST /v1/vms/*/console", hang: "before", times: 1 });
    const left = world.compute.called("POST /v1/vms/*/console");
    await opens(world, "db-1");
    await left;
    expect(await kinds(world)).toEqual(["console-opening"]);
    await opens(world);
    await hears(world.olivia, "ops", /olivia opened a console on web-2/);
    const [, asked, opened] = await recorded(world);
    expect(asked).toMatchObject({ what: "console-opening" });
    expect(opened).toMatchObject({ what: "console", who: "U0OLIVIA", target: asked?.["target"] });
    expect(asked?.["opening"]).toMatch(/./);
    expect(opened?.["opening"]).toBe(asked?.["opening"]);
  });

  it("that the compute service refused is on record as not opened; without a clear answer nothing says so", async () => {
    await using world = await startWorld();
    world.compute.weather({ match: call, status: 422, times: 1 });
    await opens(world);
    await until(() => kinds(world)).toEqual(["console-opening", "console-unopened"]);
    world.compute.weather({ match: "POST /v1/vms/*/console", lost: "after", times: 1 });
    await opens(world, "db-1");
    await hears(world.olivia, "ops", /The compute service did not answer|gave no clear answer/);
    expect(await kinds(world)).toEqual(["console-opening", "console-unopened", "console-opening"]);
  });

  it("is refused during a freeze that began after the offer, and the button works once it has ended", async () => {
    await using world = await startWorld();
    await world.olivia.types("ops", "/vm console web-2");
    const offer = await hears(world.olivia, "ops", /Anyone with the address/);
    await world.store.freeze({ id: "U0ADA", by: "ada", reason: "odd things" });
    await world.olivia.presses("Open console", { in: offer.ts });
    await hears(world.olivia, "ops", /All changes are frozen by ada, consoles too/);
    expect(world.compute.writes()).toEqual([]);
    await world.store.thaw({ id: "U0ADA", name: "ada" });
    await world.olivia.presses("Open console", { in: offer.ts });
    await hears(world.olivia, "ops", /olivia opened a console on web-2/);
  });
});
