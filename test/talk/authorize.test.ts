import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { pressPayload } from "../stories/forge.ts";
import { hears, wordsOf } from "../stories/words.ts";
import { type FuzzWorld, startFuzzWorld } from "../fuzz/fuzz-world.ts";
import { createTally } from "../fuzz/fuzzed.ts";

let world: FuzzWorld;
beforeAll(async () => {
  world = await startFuzzWorld(createTally(), {
    approved: ["project.delete"],
    mayDeliveriesFail: false,
  });
});
afterAll(() => world.close());

/** The refusals of a person in the audit trail, oldest first. */
async function refusals(who: string): Promise<unknown[]> {
  const trail = await world.audit();
  return trail
    .filter((one) => one["what"] === "refusal" && one["who"] === who)
    .map(({ command, rule }) => `${String(command)}: ${String(rule)}`);
}

describe("rights", () => {
  it("are checked once for a press that asks again, as for typed words: one refusal, one record", async () => {
    const olivia = world.slack.person("olivia");
    world.compute.weather({ match: "POST /v1/vms/vm-payments-web-2/stop", status: 422 });
    await olivia.types("ops", "/vm stop web-2");
    const failed = await world.until(({ final }) => final);
    expect(failed.state).toBe("rejected");
    const card = await hears(olivia, "ops", /Try again/);
    const press = { action: "request:retry", value: JSON.stringify({ request: failed.record.id }) };
    await world.post(pressPayload(world, "vera", card, press));
    await world.idle();
    const vera = world.slack.person("vera");
    await hears(vera, "ops", /Only \S+ can stop web-2/);
    expect(await refusals("U0VERA")).toEqual(["vm stop: access.operate"]);
    expect((await world.requests()).length).toBe(1);

    world.compute.clear();
    await world.post(pressPayload(world, "olivia", card, press));
    await world.until(({ state }) => state === "done");
    expect(await refusals("U0OLIVIA")).toEqual([]);
  });

  it("are checked before names are looked up: a stranger learns none", async () => {
    const vera = world.slack.person("vera");
    await vera.types("ops", "/vm start web-1");
    await world.idle();
    const shown = vera.seesChannel("ops").messages.map(wordsOf).join("\n");
    expect(shown).toMatch(/Only \S+ can start VMs/);
    expect(shown).not.toMatch(/Which one|wants it exact/);
    expect(await refusals("U0VERA")).toEqual([
      "vm stop: access.operate",
      "vm start: access.operate",
    ]);
  });

  it("are missing where a target is protected, and the audit trail names the rule", async () => {
    const olivia = world.slack.person("olivia");
    await olivia.types("ops", "/vm stop vault-1");
    await world.idle();
    expect(await refusals("U0OLIVIA")).toEqual(["vm stop: protect vault-*"]);
  });
});
