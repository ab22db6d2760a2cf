import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { auditOf } from "../../core/asking.ts";
import { hears } from "../../stories/words.ts";
import { startWorld, type TestWorld } from "../../support/start-world.ts";
import { until } from "../../support/until.ts";

/** Each test has VMs of its own. */
let world: TestWorld;
beforeAll(async () => {
  world = await startWorld({
    prepare({ edit }) {
      for (const name of ["refused-1", "lost-1", "frozen-1"])
        edit.addVm({ project: "payments", name, id: `vm-${name}` });
    },
  });
});
afterAll(() => world.close());

/** The records about consoles of this VM, each by its kind. */
async function recorded(vm: string) {
  const trail = await auditOf(world.client, world.key("audit"));
  const isItsConsole = (record: object) => JSON.stringify(record).includes(vm);
  return trail.filter((each) => String(each["what"]).startsWith("console") && isItsConsole(each));
}

const kinds = async (vm: string) => (await recorded(vm)).map(({ what }) => what);

/** Olivia is offered a console on this VM, and presses its button. */
async function opens(vm: string) {
  await world.olivia.types("ops", `/vm console ${vm}`);
  const offer = await hears(world.olivia, "ops", new RegExp(`Anyone with the address[^]*${vm}`));
  await world.olivia.presses("Open console", { in: offer.ts });
}

describe("opening a console", () => {
  it("is on record before its call leaves, and what came of it afterwards", async () => {
    // This one never answers, so that what is on record while it is under way can be read at any pace.
    const match = "POST /v1/vms/vm-payments-db-1/console";
    world.compute.weather({ match, hang: "before" });
    const left = world.compute.called(match);
    await opens("db-1");
    await left;
    expect(await kinds("db-1")).toEqual(["console-opening"]);
    await opens("web-2");
    await hears(world.olivia, "ops", /olivia opened a console on web-2/);
    const [asked, opened] = await recorded("web-2");
    expect(asked).toMatchObject({ what: "console-opening" });
    expect(opened).toMatchObject({ what: "console", who: "U0OLIVIA", target: asked?.["target"] });
    expect(asked?.["opening"]).toMatch(/./);
    expect(opened?.["opening"]).toBe(asked?.["opening"]);
  });

  it("is on record as refused if the compute service says so; without a clear answer nothing says so", async () => {
    world.compute.weather({ match: "POST /v1/vms/vm-refused-1/console", status: 422 });
    await opens("refused-1");
    await until(() => kinds("refused-1")).toEqual(["console-opening", "console-unopened"]);
    world.compute.weather({ match: "POST /v1/vms/vm-lost-1/console", lost: "after" });
    await opens("lost-1");
    await hears(world.olivia, "ops", /The compute service did not answer|gave no clear answer/);
    expect(await kinds("lost-1")).toEqual(["console-opening"]);
  });

  it("is refused during a freeze that began after the offer, and the button works once it has ended", async () => {
    await world.olivia.types("ops", "/vm console frozen-1");
    const offer = await hears(world.olivia, "ops", /Anyone with the address[^]*frozen-1/);
    await world.store.freeze({ id: "U0ADA", by: "ada", reason: "odd things" });
    await world.olivia.presses("Open console", { in: offer.ts });
    await hears(world.olivia, "ops", /All changes are frozen by ada, consoles too/);
    const paths = world.compute.writes().map(({ path }) => path);
    expect(paths).not.toContain("/v1/vms/vm-frozen-1/console");
    await world.store.thaw({ id: "U0ADA", name: "ada" });
    await world.olivia.presses("Open console", { in: offer.ts });
    await hears(world.olivia, "ops", /olivia opened a console on frozen-1/);
  });
});
