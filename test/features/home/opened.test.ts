import { expect, it } from "vitest";
import { startGateway } from "../../slack/receive/start-slack.ts";

it("acks and handles the opening of the Home tab", async () => {
  await using gateway = await startGateway();
  await gateway.slack.person("olivia").opensHome();
  expect(await gateway.handles(1)).toMatchObject([{ kind: "home", channelId: "" }]);
});
