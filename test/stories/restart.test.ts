import { describe, expect, it } from "vitest";
import { startWorld } from "../support/start-world.ts";
import { wordsOf } from "./words.ts";

describe("restarting a VM from Slack", () => {
  it("calls restart once, waits until the VM runs again, and tells the story in at most four calls", async () => {
    await using world = await startWorld();
    world.slack.forgetCalls();
    const typed = await world.olivia.types("ops", "/vm restart web-2");
    expect(typed.acked).toBe(true);
    const request = await world.ended();
    expect(request.state).toBe("done");
    expect(world.compute.writes()).toMatchObject([
      { method: "POST", path: "/v1/vms/vm-payments-web-2/restart" },
    ]);
    const { "chat.postMessage": posts, "chat.update": edits } = world.slack.callCounts();
    // Three, and one edit more where a busy machine is slow to settle it
    expect((posts ?? 0) + (edits ?? 0)).toBeLessThanOrEqual(4);
    const [card, result] = world.olivia.seesChannel("ops").messages;
    for (const message of [card, result])
      expect(message?.text).toMatch(/^✅ Restarted web-2 in \d+ s\.$/);
    // The sentence is read once: below it stands the proof
    expect(card && wordsOf(card)).toMatch(
      /^✅ Restarted web-2 in \d+ s\.\nin payments · requested by olivia at [\d:]+ [AP]M UTC · r-/,
    );
    expect(result && wordsOf(result)).toMatch(
      /^✅ <@U0OLIVIA> web-2 runs again\. Sent [\d:]+ [AP]M UTC, REBOOTING seen [\d:]+ [AP]M UTC, RUNNING read [\d:]+ [AP]M UTC\./,
    );
    expect(world.olivia.mentions()).toHaveLength(1);
  });
});
