import { describe, expect, it } from "vitest";
import type { SeenMessage } from "../../sandbox/slack/seen.ts";
import { policyWith, startWorld } from "../support/start-world.ts";
import { hears, wordsOf } from "./words.ts";

/** Vera sees what payments has, and may change nothing anywhere. */
const policy = policyWith(
  { view: ["S01ONCALL", "U0ADA"] },
  `teams:
  payments: { projects: [payments], view: [U0VERA], operate: [U0OLIVIA], approve: [S02LEADS], channel: C01OPS }
`,
);

describe("a refusal in a workspace with teams", () => {
  it("names the rule that would help where the name was looked up, and none where it wasn't, typed, mentioned, or pressed", async () => {
    await using world = await startWorld({ policy });
    const { vera, olivia } = world;
    const none =
      /You can't run \/vm restart: gatehouse\.yml lists you under operate for no team, and not under access\./;
    const said: string[] = [];
    // Whose ID it is, Gatehouse may learn meanwhile
    const noted = (message: SeenMessage, name: string) =>
      said.push(wordsOf(message).replaceAll(name, "NAME").replace("U0ADA", "ada"));
    // A VM of the team, one of others, and none at all are answered alike
    for (const name of ["web-2", "train-7", "no-such-vm"]) {
      await vera.types("ops", `/vm restart ${name}`);
      noted(await hears(vera, "ops", none), name);
      await vera.types("ops", `@gatehouse restart ${name}`);
      noted(await hears(vera, "ops", none), name);
    }
    expect(new Set(said)).toEqual(new Set([said[0]]));
    expect(said[0]).not.toMatch(/access\.operate|teams\.\w+\.operate/);
    await olivia.types("ops", "/vm show web-2");
    const shown = await hears(olivia, "ops", /web-2 is RUNNING/);
    await olivia.presses("Share in channel", { in: shown.ts });
    const shared = await hears(vera, "ops", /web-2 is RUNNING[^]*Shared by olivia/);
    await vera.presses("Stop", { in: shared.ts });
    await hears(
      vera,
      "ops",
      /You can't run \/vm stop: gatehouse\.yml lists you under operate for no team/,
    );

    // What she sees may be looked up for her, and then its team's list is the one that counts
    await vera.types("ops", "/gatehouse can-i vm restart web-2");
    const canI = wordsOf(await hears(vera, "ops", /^No: .*teams\.payments\.operate/));
    expect(canI).toContain("The rule is teams.payments.operate.");
    await vera.types("ops", "/gatehouse can-i vm restart train-7");
    await hears(vera, "ops", /There is no VM called train-7\./);
    expect(world.compute.writes()).toEqual([]);
  });
});
