import { describe, expect, it } from "vitest";
import { startWorld, testPolicy, type TestWorld } from "../support/start-world.ts";
import { hears, wordsOf } from "./words.ts";

/** What Vera is told, and only she, in answer to a command. */
async function told(world: TestWorld, words: string, answer: RegExp): Promise<string> {
  await world.vera.types("ops", words);
  const message = await hears(world.vera, "ops", answer);
  expect(message.ephemeral).toBe(true);
  return wordsOf(message);
}

describe("looking around as somebody who may only view", () => {
  it("lists VMs and projects with trouble first, and only for the asker", async () => {
    await using world = await startWorld();
    const vms = (await told(world, "/vm list", /8 VMs/)).split("\n");
    expect(vms[0]).toBe("8 VMs: 1 ERROR, 2 STOPPED, 5 RUNNING");
    expect(vms[1]).toMatch(/^VM \| Status \| Project \| Region/);
    expect(vms[2]).toMatch(/^🔴 train-7 \| ERROR \| ml \| us-east-1/);
    expect(vms.filter((line) => line.includes("/web-1 |"))).toHaveLength(2);
    const few = await told(world, "/vm list staging --status stopped", /in staging/);
    expect(few).toContain("worker-1");
    expect(few).not.toContain("train-7");
    const projects = await told(world, "/project list", /6 projects/);
    expect(projects).toMatch(/🟢 docs-site \| ACTIVE \| GIT_DEPLOY/);
    const project = await told(world, "/project show payments", /payments is ACTIVE/);
    expect(project).toMatch(/3 VMs: 3 RUNNING[\s\S]*🟢 db-1 \| RUNNING/);
    for (const who of [world.olivia, world.amir])
      expect(who.seesChannel("ops").messages).toEqual([]);
    expect(world.compute.writes()).toEqual([]);
  });

  it("shows a VM with the buttons that its state allows to this person", async () => {
    await using world = await startWorld();
    const hers = await told(world, "/vm show payments/web-2", /web-2 is RUNNING/);
    expect(hers).toMatch(/4 CPU · 16 memory · 100 disk/);
    expect(hers).toContain("vm-payments-web-2");
    expect(hers).not.toMatch(/\[(Restart|Stop|Start|Restore)\]/);
    await world.olivia.types("ops", "/vm show payments/web-2");
    const running = wordsOf(await hears(world.olivia, "ops", /web-2 is RUNNING/));
    expect(running).toMatch(/\[Stop\].* \[Restart\]/);
    expect(running).not.toContain("[Start]");
    await world.olivia.types("ops", "/vm show gpu-1");
    const stopped = wordsOf(await hears(world.olivia, "ops", /gpu-1 is STOPPED/));
    expect(stopped).toContain("[Start]");
    expect(stopped).not.toMatch(/\[(Stop|Restart)\]/);
  });

  it("asks which one is meant where two VMs have a name, and shows the one that is picked", async () => {
    await using world = await startWorld();
    await told(world, "/vm show web-1", /2 VMs are called web-1\. Which one\?/);
    await world.vera.presses("web-1 in staging");
    const card = await hears(world.vera, "ops", /web-1 is RUNNING/);
    expect(wordsOf(card)).toContain("vm-staging-web-1");
  });

  it("shows metrics to the asker, in words too, and to everybody once they are shared", async () => {
    await using world = await startWorld();
    await world.vera.types("ops", "/vm metrics web-2");
    const chart = await hears(world.vera, "ops", /CPU and memory of web-2/);
    expect(chart.text).toMatch(/CPU: minimum [\d.]+, maximum [\d.]+, last [\d.]+.*Memory: minimum/);
    expect(chart.ephemeral).toBe(true);
    expect(chart.blocks.map(({ type }) => type)).toContain("data_visualization");
    expect(wordsOf(chart)).toMatch(
      /Now: CPU [\d.]+ · Memory [\d.]+ · Disk [\d.]+ \(unit not given by the service\)[^]*\[Refresh\] \[6h\] \[24h\] \[7d\]/,
    );
    await world.vera.presses("Share in channel", { in: chart.ts });
    const shared = await hears(world.olivia, "ops", /CPU and memory of web-2/);
    expect(shared.ephemeral).toBe(false);
    expect(wordsOf(shared)).toMatch(/\[chart: web-2, last 1h: CPU, Memory\]/);
    expect(world.compute.calls().at(-1)).toMatchObject({
      path: "/v1/vms/vm-payments-web-2/metrics",
      query: "period=1h",
    });
  });

  it("tells what runs, how Gatehouse is, and what this person may run", async () => {
    await using world = await startWorld({ compute: { transitionMs: 400 } });
    expect(await told(world, "/gatehouse jobs", /No requests are running/)).toMatch(/or waiting/);
    await world.olivia.types("ops", "/vm restart web-2");
    await hears(world.olivia, "ops", /Requested\. The result|Restarting/);
    expect(await told(world, "/gatehouse jobs", /1 request is open/)).toMatch(
      /Restart web-2 \(payments\): (waiting to start|being sent|running)/,
    );
    const status = await told(world, "/gatehouse status", /Slack: answers/);
    expect(status).toMatch(/✅ Redis: answers[\s\S]*✅ Compute service: 8 VMs in 6 projects/);
    const help = await told(world, "/gatehouse help", /What you can run/);
    expect(help).toContain("/vm show");
    expect(help).not.toMatch(/\/vm (restart|stop|restore)\b.*&lt;/);
    await world.olivia.types("ops", "/gatehouse help");
    expect(wordsOf(await hears(world.olivia, "ops", /What you can run/))).toContain("/vm restart");
    await world.settled();
  });

  it("answers in the thread when it is mentioned there", async () => {
    await using world = await startWorld();
    const { ts = "" } = await world.olivia.types("ops", "who knows web-2?");
    await world.vera.types("ops", "@gatehouse vm show web-2", { threadTs: ts });
    const card = await hears(world.vera, "ops", /web-2 is RUNNING/);
    expect([card.threadTs, card.ephemeral]).toEqual([ts, true]);
  });
});

