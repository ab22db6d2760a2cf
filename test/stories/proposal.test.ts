import { describe, expect, it } from "vitest";
import { deployJob, deployPolicy, doorEnv } from "../door/deploy-job.ts";
import { startWorld } from "../support/start-world.ts";
import { hears, wordsOf } from "./words.ts";

describe("a deploy job that proposes", () => {
  it("gets its snapshot once someone runs it, and goes on", async () => {
    await using world = await startWorld({ env: doorEnv, policy: deployPolicy() });
    const job = deployJob(world);
    const { status, headers, body } = await job.proposes("vm snapshot db-1 before-deploy");
    expect(status).toBe(202);
    expect(headers.get("location")).toBe(`/v1/requests/${body.id}`);
    expect(body).toMatchObject({ state: "open", final: false, url: `/v1/requests/${body.id}` });

    const card = await hears(world.olivia, "ops", /deploy proposes/);
    expect(wordsOf(card)).toMatch(
      /deploy proposes: Snapshot db-1 \(payments\) as before-deploy: “release 42”/,
    );
    const next = job.asks(body.id, "?wait=30&after=open");
    await world.olivia.presses("Run", { in: card.ts });
    const request = await world.ended("vm snapshot");
    expect(request.record).toMatchObject({ requester: { id: "U0OLIVIA" }, proposal: body.id });
    expect((await next).body.state).not.toBe("open");
    await expect.poll(async () => (await job.asks(body.id)).body.state).toBe("done");
    expect((await job.asks(body.id)).body).toMatchObject({
      final: true,
      by: "olivia",
      request: request.record.id,
      result: expect.stringMatching(/^Took a snapshot of db-1 as before-deploy in \d+ s/),
    });
    const ran = await hears(world.vera, "ops", /Run by olivia: .*r-/);
    expect(ran.ts).toBe(card.ts);
    expect(wordsOf(ran)).not.toContain("[Run]");
  });
});
