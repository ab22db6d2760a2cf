import { expect, it } from "vitest";
import { startWorld } from "../support/start-world.ts";

it("writes into the log that a read of the service was tried again", async () => {
  await using world = await startWorld();
  world.compute.weather({ match: "reads", times: 1, status: 503 });
  await world.olivia.types("ops", "/vm show payments/web-1");
  await expect
    .poll(() => world.lines.map((line) => JSON.parse(line) as object))
    .toContainEqual(
      expect.objectContaining({
        level: "info",
        event: "compute.retry",
        attempt: 1,
        reason: "status",
      }),
    );
});
