import { expect, it } from "vitest";
import { startWorld, testPolicy } from "../support/start-world.ts";
import { until } from "../support/until.ts";

it("a service of Gatehouse says at the start that the folder of endorsements isn't there, with its line and what to do", async () => {
  await using world = await startWorld({
    roles: [],
    policy: `${testPolicy}attestation:\n  endorsements: /no/such/folder\n`,
  });
  await world.startProcess("worker");
  const file = world.env["GATEHOUSE_CONFIG"] ?? "";
  const line = testPolicy.split("\n").length + 1;
  expect(world.lines.map((said) => JSON.parse(said) as object)).toContainEqual(
    expect.objectContaining({
      level: "warn",
      event: "endorsements.folder",
      why: `${file} line ${line}: attestation.endorsements: /no/such/folder isn't there: no VM can be verified`,
      hint: expect.stringContaining("attestation import"),
    }),
  );
});

it("writes into the log that a read of the service was tried again", async () => {
  await using world = await startWorld();
  world.compute.weather({ match: "reads", times: 1, status: 503 });
  await world.olivia.types("ops", "/vm show payments/web-1");
  await until(() => world.lines.map((line) => JSON.parse(line) as object)).toContainEqual(
    expect.objectContaining({
      level: "info",
      event: "compute.retry",
      attempt: 1,
      reason: "status",
    }),
  );
});
