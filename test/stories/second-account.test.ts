import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { whyOf } from "../../src/core/request/stage.ts";
import { addPerson } from "../../sandbox/slack/state/people.ts";
import { auditOf } from "../core/asking.ts";
import { startWorld, testPolicy, type TestWorld } from "../support/start-world.ts";
import { hears } from "./words.ts";

const policy = `${testPolicy}approvals: [{ operations: ["vm.restart"], required: 2, expires: 1h }]\n`;

let world: TestWorld;
beforeAll(async () => {
  world = await startWorld({ policy });
  const { workspace } = world.slack;
  addPerson(workspace, {
    id: "U0OLIVIA2",
    name: "olivia2",
    email: "Olivia+x@Confidential.example",
  });
  addPerson(workspace, { id: "U0AMIR2", name: "amir2", email: "amir@confidential.example" });
});
afterAll(() => world.close());

async function asksToRestart(vm: string) {
  await world.olivia.types("ops", `/vm restart ${vm}`);
  return hears(world.olivia, "ops", new RegExp(`Restart ${vm}[^]*Waiting for approval`));
}

async function newest() {
  const [request] = await world.store.getMany(await world.store.openIds());
  return request;
}

describe("a second account of the same person, where Slack names e-mail addresses (X1)", () => {
  it("isn't counted by the gate when both pressed at the same moment", async () => {
    const { workspace, edit } = world.slack;
    await edit.setGroupMembers("leads", ["amir", "amir2"]);
    const lock = world.key("lock", "vm:vm-payments-web-2");
    await world.client.set(lock, "r-somebody22");
    const card = await asksToRestart("web-2");
    for (const who of ["amir", "amir2"])
      await world.slack.person(who).presses("Approve", { in: card.ts });
    await hears(world.amir, "ops", /2 of 2|Approved/i);
    // What two presses at once look like to the gate: both are in the journal
    workspace.app.scopes.push("users:read.email");
    await edit.setGroupMembers("leads", ["amir", "amir2"]);
    await world.client.del(lock);
    const ended = await world.ended();
    expect(ended).toMatchObject({ state: "cancelled" });
    expect(whyOf(ended.stage)).toBe("1 of 2 approvals are still valid");
    expect(world.compute.writes()).toEqual([]);
  });

  it("neither approves what the first one requested, nor counts twice", async () => {
    const { edit } = world.slack;
    await edit.setGroupMembers("leads", ["amir", "amir2", "olivia2", "ada"]);
    const card = await asksToRestart("db-1");
    const asks = (who: string) => world.slack.person(who).presses("Approve", { in: card.ts });
    await asks("olivia2");
    await hears(world.slack.person("olivia2"), "ops", /with your e-mail address requested this/);
    await asks("amir");
    await hears(world.amir, "ops", /One more person must approve: (amir2 or )?ada can/);
    await asks("amir2");
    await hears(world.slack.person("amir2"), "ops", /each person counts once/);
    expect((await newest())?.votes).toMatchObject([{ voterId: "U0AMIR" }]);
    expect(world.compute.writes()).toEqual([]);
    const noted = (await auditOf(world.client, world.key("audit"))).filter(
      ({ what }) => what === "vote-refused",
    );
    expect(noted.map(({ why }) => why)).toEqual(["own-account", "voted-before"]);
    await asks("ada");
    expect((await world.ended()).state).toBe("done");
  });
});
