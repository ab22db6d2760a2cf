import { describe, expect, it } from "vitest";
import { hears, wordsOf } from "../../stories/words.ts";
import { alertmanagerBody, send, startAlertWorld } from "../alerts/sending.ts";

describe("the digest of an eventful night", () => {
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
        /✅ ada restored db-1 from nightly in \d+ s 🚨 without approval \(break-glass\): “the index is corrupt”\. Another administrator or approver must sign the review\./,
      );
      expect(said).toMatch(
        /✅ olivia restored db-1 from nightly in \d+ s: “for the test”; approved by amir\./,
      );
      expect(said).toMatch(
        /❌ olivia asked for the deletion of staging \(“for the test”\), but amir denied it\./,
      );
      expect(said).toMatch(/🧊 ada froze all changes: “storage is failing”\./);
      expect(said).toMatch(/🧊 ada allowed changes again, which ended the freeze by ada/);
      expect(said).toMatch(/✅ HighCpu on web-2 ended \w{3} [^\n]*, says prometheus\./);
    }
    await ada.types("ops", "/gatehouse freeze again");
    await hears(ada, "ops", /ada froze all changes: again/);
    await olivia.types("ops", "/gatehouse digest now");
    await hears(world.vera, "ops", /🧊 ada froze all changes at .*: “again”\./);
  });
});
