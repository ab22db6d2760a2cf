import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { describeSeen } from "../../sandbox/slack/describe-seen.ts";
import { seedLedger } from "../../sandbox/compute/seed.ts";
import type { PersonActions } from "../../sandbox/slack/actions.ts";
import { fire, sources, startAlertWorld } from "../features/alerts/sending.ts";
import { testTiming, type TestWorld } from "../support/start-world.ts";
import { until } from "../support/until.ts";
import { hears, wordsOf } from "./words.ts";
import { isOffered } from "../support/is-offered.ts";

const digest = "/gatehouse digest";

/** Olivia's team has the VM with its past; Amir's team gets it. */
const policy = `access: { view: [], operate: [], administer: ["U0ADA"] }
alerts: { channel: C03AUDIT }
teams:
  pay: { projects: [ledger], operate: [U0OLIVIA], approve: [U0VERA], channel: C01OPS }
  lab: { projects: [ml], operate: [U0AMIR, U0ADA], approve: [U0AMIR], channel: C02STATUS }
approvals: [{ operations: ["vm.stop"], required: 1 }, { operations: ["gatehouse.*"], required: 1 }]
attestation: { endorsements: endorsements }
${sources}${testTiming}
`;

/** What only Olivia's team saw. */
const past = /HighCpu|olivia|DiskFull/;

let world: TestWorld;
beforeAll(async () => {
  world = await startAlertWorld({
    policy,
    pace: { inventoryRefreshMs: 300, remedyMs: 3_000 },
    prepare: ({ edit }) => seedLedger(edit),
  });
});
afterAll(() => world.close());

/** The newest answer to these words that matches, and nothing older. */
async function answerTo(person: PersonActions, channel: string, text: string, words: RegExp) {
  const before = person.seesChannel(channel).messages.length;
  const find = () =>
    person
      .seesChannel(channel)
      .messages.slice(before)
      .map(wordsOf)
      .findLast((one) => words.test(one));
  await person.types(channel, text);
  await person.until(() => find() !== undefined);
  return find() ?? "";
}

async function homeOf(person: PersonActions): Promise<string> {
  await person.opensHome();
  await person.until((seen) => describeSeen(seen).includes("Your recent requests"));
  return describeSeen(person.sees()).split("Home")[1]?.split("Your recent requests")[0] ?? "";
}

