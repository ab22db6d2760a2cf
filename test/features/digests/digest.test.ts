import { describe, expect, it } from "vitest";
import { hears, wordsOf } from "../../stories/words.ts";
import type { SeenMessage } from "../../../sandbox/slack/seen.ts";
import { alertmanagerBody, send, startAlertWorld } from "../alerts/sending.ts";
import { startWorld } from "../../support/start-world.ts";
import { until } from "../../support/until.ts";

describe("/gatehouse digest", () => {
  it("posts one now, its buttons work, and a snoozed line stays hidden", async () => {
    await using world = await startWorld();
    await world.olivia.types("ops", "/vm restart web-2");
    await world.ended();
    await world.olivia.types("ops", "/gatehouse digest now");
    const digest = await hears(world.vera, "ops", /train-7 in ml is in ERROR/);
    expect(wordsOf(digest)).toMatch(/Restarted web-2 · olivia/);
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
    await world.vera.presses("Details", { in: next.ts });
    await hears(world.vera, "ops", /1 change, newest first[^]*· Restarted web-2 · olivia/);
  });

  it("doesn't claim a snapshot that the service accepted without an ID", async () => {
    await using world = await startWorld();
    world.compute.weather({ match: "POST /v1/vms/*/snapshot*", snapshot: "none" });
    await world.olivia.types("ops", "/vm snapshot web-2");
    await world.ended();
    await world.olivia.types("ops", "/gatehouse digest now");
    const digest = await hears(world.vera, "ops", /train-7 in ml is in ERROR/);
    expect(wordsOf(digest)).toMatch(/Snapshot accepted, not confirmed: web-2 · olivia/);
    expect(wordsOf(digest)).not.toContain("Took");
  });

  it("is turned on and off per channel, for other channels by administrators", async () => {
    await using world = await startWorld();
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
    await using world = await startWorld();
    await world.olivia.types("ops", "/gatehouse handover web-2 is being migrated, leave it");
    const told = await hears(world.olivia, "ops", /Handover/);
    expect(told.ephemeral).toBe(true);
    expect(wordsOf(told)).toMatch(/Running: nothing\./);
    expect(wordsOf(told)).toContain("train-7 in ml is in ERROR");
    await world.olivia.presses("Share in channel", { in: told.ts });
    const shared = await hears(
      world.vera,
      "ops",
      /From olivia: “web-2 is being migrated, leave it”/,
    );
    expect(shared.ephemeral).toBe(false);
  });

  it("has a line for each fact that the person in charge must know, with who and since when, in a handover too", async () => {
    await using world = await startAlertWorld();
    const { olivia, amir, ada } = world;
    await olivia.types("ops", "/vm snapshot db-1 nightly");
    await world.ended("vm snapshot");
    await ada.types("ops", '/vm restore db-1 nightly --break-glass "the index is corrupt"');
    await ada.until(({ modals }) => modals.some(({ title }) => title.startsWith("Break-glass")));
    await ada.submits({ "Type db-1 to confirm": "db-1" });
    await world.settled();
    for (const [words, target, verdict] of [
      ["/vm restore db-1 nightly", "db-1", "Approve"],
      ["/project delete staging", "staging", "Deny"],
    ] as const) {
      await olivia.types("ops", words);
      await olivia.until(({ modals }) =>
        modals.some(({ submit }) => submit === "Request approval"),
      );
      await olivia.submits({ [`Type ${target} to confirm`]: target, Reason: "for the test" });
      const card = await hears(amir, "ops", new RegExp(`${target}[^]*\\[${verdict}\\]`));
      await amir.presses(verdict, { in: card.ts });
      await world.settled();
    }
    await ada.types("ops", "/gatehouse freeze storage is failing");
    await hears(ada, "ops", /froze all changes/);
    await ada.types("ops", "/gatehouse thaw");
    await hears(ada, "ops", /ended the freeze/);
    await send(world, "prometheus", alertmanagerBody([{}]));
    await hears(olivia, "ops", /🔥 HighCpu on web-2/);
    await send(
      world,
      "prometheus",
      alertmanagerBody([{ status: "resolved", endsAt: new Date().toISOString() }]),
    );
    await hears(olivia, "ops", /✅ HighCpu on web-2 ended/);
    await olivia.types("ops", "/gatehouse digest now");
    const digest = wordsOf(await hears(world.vera, "ops", /1 review to sign|must sign the review/));
    await olivia.types("ops", "/gatehouse handover");
    const handover = wordsOf(await hears(olivia, "ops", /Handover/));
    for (const said of [digest, handover]) {
      expect(said).toMatch(
        /🚨 vm restore db-1 ran without approval .*, requested by ada: “the index is corrupt”\. Outcome: done\. Another administrator or approver must sign the review\./,
      );
      expect(said).toMatch(/✏️ Restored db-1 from nightly · olivia, .*; approved by amir\./);
      expect(said).toMatch(/⛔ project delete staging, requested by olivia: amir denied it \w{3} /);
      expect(said).toMatch(/🧊 ada froze all changes \w{3} .*: “storage is failing”\./);
      expect(said).toMatch(/🧊 ada allowed changes again \w{3} /);
      expect(said).toMatch(/✅ HighCpu on web-2 in payments ended .*; it had fired since /);
    }
    await ada.types("ops", "/gatehouse freeze again");
    await hears(ada, "ops", /ada froze all changes: again/);
    await olivia.types("ops", "/gatehouse digest now");
    await hears(world.vera, "ops", /🧊 All changes are frozen by ada since .*: “again”\./);
  });

  it("says which part of the service could not be read", async () => {
    await using world = await startWorld({
      pace: { inventoryRefreshMs: 300 },
    });
    world.compute.weather({ match: "GET /v1/projects/prj-ml/vms", status: 503 });
    const unread = () => world.client.hget(world.key("inventory", "head"), "unread");
    while (!(await unread())?.includes("ml"))
      await new Promise((resolve) => setTimeout(resolve, 20));
    await world.olivia.types("ops", "/gatehouse digest now");
    const digest = await hears(world.vera, "ops", /could not be read/);
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
    await using world = await startWorld({
      pace: { inventoryRefreshMs: 200 },
    });
    await world.olivia.types("ops", "/vm stop web-2");
    await world.ended();
    const seen = async () =>
      Object.keys(await world.client.hgetall(world.key("seen-statuses"))).length;
    while ((await seen()) === 0) await new Promise((resolve) => setTimeout(resolve, 20));
    world.compute.edit.setStatus({ vm: "db-1", status: "ERROR" });
    const told = await hears(world.vera, "status", /db-1 in payments went to ERROR, was RUNNING/);
    expect(wordsOf(told)).toContain("[Show]");
    expect(world.vera.seesChannel("status").messages).toHaveLength(1);
  });
});
