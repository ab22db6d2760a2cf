import { it } from "vitest";
import { hears } from "../../stories/words.ts";
import { startWorld } from "../../support/start-world.ts";

it("the button of a digest opens the night", async () => {
  await using world = await startWorld();
  await world.olivia.types("ops", "/vm restart web-2");
  await world.ended("vm restart");
  await world.olivia.types("ops", "/gatehouse digest now");
  const digest = await hears(world.vera, "ops", /\[The night\]/);
  await world.vera.presses("The night", { in: digest.ts });
  await hears(world.vera, "ops", /^The night since [^]*olivia restarted web-2/);
});
