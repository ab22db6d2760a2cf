import { describe, expect, it } from "vitest";
import { startReading } from "../../commands/reading.ts";
import { shownText } from "../../commands/shown-text.ts";
import { hears } from "../../stories/words.ts";
import { startWorld } from "../../support/start-world.ts";
import { until } from "../../support/until.ts";

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
      "Changes are allowed again: you ended the freeze by U0VERA (storage is failing). What was requested during the freeze won't run on its own; request again.",
    );
    expect(shownText(await at.reads("gatehouse thaw"))).toBe("Changes were not frozen.");
  });

  it.each([
    ["in 10 minutes", "in 10 minutes"],
    ["At 5pm, racks move", "At 5pm"],
    ["until Monday", "until Monday"],
  ])("freeze at once where the reason reads like a schedule: %s", async (reason, time) => {
    await using at = await startReading({ world: "empty" });
    expect(shownText(await at.reads(`gatehouse freeze ${reason}`))).toContain(
      `It began at once and lasts until someone ends it: Gatehouse schedules nothing, so “${time}” is only its reason.`,
    );
    expect(await at.journal.freezeState()).toMatchObject({ reason });
  });

  it("say the same when a gateway died and another one handles them again", async () => {
    await using at = await startReading({ world: "empty" });
    for (const words of ["gatehouse freeze storage is failing", "gatehouse thaw"]) {
      at.context.interaction = { id: words, at: Date.now() };
      const first = shownText(await at.reads(words));
      expect(first).toMatch(/All changes are frozen|Changes are allowed again/);
      expect(shownText(await at.reads(words))).toBe(first);
    }
    expect(await at.journal.freezeNews.owed()).toHaveLength(2);
  });

  it("say which freeze stands when it is newer than the thaw", async () => {
    await using at = await startReading({ world: "empty" });
    await at.journal.freeze({ by: "Gatehouse", cause: "sends-lost", reason: "Redis lost sends" });
    at.context.interaction = { id: "1", at: Date.now() - 60_000 };
    expect(shownText(await at.reads("gatehouse thaw"))).toBe(
      "🧊 Changes stay frozen, because the freeze by Gatehouse (Redis lost sends) is newer than your command. To end it, type `/gatehouse thaw` again.",
    );
    expect(await at.journal.freezeState()).toMatchObject({ by: "Gatehouse" });
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

  it("leave a freeze that began while a slow gateway had the thaw in hand, and are told once each", async () => {
    // On a slow machine one may be handled again
    const handled = new Set<string>();
    let held: PromiseWithResolvers<void> | undefined;
    await using world = await startWorld({
      async at(point, what) {
        if (point !== "ack") return;
        handled.add(what);
        await held?.promise;
      },
    });
    const { ada, store } = world;
    await ada.types("ops", "/gatehouse freeze a drill");
    await hears(ada, "audit", /ada froze all changes: a drill/);
    held = Promise.withResolvers();
    await ada.types("ops", "/gatehouse thaw");
    await until(() => handled.size).toBe(2);
    // The test's own journal wakes no process, as one that died right after it
    await store.freeze({ by: "Gatehouse", cause: "sends-lost", reason: "Redis lost sends" });
    held.resolve();
    held = undefined;
    await hears(
      ada,
      "ops",
      /Changes stay frozen, because the freeze by Gatehouse \(Redis lost sends; ada froze all changes before: a drill\) is newer/,
    );
    expect(await store.freezeState()).toMatchObject({ cause: "sends-lost" });
    await hears(ada, "audit", /Gatehouse froze all changes: Redis lost sends/);

    await ada.types("ops", "/gatehouse thaw");
    await hears(ada, "audit", /Changes are allowed again: ada ended the freeze by Gatehouse/);
    const again = { id: "U0ADA", name: "ada", act: [...handled].at(-1) };
    expect(await store.thaw(again)).toMatchObject({
      kind: "thawed",
      ended: { cause: "sends-lost" },
    });
    await world.settled();
    const news = ada
      .seesChannel("audit")
      .messages.filter(({ text }) => /froze all changes|allowed again/.test(text));
    expect(news).toHaveLength(3);
  });
});
