import { afterAll, describe, expect, it } from "vitest";
import { hears, wordsOf } from "../../stories/words.ts";
import type { SeenMessage } from "../../../sandbox/slack/seen.ts";
import { startWorld } from "../../support/start-world.ts";
import { until } from "../../support/until.ts";

const world = await startWorld({ pace: { inventoryRefreshMs: 300 } });
afterAll(() => world.close());

describe("/gatehouse digest", () => {
  it("posts one now, its buttons work, and a snoozed line stays hidden", async () => {
    await world.olivia.types("ops", "/vm restart web-2");
    await world.ended();
    await world.olivia.types("ops", "/gatehouse digest now");
    const digest = await hears(world.vera, "ops", /train-7 in ml (?:is|has been) in ERROR/);
    expect(wordsOf(digest)).toMatch(/✅ olivia restarted web-2 in \d+ s\./);
    expect(wordsOf(digest)).toContain("[chart: VMs by status: RUNNING 5, STOPPED 2, ERROR 1]");
    const line = (said: SeenMessage) =>
      said.blocks.find((block) => JSON.stringify(block).includes("*train-7*"))?.block_id ?? "";
    await world.vera.chooses(line(digest), "Show train-7", { in: digest.ts });
    await hears(world.vera, "ops", /train-7 is ERROR/);
    const snooze = "Snooze 4 h for everyone here";
    await world.vera.chooses(line(digest), snooze, { in: digest.ts });
    await hears(world.vera, "ops", /Only @oncall can/);
    await world.olivia.chooses(line(digest), snooze, { in: digest.ts });
    const told = await hears(world.olivia, "ops", /Snoozed for 4 h: digests in this channel omit/);
    // This ends the snooze of one line, not of all lines of the channel.
    await world.olivia.presses("Un-snooze", { in: told.ts });
    await hears(world.olivia, "ops", /shows that line again/);
    await world.olivia.chooses(line(digest), snooze, { in: digest.ts });
    await until(() => world.client.zcard(world.key("digest-snoozes", "C01OPS"))).toBe(1);
    await world.olivia.types("ops", "/gatehouse digest now");
    const next = await hears(world.vera, "ops", /1 line is snoozed here/);
    expect(wordsOf(next)).not.toContain("train-7");
    await world.olivia.presses("Un-snooze all", { in: next.ts });
    await hears(world.olivia, "ops", /shows every line again/);
    await world.vera.presses("The night", { in: next.ts });
    await hears(world.vera, "ops", /The night since[^]*✅ olivia restarted web-2 in \d+ s\./);
  });

  it("doesn't claim a snapshot that the service accepted without an ID", async () => {
    world.compute.weather({ match: "POST /v1/vms/*/snapshot*", times: 1, snapshot: "none" });
    await world.olivia.types("ops", "/vm snapshot web-2");
    await world.ended("vm snapshot");
    await world.olivia.types("ops", "/gatehouse digest now");
    const digest = await hears(world.vera, "ops", /Digest[^]*the snapshot of web-2/);
    expect(wordsOf(digest)).toMatch(
      /⚠️ olivia asked for the snapshot of web-2 as \S+: the compute service accepted it, and nothing more can be confirmed\./,
    );
    expect(wordsOf(digest)).not.toMatch(/took a snapshot/i);
  });

  it("is turned on and off per channel, for other channels by administrators", async () => {
    await world.olivia.types("ops", "/gatehouse digest on 9:00 Europe/Paris mon-fri");
    const on = await hears(world.olivia, "ops", /A digest is posted in/);
    expect(wordsOf(on)).toMatch(/at 9:00 AM \(Paris\), mon-fri\. Next: /);
    await world.olivia.types("ops", "/gatehouse digest on 07:30 C02STATUS");
    await hears(world.olivia, "ops", /Only an administrator can do that for another channel/);
    await world.olivia.types("ops", "/gatehouse digest off");
    await hears(world.olivia, "ops", /Digests for .* are turned off/);
    await world.olivia.types("ops", "/gatehouse digest now 09:00");
    await hears(world.olivia, "ops", /Only .on. takes a time, a time zone, or days/);
    await world.vera.types("ops", "/gatehouse digest");
    await hears(world.vera, "ops", /Only @oncall can run \/gatehouse digest/);
  });

  it("hands the shift over with a note, to one person until it is shared", async () => {
    await world.olivia.types("ops", "/gatehouse handover web-2 is being migrated, leave it");
    const told = await hears(world.olivia, "ops", /Handover/);
    expect(told.ephemeral).toBe(true);
    expect(wordsOf(told)).toMatch(/Running: nothing\./);
    expect(wordsOf(told)).toMatch(/train-7 in ml (?:is|has been) in ERROR/);
    await world.olivia.presses("Share in channel", { in: told.ts });
    const shared = await hears(
      world.vera,
      "ops",
      /From olivia: “web-2 is being migrated, leave it”/,
    );
    expect(shared.ephemeral).toBe(false);
  });

  it("says which part of the service could not be read", async () => {
    world.compute.weather({ match: "GET /v1/projects/prj-ml/vms", status: 503 });
    const unread = () => world.client.hget(world.key("inventory", "head"), "unread");
    await until(unread).toContain("ml");
    await world.olivia.types("ops", "/gatehouse digest now");
    const digest = await hears(world.vera, "ops", /could not be read/);
    world.compute.clear();
    expect(wordsOf(digest)).toMatch(
      /1 project could not be read: ml\. Their VMs are not counted\./,
    );
    expect(wordsOf(digest)).toContain(
      "6 VMs: 1 STOPPED, 5 RUNNING, and 2 whose state is not known.",
    );
  });
});

describe("a VM that changes without being asked to", () => {
  it("is reported in the alerts channel, unless Gatehouse changed it", async () => {
    await world.olivia.types("ops", "/vm stop web-2");
    await world.ended();
    const seen = async () =>
      Object.keys(await world.client.hgetall(world.key("seen-statuses"))).length;
    await until(seen).toBeGreaterThan(0);
    world.compute.edit.setStatus({ vm: "db-1", status: "ERROR" });
    const told = await hears(world.vera, "status", /db-1 in payments went to ERROR, was RUNNING/);
    expect(wordsOf(told)).toContain("[Show]");
    expect(world.vera.seesChannel("status").messages).toHaveLength(1);
  });
});
