import { expect, it } from "vitest";
import { hears, wordsOf } from "../../stories/words.ts";
import { startWorld } from "../../support/start-world.ts";

it("a digest whose blocks and text Slack refuses is refused with its own reason", async () => {
  await using world = await startWorld();
  world.slack.weather.add({ method: "chat.postMessage", kind: "error", error: "invalid_blocks" });
  await world.olivia.types("ops", "/gatehouse digest now");
  const why = await hears(world.olivia, "ops", /was not posted/);
  expect(wordsOf(why)).toContain("invalid_blocks");
  expect(wordsOf(why)).not.toContain("/invite");
});
