import { describe, expect, it } from "vitest";
import { obstacleTo } from "../../../src/core/cards/offered-change.ts";
import { restart } from "../../../src/commands/vm/restart.ts";
import { stop } from "../../../src/commands/vm/stop.ts";
import { hears, wordsOf } from "../../stories/words.ts";
import { startWorld } from "../../support/start-world.ts";
import { vm } from "../permit/sample.ts";

const situation = {
  target: vm("web-1"),
  isFrozen: false,
  policy: { protect: [] },
};

describe("a change that is worth a button", () => {
  it("can work in the VM's status, isn't protected, wasn't refused for its ERROR, and isn't frozen", () => {
    expect(obstacleTo(stop, situation)).toBeUndefined();
    const inError = { ...situation, target: { ...vm("web-1"), status: "ERROR" } };
    expect(obstacleTo(stop, inError)).toBe("status");
    expect(obstacleTo(stop, { ...situation, policy: { protect: ["web-*"] } })).toBe("protected");
    expect(obstacleTo(restart, { ...inError, refused: new Set(["vm restart"]) })).toBe("refused");
    expect(obstacleTo(restart, { ...situation, isFrozen: true })).toBe("frozen");
  });

  it.each([
    ["offered", false],
    ["withheld during a freeze", true],
  ])("is %s by a VM's card and its chart alike", async (_, isFrozen) => {
    await using world = await startWorld();
    if (isFrozen) await world.store.freeze({ by: "ada", reason: "storage is failing" });
    const typed = [
      ["/vm show train-7", /train-7 is ERROR[^]*Project/],
      ["/vm metrics train-7", /CPU and memory of train-7/],
    ] as const;
    for (const [words, answer] of typed) {
      await world.olivia.types("ops", words);
      const told = wordsOf(await hears(world.olivia, "ops", answer));
      expect(told.includes("[Restart]"), words).toBe(!isFrozen);
    }
  });
});
