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
  it("names who may and the rule of the VM's team where the person sees the VM, and neither for other names, typed, mentioned, or pressed", async () => {
    await using world = await startWorld({ policy });
    const { vera, olivia } = world;
    const none = /You can't restart VMs: no team lists you for that\./;
    const said: string[] = [];
    // Whose ID it is, Gatehouse may learn meanwhile
    const noted = (message: SeenMessage, name: string) =>
      said.push(wordsOf(message).replaceAll(name, "NAME").replace("U0ADA", "ada"));
    // A VM that she doesn't see and none at all are answered alike
    for (const name of ["train-7", "no-such-vm"]) {
      await vera.types("ops", `/vm restart ${name}`);
      noted(await hears(vera, "ops", none), name);
      await vera.types("ops", `@gatehouse restart ${name}`);
      noted(await hears(vera, "ops", none), name);
    }
    expect(new Set(said)).toEqual(new Set([said[0]]));
    expect(said[0]).not.toMatch(/access\.operate|teams\.\w+\.operate|Only|\[/);
    const only = (verb: string) =>
      new RegExp(
        `Only olivia can ${verb} web-2 \\(payments\\)\\.[^]*Rule: teams\\.payments\\.operate in gatehouse\\.yml\\.`,
      );
    for (const words of ["/vm restart web-2", "@gatehouse resize web-2 --cpu 4 --memory 8"]) {
      await vera.types("ops", words);
      await hears(vera, "ops", only(words.includes("resize") ? "resize" : "restart"));
    }
    await olivia.types("ops", "/vm show web-2");
    const shown = await hears(olivia, "ops", /web-2 is RUNNING/);
    await olivia.presses("Share in channel", { in: shown.ts });
    const shared = await hears(vera, "ops", /web-2 is RUNNING[^]*Shared by olivia/);
    await vera.presses("Stop", { in: shared.ts });
    await hears(vera, "ops", only("stop"));

    await vera.types("ops", "/gatehouse can-i vm restart web-2");
    await hears(vera, "ops", new RegExp(`^No\\. ${only("restart").source}`));
    await vera.types("ops", "/gatehouse can-i vm restart train-7");
    await hears(vera, "ops", /There is no VM called train-7\./);
    expect(world.compute.writes()).toEqual([]);
  });
});
