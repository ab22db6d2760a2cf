import { describe, expect, it } from "vitest";
import { startReading } from "../../commands/reading.ts";
import { shownText } from "../../commands/shown-text.ts";

describe("/gatehouse freeze and thaw", () => {
  it("say what applies from now on", async () => {
    await using at = await startReading({ world: "empty" });
    expect(shownText(await at.reads("gatehouse freeze storage is failing"))).toBe(
      "🧊 All changes are frozen. Reads still work. `/gatehouse thaw` ends the freeze.",
    );
    expect(shownText(await at.reads("gatehouse freeze"))).toBe(
      "🧊 Changes are already frozen; the first reason remains. `/gatehouse status` shows it.",
    );
    expect(shownText(await at.reads("gatehouse thaw"))).toBe(
      "Changes are allowed again. What was requested during the freeze won't run on its own; request again.",
    );
    expect(at.told).toEqual([
      "busy: Changes are allowed again: U0VERA ended the freeze. Requests that it canceled have Request again on their messages.",
    ]);
    expect(shownText(await at.reads("gatehouse thaw"))).toBe("Changes were not frozen.");
    expect(at.told).toHaveLength(1);
  });

  it("show the reason as it was written", async () => {
    await using at = await startReading({ world: "empty" });
    for (const [words, reason] of [
      ["disks fail, it's the “raid siren”", `disks fail, it's the "raid siren"`],
      ["'disks fail'", "disks fail"],
    ]) {
      await at.reads(`gatehouse freeze ${words}`);
      expect(await at.journal.freezeState()).toMatchObject({ reason, by: "U0VERA" });
      await at.reads("gatehouse thaw");
    }
  });
});
