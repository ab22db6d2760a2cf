import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Storm } from "../../sandbox/compute/weather.ts";
import { policyWith, shortDeadlines, startWorld, type TestWorld } from "../support/start-world.ts";
import { until } from "../support/until.ts";
import { hears, wordsOf } from "./words.ts";

const lists = "GET /v1/projects/:id/vms";
const noStatus = { set: { status: null } };
const noName = { set: { name: null } };
const noId = { without: ["id"] };

async function told(world: TestWorld, words: string, answer: RegExp): Promise<string> {
  const read = () => world.ada.seesChannel("ops").messages;
  const before = new Set(read().map(({ ts }) => ts));
  await world.ada.types("ops", words);
  return wordsOf(
    await until(() => read().find((one) => !before.has(one.ts) && answer.test(wordsOf(one)))),
  );
}

/** The list is read again under this weather, and the one before it is known. */
async function broken(world: TestWorld, weather: Storm): Promise<void> {
  await told(world, "/vm list", /8 VMs/);
  world.compute.weather(weather);
}

const policy = policyWith(
  { operate: ["S01ONCALL", "U0ADA"] },
  'approvals: [{ operations: ["project.delete"], required: 1 }]\n',
);
let world: TestWorld;
beforeAll(async () => {
  world = await startWorld({ policy });
});
afterEach(() => world.compute.clear());
afterAll(() => world.close());

describe("a service that gives one record in a form that can't be read", () => {
  it.each<[what: string, weather: Storm]>([
    ["a VM without a status", { match: "GET /v1/*", spoils: { "web-2": noStatus } }],
    ["a VM without an ID", { match: lists, spoils: { "web-2": noId } }],
    [
      "a VM of another project",
      { match: lists, spoils: { "web-2": { set: { project_id: "prj-x" } } } },
    ],
  ])("keeps the VM in view, marks it, and says so: %s", async (_, weather) => {
    await broken(world, weather);
    const from = world.lines.length;
    const all = await told(world, "/vm list", /1 UNREADABLE/);
    expect(all).toMatch(/^8 VMs: 1 ERROR, 1 UNREADABLE, 2 STOPPED, 4 RUNNING/);
    expect(all).toMatch(/❔ web-2 \| UNREADABLE \| payments/);
    expect(all).toMatch(/⚠️ Incomplete: payments: .*web-2/);
    expect(await told(world, "/vm list payments", /in payments/)).toMatch(/⚠️ Incomplete/);
    expect(await told(world, "/project show payments", /payments is ACTIVE/)).toMatch(
      /⚠️ Incomplete: /,
    );
    expect(await told(world, "/gatehouse status", /Compute service/)).toMatch(
      /incomplete: payments: .*web-2/,
    );
    expect(await told(world, "/vm show payments/web-1", /web-1 is RUNNING/)).not.toContain("⚠️");
    const noted = world.lines.slice(from).filter((line) => line.includes('"inventory.incomplete"'));
    expect(noted).toHaveLength(1);
    world.compute.clear();
    expect(await told(world, "/vm list", /5 RUNNING/)).not.toContain("Incomplete");
  });

  it("shows the VM itself, and offers nothing that would be sent to it", async () => {
    const sent = world.compute.writes().length;
    await broken(world, { match: "GET /v1/*", spoils: { "web-2": noStatus } });
    await world.olivia.types("ops", "/vm show web-2");
    const card = wordsOf(await hears(world.olivia, "ops", /web-2 is UNREADABLE/));
    expect(card).toContain("gives no status of web-2 that can be read");
    expect(card).not.toMatch(/\[(Restart|Stop|Start|Resize)\]/);
    await world.olivia.types("ops", "/vm restart web-2");
    await hears(world.olivia, "ops", /can't read the compute service's answer .*status is missing/);
    expect(world.compute.writes()).toHaveLength(sent);
  });

  it("doesn't block the VMs of a project whose own record has no status", async () => {
    await broken(world, { match: "GET /v1/*", spoils: { payments: noStatus } });
    await world.ada.types("ops", "/vm restart web-2");
    expect((await world.ended("vm restart")).state).toBe("done");
  });

  it("doesn't take a VM for renamed, or out of a team's rules, where its name can't be read", async () => {
    await broken(world, { match: lists, spoils: { "web-2": noName } });
    expect(await told(world, "/vm list payments", /in payments/)).toContain("web-2 |");
    expect(await told(world, "/vm show web-2", /web-2 is RUNNING/)).toContain("vm-payments-web-2");
  });

  it("settles restarts of a project's other VMs, and of that one by its own record", async () => {
    await broken(world, { match: lists, spoils: { "web-2": noStatus, "db-1": noId } });
    for (const name of ["payments/web-1", "web-2", "db-1"])
      await world.olivia.types("ops", `/vm restart ${name}`);
    const ended = (await world.settled()).filter(
      ({ record: { requester } }) => requester.name === "olivia",
    );
    expect(ended.map(({ state }) => state)).toEqual(["done", "done", "done"]);
  });
});

