import { expect, it } from "vitest";
import { startGateway } from "../../slack/receive/start-slack.ts";

it("that somebody opens the Home tab is acked, and handed on", async () => {
  await using gateway = await startGateway();
  await gateway.slack.person("olivia").opensHome();
  expect(await gateway.handles(1)).toMatchObject([{ kind: "home", channelId: "" }]);
});