describe("Share in channel", () => {
  it("shows the same answer to everybody, and who shared it, without notifying anyone", async () => {
    await using world = await startWorld();
    await told(world, "/vm list ml", /2 VMs in ml/);
    await world.vera.presses("Share in channel");
    const shared = await hears(world.amir, "ops", /Shared by vera/);
    expect(shared.ephemeral).toBe(false);
    expect(wordsOf(shared)).toMatch(/2 VMs in ml[\s\S]*train-7/);
    expect(world.amir.sees().inbox).toEqual([]);
  });

  it("of requests carries what works for those who read it: links and history, no votes", async () => {
    const policy = `${testPolicy}approvals: [{ operations: ["vm.stop"], required: 1 }]\n`;
    await using world = await startWorld({ policy });
    await world.olivia.types("ops", "/vm stop web-2");
    await hears(world.olivia, "ops", /Waiting for approval/);
    await world.amir.types("status", "/gatehouse jobs");
    const own = await hears(world.amir, "status", /1 request is open/);
    expect(wordsOf(own)).toContain("[Approve] [Deny]");
    await world.amir.presses("Share in channel", { in: own.ts });
    const shared = await hears(world.vera, "status", /Shared by amir/);
    expect(wordsOf(shared)).toMatch(/Stop web-2 \(payments\): waiting for approval[^]*\[Why\?\]/);
    expect(wordsOf(shared)).not.toMatch(/\[(Approve|Deny|Cancel)\]|yours/);
    expect(JSON.stringify(shared.blocks)).toMatch(/<https:[^>|]*archives[^>|]*\|Open its message>/);
    await world.vera.presses("Why?", { in: shared.ts });
    await hears(world.vera, "status", /vm stop web-2[^]*Waiting for approval|waiting for approval/);
  });

  it("says how to invite the bot where it is no member", async () => {
    await using world = await startWorld();
    await world.vera.types("random", "/vm list ml");
    await hears(world.vera, "random", /2 VMs in ml/);
    await world.vera.presses("Share in channel", { channel: "random" });
    await hears(world.vera, "random", /\/invite @gatehouse/);
    expect(world.amir.seesChannel("random").messages).toEqual([]);
  });
});