describe("a guard", () => {
  const confirm = { "Type ml to confirm": "ml", Reason: "over and done" };

  it("tells no alarm of a VM that stopped or recovered, because its status could not be read for a while", async () => {
    await broken(world, { match: lists, spoils: { "train-7": noStatus, "gpu-1": noStatus } });
    await told(world, "/vm list", /2 UNREADABLE/);
    world.compute.clear();
    await told(world, "/vm list", /1 ERROR, 2 STOPPED/);
    expect(world.ada.seesChannel("status").messages).toEqual([]);
  });

  it.each<[what: string, weather: Storm]>([
    ["an ID", { match: lists, spoils: { "train-7": noId } }],
    ["a name", { match: lists, spoils: { "train-7": noName } }],
  ])(
    "doesn't confirm the deletion of a project whose list has a VM without %s",
    async (_, weather) => {
      const sent = world.compute.writes().length;
      await broken(world, weather);
      await world.olivia.types("ops", "/project delete ml");
      const { modals } = await world.olivia.until((seen) =>
        JSON.stringify(seen.modals).includes("can't be read whole"),
      );
      expect(modals.filter(({ submit }) => submit !== "")).toEqual([]);
      expect(world.compute.writes()).toHaveLength(sent);
    },
  );

  it("doesn't let an approved deletion through while a VM is left out of the list", async () => {
    const sent = world.compute.writes().length;
    await world.client.set(world.key("lock", "project:prj-ml"), "r-somebody22");
    await world.olivia.types("ops", "/project delete ml");
    await world.olivia.until(({ modals }) =>
      modals.some(({ submit }) => submit === "Request approval"),
    );
    await world.olivia.submits(confirm);
    const card = await hears(world.amir, "ops", /Delete ml[^]*Waiting for approval/);
    world.compute.weather({ match: lists, spoils: { "train-7": noId } });
    await world.amir.presses("Approve", { in: card.ts });
    await world.client.del(world.key("lock", "project:prj-ml"));
    await hears(world.olivia, "ops", /list of the VMs of ml can't be read whole/);
    expect(world.compute.writes()).toHaveLength(sent);
    world.compute.clear();
    expect((await world.ended("project delete")).state).toBe("done");
  });

  it("doesn't conclude from a list with a record that can't be read that a project wasn't created", async () => {
    await using hasty = await startWorld({
      policy: policyWith({ timing: shortDeadlines.timing }),
      pace: shortDeadlines.pace,
    });
    await broken(hasty, { match: "POST /v1/projects", lost: "after" });
    const spoils = { fresh: { without: ["id", "name"] } };
    hasty.compute.weather({ match: "GET /v1/projects", spoils });
    await hasty.olivia.types(
      "ops",
      "/project create --name fresh --type CONTAINER --region eu-west-1",
    );
    await hasty.olivia.until(({ modals }) => modals.some(({ submit }) => submit === "Create"));
    await hasty.olivia.submits({});
    expect((await hasty.ended("project create")).state).toBe("unknown");
    expect(Object.values(hasty.compute.truth().projects).some(({ name }) => name === "fresh")).toBe(
      true,
    );
  });
});
