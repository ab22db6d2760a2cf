import { describe, expect, it } from "vitest";
import { startWorld } from "../support/start-world.ts";
import { seenUnderWay } from "../support/pass-time.ts";
import { hears, wordsOf } from "./words.ts";

describe("restarting a VM from Slack", () => {
  it("calls restart once, waits until the VM runs again, and tells the story in one card and one result", async () => {
    await using world = await startWorld();
    world.slack.forgetCalls();
    // It restarts until Gatehouse has seen and told it
    world.compute.weather({ match: "POST /v1/vms/*/restart", stuck: true, via: "REBOOTING" });
    const typed = await world.olivia.types("ops", "/vm restart web-2");
    expect(typed.acked).toBe(true);
    await seenUnderWay(world);
    await hears(world.olivia, "ops", /Restart/);
    world.compute.edit.setStatus({ vm: "vm-payments-web-2", status: "RUNNING" });
    const request = await world.ended();
    expect(request.state).toBe("done");
    expect(world.compute.writes()).toMatchObject([
      { method: "POST", path: "/v1/vms/vm-payments-web-2/restart" },
    ]);
    expect(world.slack.callCounts()["chat.postMessage"]).toBe(2);
    const [card, result] = world.olivia.seesChannel("ops").messages;
    for (const message of [card, result])
      expect(message?.text).toMatch(/^✅ Restarted web-2 in [^.]+\.$/);
    // The sentence is read once: below it stands the proof
    expect(card && wordsOf(card)).toMatch(
      /^✅ Restarted web-2 in [^.]+\.\nin payments · requested by olivia at [\d:]+ [AP]M UTC · r-/,
    );
    expect(result && wordsOf(result)).toMatch(
      /^✅ <@U0OLIVIA> web-2 runs again\. Sent [\d:]+ [AP]M UTC, REBOOTING seen [\d:]+ [AP]M UTC, RUNNING read [\d:]+ [AP]M UTC\./,
    );
    expect(world.olivia.mentions()).toHaveLength(1);
  });
});
