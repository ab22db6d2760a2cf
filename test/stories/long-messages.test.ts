import { describe, expect, it } from "vitest";
import { mostWeight, weightOf } from "../../sandbox/slack/blocks/check.ts";
import { alertmanagerBody, minute, send, startAlertWorld } from "../features/alerts/sending.ts";
import { startWorld, testPolicy, type TestWorld } from "../support/start-world.ts";
import { hears, wordsOf } from "./words.ts";
import { until } from "../support/until.ts";

const long = (name: string) =>
  `${name}-confidential-workload-of-a-team-with-a-long-name-in-europe-west`;

/** Four projects with 40 VMs each, all with long names. */
function prepare(compute: TestWorld["compute"]): void {
  for (let project = 1; project <= 4; project += 1) {
    const name = `doomed-${project}`;
    compute.edit.addProject({ name });
    for (let vm = 1; vm <= 40; vm += 1)
      compute.edit.addVm({ project: name, name: long(`vm-${project}-${vm}`) });
  }
}

/** Olivia asks to delete all four projects; each waits for an approval. */
async function fourDeletionsWait(): Promise<TestWorld> {
  const world = await startWorld({ policy: testPolicy, receive: "http", prepare });
  for (let project = 1; project <= 4; project += 1) {
    const name = `doomed-${project}`;
    await world.olivia.types("ops", `/project delete ${name}`);
    await world.olivia.until(({ modals }) =>
      modals.some(({ submit }) => submit === "Request approval"),
    );
    await world.olivia.submits({ [`Type ${name} to confirm`]: name, Reason: "over and done" });
    await hears(world.olivia, "ops", new RegExp(`Delete ${name}[^]*Waiting for approval`));
  }
  return world;
}

describe("four deletions of projects with 40 VMs each, which wait", () => {
  it("are all in jobs and approvals, in a direct message too, whose blocks Slack takes together", async () => {
    await using world = await fourDeletionsWait();
    for (const [words, head] of [
      ["jobs", /4 requests are open/],
      ["approvals", /4 requests wait for your approval/],
    ] as const) {
      await world.amir.types("gatehouse", words);
      const said = await hears(world.amir, "gatehouse", head);
      for (let project = 1; project <= 4; project += 1)
        expect(wordsOf(said), words).toContain(`doomed-${project}`);
      expect(wordsOf(said)).not.toMatch(/are shown|not shown|\/invite/);
      expect(wordsOf(said).match(/\[Approve\]/g)?.length).toBeGreaterThanOrEqual(1);
      expect(weightOf({ blocks: said.blocks })).toBeLessThanOrEqual(mostWeight);
    }
    // A vote from the list counts
    const list = await hears(world.amir, "gatehouse", /4 requests wait for your approval/);
    await world.amir.presses("Approve", { in: list.ts });
    await until(async () => (await world.store.openIds()).length).toBeLessThan(4);
    expect(world.slack.calls().filter(({ error }) => error === "msg_blocks_too_long")).toEqual([]);
  });
});

describe("120 alerts on 30 VMs", () => {
  it("are one card that Slack takes: some VMs with a menu, the others by name", async () => {
    await using world = await startAlertWorld({
      prepare(compute) {
        compute.edit.addProject({ name: "many" });
        for (let vm = 1; vm <= 30; vm += 1)
          compute.edit.addVm({ project: "many", name: long(`a-${vm}`) });
      },
    });
    const alerts = Array.from({ length: 120 }, (_, n) => ({
      name: `Alert${Math.floor(n / 30)}`,
      vm: long(`a-${(n % 30) + 1}`),
      summary: `${"Memory is nearly used up, and will be in minutes. ".repeat(6)}${n}`,
      startsAt: minute(0),
    }));
    expect((await send(world, "prometheus", alertmanagerBody(alerts))).status).toBe(202);
    const card = await hears(world.olivia, "ops", /120 alerts firing/);
    expect(wordsOf(card)).toMatch(/Also on a-\d+-[^]* and \d+ more\./);
    expect(weightOf({ blocks: card.blocks })).toBeLessThanOrEqual(mostWeight);
    expect(world.slack.calls().filter(({ error }) => error === "msg_blocks_too_long")).toEqual([]);
  });
});