describe("a VM that moved to another team's project", () => {
  it("leaves its requests, alerts, pins, and advice with those who saw them", async () => {
    const { olivia, vera, amir, ada } = world;
    const vm = world.compute.edit.findVm("ledger-2");
    await until(() => world.client.hlen(world.key("seen-statuses"))).toBeGreaterThan(2);
    world.compute.edit.setStatus({ vm: vm.id, status: "ERROR" });
    await hears(olivia, "ops", /ledger-2 in ledger went to ERROR/);
    world.compute.edit.setStatus({ vm: vm.id, status: "RUNNING" });
    await fire(world, [{ vm: "ledger-2" }], { source: "by-team" });
    await hears(olivia, "ops", /HighCpu on ledger-2/);
    await olivia.types("ops", "/gatehouse pins propose ledger-2 image 4.3 is out");
    const asking = await hears(vera, "ops", /Pin ledger-2[^]*Approve/);
    await vera.presses("Approve", { in: asking.ts });
    await world.ended("gatehouse pins propose");
    await olivia.types("ops", "/vm restart ledger-2");
    await world.ended("vm restart");

    world.compute.edit.moveVm({ vm: vm.id, project: "ml" });
    await until(() => answerTo(amir, "status", "/vm show ledger-2", /ledger-2/)).toMatch(
      /ledger-2 is RUNNING/,
    );

    // The new team
    for (const [text, words] of [
      ["/gatehouse why ledger-2", /ledger-2/],
      ["/gatehouse night", /since/],
      [`${digest} handover`, /Handover/],
      [`${digest} now`, /Digest/],
      ["/gatehouse pins", /pin/i],
      ["/gatehouse jobs", /requests/],
      ["/vm show ledger-2", /ledger-2/],
    ] as const) {
      if (text.startsWith(digest) && !isOffered("gatehouse digest")) continue;
      const told = await answerTo(amir, "status", text, words);
      expect(told, text).not.toMatch(past);
      expect(told, text).not.toMatch(/went to ERROR|image 4\.3/);
    }
    expect(await homeOf(amir)).not.toMatch(past);
    // A new alert of the same kind
    await fire(world, [{ vm: "ledger-2" }], { source: "by-team", groupKey: "later" });
    const card = wordsOf(await hears(amir, "status", /HighCpu on ledger-2/));
    expect(card).not.toMatch(/olivia|restart didn't help|Last change/);
    // Ada sees everything, but what she asks for is decided by the new team
    await ada.types("status", "/vm stop ledger-2");
    const asked = wordsOf(await hears(amir, "status", /Stop ledger-2[^]*Waiting for approval/));
    expect(asked).not.toMatch(/olivia|Earlier request/);

    // Those who saw it
    const night = await answerTo(olivia, "ops", "/gatehouse night", /The night since/);
    expect(night).toMatch(/🔥 HighCpu on ledger-2 fires/);
    expect(night).toMatch(/olivia restarted ledger-2/);
    expect(night).toMatch(/ledger-2 went to ERROR/);
    if (isOffered("gatehouse digest"))
      expect(await answerTo(olivia, "ops", `${digest} handover`, /Handover/)).toMatch(
        /🔥 HighCpu has been firing on ledger-2/,
      );
    expect(await answerTo(olivia, "ops", "/gatehouse pins", /pin/i)).toContain("ledger-2");
    expect(await homeOf(olivia)).toMatch(/HighCpu/);
    const ours = wordsOf(await hears(olivia, "ops", /HighCpu on ledger-2/));
    expect(ours).not.toContain(" in ml");
  });

  it("tells the new team of no alert that only the former team heard of, also after a change of its own", async () => {
    const { olivia, amir } = world;
    const vm = world.compute.edit.findVm("ledger-3");
    await fire(world, [{ vm: "ledger-3", name: "DiskFull" }], { source: "by-team", groupKey: "d" });
    await hears(olivia, "ops", /DiskFull on ledger-3/);
    world.compute.edit.moveVm({ vm: vm.id, project: "ml" });
    await until(() => answerTo(amir, "status", "/vm show ledger-3", /ledger-3/)).toMatch(
      /ledger-3 is RUNNING/,
    );
    await amir.types("status", "/vm restart ledger-3");
    const result = await hears(amir, "status", /<@U0AMIR>[^]*ledger-3[^]*RUNNING/);
    expect(`${wordsOf(result)} ${result.text}`).not.toMatch(past);
    expect(await answerTo(amir, "status", "/gatehouse why ledger-3", /amir restarted/)).not.toMatch(
      past,
    );
  });

  it("tells the former team nothing of what the new team does, also where its alert goes on", async () => {
    const { olivia, amir } = world;
    const vm = world.compute.edit.findVm("ledger-1");
    const about = { source: "by-team", groupKey: "l" };
    const startsAt = new Date(Date.now() - 60_000).toISOString();
    await fire(world, [{ vm: "ledger-1", name: "Lagging", startsAt }], about);
    await hears(olivia, "ops", /Lagging on ledger-1/);
    world.compute.edit.moveVm({ vm: vm.id, project: "ml" });
    await until(() => answerTo(amir, "status", "/vm show ledger-1", /ledger-1/)).toMatch(
      /ledger-1 is RUNNING/,
    );
    await amir.types("status", "/vm restart ledger-1");
    await hears(amir, "status", /<@U0AMIR>[^]*ledger-1[^]*RUNNING/);
    // What olivia does later is judged later
    await fire(world, [{ vm: "ledger-4", name: "Lagging", startsAt }], {
      ...about,
      groupKey: "later than l",
    });
    await hears(olivia, "ops", /Lagging on ledger-4/);
    await olivia.types("ops", "/vm restart ledger-4");
    await hears(olivia, "ops", /Lagging on ledger-4 still fires, /);
    const told = olivia.seesChannel("ops").messages.map((message) => JSON.stringify(message));
    expect(told.filter((words) => words.includes("Lagging")).join("\n")).not.toMatch(/amir/i);
  });
});
