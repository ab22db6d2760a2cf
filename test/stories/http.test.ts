import { describe, expect, it } from "vitest";
import { startWorld } from "../support/start-world.ts";
import { lineOf } from "../faults/check/checker.ts";
import { fresh } from "../faults/rows/row.ts";
import { startStage } from "../faults/stage/stage.ts";
import { hears } from "./words.ts";

describe.concurrent("Gatehouse over HTTP", () => {
  it("restarts a VM on a signed slash command, and answers buttons, modals and mentions the same way", async () => {
    await using world = await startWorld({ receive: "http" });
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
    await using world = await startWorld({ receive: "http" });
    await world.olivia.types("ops", "/vm restart web-2");
    await hears(world.olivia, "ops", /Restarted web-2 in/);
    const [command] = world.slack.deliveries("command");
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
    expect(world.compute.writes()).toHaveLength(1);
  });

  it("loses nothing when its gateway is killed right after it answered Slack: the next one does it, once", async () => {
    await using stage = await startStage({ receive: "http", gateways: 0, direct: true });
    const doomed = await stage.addBot("gateway", { slot: "doomed" });
    await doomed.arm({ point: "ack", do: "kill" });
    const vm = await fresh(stage)("vm restart");
    await stage.request("vm restart", vm);
    expect(await doomed.exited).toBe("SIGKILL");
    stage.faults += 1;
    await stage.addBot("gateway", { slot: "next" });
    const ended = await stage.until(({ isFinal }) => isFinal);
    expect(ended).toMatchObject({ command: "vm restart", target: vm, state: "done" });
    await stage.quiet();
    const verdict = await stage.check();
    expect(verdict.findings, lineOf(verdict)).toEqual([]);
    expect(await stage.service.writes()).toHaveLength(1);
  });
});
