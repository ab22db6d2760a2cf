import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { PersonActions } from "../../sandbox/slack/actions.ts";
import { addPerson } from "../../sandbox/slack/state/people.ts";
import { seedDemo } from "../../sandbox/slack/state/seed.ts";
import { startWorld, testPolicy, type TestWorld } from "../support/start-world.ts";
import { hears, wordsOf } from "./words.ts";
import { until } from "../support/until.ts";

const ours = "T01CONF";
const policy = `${testPolicy}confirm: ["db-1"]\napprovals: [{ operations: ["vm.snapshot"], required: 1, expires: 1m }]\n`;

let world: TestWorld;
const persons: Record<string, PersonActions> = {};

beforeAll(async () => {
  world = await startWorld({
    policy,
    slack: {
      seed(workspace) {
        seedDemo(workspace);
        workspace.team.enterpriseId = "E01CORP";
        const people = {
          // Wanda's first workspace is another one, and she is a member of ours
          wanda: {
            teamId: "T02PARENT",
            enterprise: { id: "E01CORP", teamIds: ["T02PARENT", ours] },
          },
          // In our organization, but not in our workspace
          nils: { teamId: "T02PARENT", enterprise: { id: "E01CORP", teamIds: ["T02PARENT"] } },
          // Another organization, whatever it says of its workspaces
          otto: {
            teamId: "T99FOREIGN",
            enterprise: { id: "E99OTHER", teamIds: ["T99FOREIGN", ours] },
          },
        };
        for (const [name, more] of Object.entries(people)) {
          const { id } = addPerson(workspace, { id: `U0${name.toUpperCase()}`, name, ...more });
          workspace.groups.get("S01ONCALL")?.userIds.push(id);
          workspace.groups.get("S02LEADS")?.userIds.push(id);
          workspace.channels.get("C01OPS")?.memberIds.add(id);
        }
      },
    },
  });
  for (const name of ["wanda", "nils", "otto"]) persons[name] = world.slack.person(name);
});
afterAll(() => world.close());

const person = (name: string): PersonActions => {
  const found = persons[name];
  if (!found) throw new Error(`nobody is called ${name}`);
  return found;
};

describe("someone whose first workspace is another one of the same Enterprise Grid", () => {
  it("runs a command, presses its buttons, and submits its form", async () => {
    const wanda = person("wanda");
    await wanda.types("ops", "/vm show web-2");
    const card = await hears(wanda, "ops", /web-2 is RUNNING/);
    await wanda.presses("Restart", { in: card.ts });
    expect(await world.ended("vm restart")).toMatchObject({
      state: "done",
      record: { requester: { id: "U0WANDA", teamId: ours } },
    });
    await wanda.types("ops", "/vm restart db-1");
    await wanda.until(({ modals }) => modals.at(-1)?.submit === "Restart");
    await wanda.submits({});
    await until(async () => (await world.ended("vm restart")).record.target.name).toBe("db-1");
    expect((await world.ended("vm restart")).state).toBe("done");
  });

  it("is answered in a mention and in a direct message, and sees the Home tab", async () => {
    const wanda = person("wanda");
    await wanda.types("ops", "@gatehouse vm show db-1");
    await hears(wanda, "ops", /db-1 is RUNNING/);
    await wanda.types("@gatehouse", "vm show worker-1");
    const direct = () => wanda.sees().channels.flatMap(({ messages }) => messages.map(wordsOf));
    await until(() => direct().join("\n")).toContain("worker-1 is STOPPED");
    await wanda.opensHome();
    const home = () => JSON.stringify(wanda.sees().home?.blocks ?? []);
    await until(home).toContain("Waiting for you");
  });

  it("votes, and counts when the request is sent", async () => {
    await world.olivia.types("ops", "/vm snapshot web-2 grid");
    const card = await hears(person("wanda"), "ops", /napshot[^]*web-2[^]*Waiting for approval/);
    await person("wanda").presses("Approve", { in: card.ts });
    expect(await world.ended("vm snapshot")).toMatchObject({ votes: [{ voterId: "U0WANDA" }] });
  });
});

describe("someone who isn't a member of our workspace", () => {
  it.each(["nils", "otto"])("is refused everywhere: %s", async (name) => {
    const writes = world.compute.writes().length;
    const stranger = person(name);
    await world.olivia.types("ops", `/vm snapshot db-1 ${name}`);
    await stranger.types("ops", "/vm restart web-2");
    await stranger.types("ops", "@gatehouse vm show web-2");
    await stranger.types("@gatehouse", "vm show web-2");
    await stranger.opensHome();
    const refusals = () =>
      JSON.stringify(stranger.sees()).split("only for members of this workspace");
    await until(() => refusals().length).toBeGreaterThan(name === "nils" ? 3 : 2);
    const card = await hears(world.olivia, "ops", new RegExp(`${name}[^]*Waiting for approval`));
    await stranger.presses("Approve", { in: card.ts });
    await hears(stranger, "ops", /Only full members of this workspace can approve/);
    const [waiting] = await world.store.getMany(await world.store.openIds());
    expect(waiting?.votes).toEqual([]);
    expect(world.compute.writes()).toHaveLength(writes);
  });
});
