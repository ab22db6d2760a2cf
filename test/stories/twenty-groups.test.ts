import { describe, expect, it } from "vitest";
import type { Role } from "../../src/config/config.ts";
import { seedDemo } from "../../sandbox/slack/state/seed.ts";
import { addGroup } from "../../sandbox/slack/state/people.ts";
import { policyWith, startWorld } from "../support/start-world.ts";
import { hears } from "./words.ts";

const groups = Array.from({ length: 25 }, (_, n) => `S0GROUP${n}`);
const policy = policyWith(
  { operate: ["S01ONCALL", ...groups] },
  'approvals: [{ operations: ["vm.stop"], required: 1, expires: 1h }]\n',
);

/** A workspace with Slack's limits and with these groups, and the processes of a small installation. */
const startLarge = (roles: readonly Role[] = ["gateway", "gateway", "worker", "worker"]) =>
  startWorld({
    policy,
    roles,
    pace: { peopleCacheMs: 3_600_000 },
    slack: {
      rateLimits: "slack",
      seed(workspace) {
        seedDemo(workspace);
        for (const id of groups) addGroup(workspace, id, id.toLowerCase(), id, ["U0ADA"]);
      },
    },
  });

describe("a policy with 26 user groups", () => {
  it("lets everybody in whom it names, with a call or two for all processes", async () => {
    await using world = await startLarge();
    for (const person of [world.olivia, world.vera, world.amir]) {
      await person.types("ops", "/vm show db-1");
      await hears(person, "ops", /db-1 is RUNNING/);
    }
    await world.olivia.types("ops", "/vm restart web-2");
    expect((await world.ended("vm restart")).state).toBe("done");
    await world.olivia.types("ops", "/vm stop web-2");
    const card = await hears(world.amir, "ops", /Stop web-2[^]*Waiting for approval/);
    await world.amir.presses("Approve", { in: card.ts });
    expect((await world.ended("vm stop")).state).toBe("done");
    const calls = world.slack.calls().filter(({ method }) => method.startsWith("usergroups."));
    expect(calls.filter(({ ok }) => !ok)).toEqual([]);
    expect(calls.every(({ method }) => method === "usergroups.list")).toBe(true);
    expect(calls.length).toBeLessThan(8);
  });

  it("takes a right away at once, and from everyone when a group of it is disabled", async () => {
    // Where a change is reported it counts at once; other gateways look a few times a second
    await using world = await startLarge(["gateway", "worker"]);
    await world.olivia.types("ops", "/vm show db-1");
    await hears(world.olivia, "ops", /db-1 is RUNNING/);
    await world.slack.edit.setGroupMembers("oncall", ["vera"]);
    await world.olivia.types("ops", "/vm restart web-2");
    await hears(world.olivia, "ops", /Only .* can restart web-2/);
    await world.slack.edit.disableGroup("oncall");
    await world.vera.types("ops", "/vm restart web-2");
    await hears(world.vera, "ops", /Slack lists no active user group S01ONCALL/);
    expect(world.compute.writes()).toEqual([]);
  });
});
