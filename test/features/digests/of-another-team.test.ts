import { expect, it } from "vitest";
import type { SeenMessage } from "../../../sandbox/slack/seen.ts";
import { hears, wordsOf } from "../../stories/words.ts";
import { startWorld, testTiming } from "../../support/start-world.ts";

/** Olivia operates what no team has, and Amir what the team of #status has. */
const policy = `access: { view: [], operate: ["U0OLIVIA"] }
teams:
  pay: { projects: ["payments"], operate: ["U0AMIR"], channel: C02STATUS }
${testTiming}
`;

it("what a team has is told in its channel as those decide who see it, in digests, subscriptions, and snoozes alike", async () => {
  await using world = await startWorld({ policy });
  await world.amir.types("status", "/gatehouse digest on 09:00 UTC");
  await hears(world.amir, "status", /A digest is posted in/);
  const no = /You can't run \/gatehouse \w+ here: you can't see everything/;
  for (const words of ["digest off", "digest on 10:00", "digest now", "digest", "subscribe *"]) {
    await world.olivia.types("status", `/gatehouse ${words}`);
    const command = words.split(" ")[0] ?? "";
    await hears(world.olivia, "status", new RegExp(`You can't run /gatehouse ${command} here`));
  }
  expect(await world.client.hlen(world.key("digest-schedules"))).toBe(1);
  world.compute.edit.findVm("web-2").status = "ERROR";
  await world.amir.types("status", "/gatehouse digest now");
  const digest = await hears(world.amir, "status", /web-2 in payments (?:is|has been) in ERROR/);
  const line = (said: SeenMessage) =>
    said.blocks.find((block) => JSON.stringify(block).includes("*web-2*"))?.block_id ?? "";
  await world.olivia.chooses(line(digest), "Snooze 4 h for everyone here", { in: digest.ts });
  await hears(world.olivia, "status", no);
  expect(await world.client.zcard(world.key("digest-snoozes", "C02STATUS"))).toBe(0);
  // A hand-over shows each what they see
  await world.olivia.types("status", "/gatehouse digest handover");
  expect(wordsOf(await hears(world.olivia, "status", /Handover/))).not.toContain("web-2");
});

it("a team's channel reads of its own VMs in digest and handover", async () => {
  await using world = await startWorld({ policy, pace: { inventoryRefreshMs: 300 } });
  const { amir } = world;
  world.compute.edit.setStatus({ vm: "vm-payments-web-1", status: "ERROR" });
  await hears(amir, "status", /web-1 in payments went to ERROR/);
  await amir.types("status", "/gatehouse digest now");
  const digest = await hears(amir, "status", /VMs?: .*ERROR/);
  expect(wordsOf(digest)).toMatch(/web-1 in payments (?:is|has been) in ERROR[^]*3 VMs: /);
  await amir.types("status", "/gatehouse digest handover");
  await hears(amir, "status", /Handover[^]*web-1 in payments/);
});
