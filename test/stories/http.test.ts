import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startWorld, type TestWorld } from "../support/start-world.ts";
import { hears } from "./words.ts";

describe("Gatehouse over HTTP", () => {
  let world: TestWorld;
  beforeAll(async () => {
    world = await startWorld({ receive: "http" });
  });
  afterAll(() => world.close());

  it("restarts a VM on a signed slash command, and answers buttons, modals and mentions the same way", async () => {
    expect(new URL(world.slack.app.requestUrl ?? "").pathname).toBe("/slack/events");
    const typed = await world.olivia.types("ops", "/vm restart web-2");
    expect([typed.acked, typed.status]).toEqual([true, 200]);
    await hears(world.olivia, "ops", /<@U0OLIVIA> [^]*Sent .* read/);

    await world.olivia.types("ops", "/vm show db-1");
    const card = await hears(world.olivia, "ops", /db-1 is RUNNING/);
    expect((await world.olivia.presses("Stop", { in: card.ts })).status).toBe(200);
    await hears(world.olivia, "ops", /Stopped db-1 in/);

    const { ts = "" } = await world.olivia.types("ops", "and db-1?");
    await world.olivia.types("ops", "@gatehouse vm show db-1", { threadTs: ts });
    await hears(world.olivia, "ops", /db-1 is STOPPED/);

    await world.olivia.types("ops", "/vm resize db-1 --cpu 4 --memory 8");
    await world.olivia.until(({ modals }) => modals.some(({ submit }) => submit === "Resize"));
    expect((await world.olivia.submits()).acked).toBe(true);
    await hears(world.olivia, "ops", /Resized db-1: /);
    expect(world.compute.writes().map(({ method, path }) => `${method} ${path}`)).toEqual([
      "POST /v1/vms/vm-payments-web-2/restart",
      "POST /v1/vms/vm-payments-db-1/stop",
      "PATCH /v1/vms/vm-payments-db-1",
    ]);
  });

  it("takes the same delivery once, and only with Slack's signature of just now", async () => {
    const sent = world.compute.writes().length;
    await world.olivia.types("ops", "/vm restart payments/web-1");
    await hears(world.olivia, "ops", /Restarted payments\/web-1 in/);
    const command = world.slack.deliveries("command").at(-1);
    if (command === undefined) throw new Error("nothing was delivered");
    const again = await world.slack.redeliver(command);
    expect(again.status).toBe(200);
    await hears(world.olivia, "ops", /You already requested this/);

    const { body } = command;
    const now = Math.floor(Date.now() / 1000);
    const send = (at: number, signature: string) =>
      world.slack.sendRaw(body, {
        "content-type": "application/x-www-form-urlencoded",
        "x-slack-request-timestamp": String(at),
        "x-slack-signature": signature,
      });
    const forged = world.slack.sign(now, body).replace(/.$/, (last) => (last === "0" ? "1" : "0"));
    for (const answer of [
      await send(now, forged),
      await send(now - 301, world.slack.sign(now - 301, body)),
      await send(now + 3600, world.slack.sign(now + 3600, body)),
    ]) {
      expect(answer.status).toBe(401);
    }
    expect(world.compute.writes()).toHaveLength(sent + 1);
  });
});
