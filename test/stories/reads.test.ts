import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { PersonActions } from "../../sandbox/slack/actions.ts";
import type { SeenMessage } from "../../sandbox/slack/seen.ts";
import { seenUnderWay } from "../support/pass-time.ts";
import { startWorld, testPolicy, type TestWorld } from "../support/start-world.ts";
import { until } from "../support/until.ts";
import { hears, wordsOf } from "./words.ts";

let world: TestWorld;
beforeAll(async () => {
  const approvals = 'approvals: [{ operations: ["vm.stop"], required: 1, expires: 1h }]\n';
  world = await startWorld({ policy: testPolicy + approvals });
});
afterAll(() => world.close());

/** What a person reads in answer to these words in #ops, and nothing older. */
async function answerTo(
  words: string,
  answer: RegExp,
  who: PersonActions = world.vera,
): Promise<SeenMessage> {
  const { messages: before } = who.seesChannel("ops");
  await who.types("ops", words);
  return until(() =>
    who
      .seesChannel("ops")
      .messages.filter(({ ts }) => !before.some((one) => one.ts === ts))
      .findLast((message) => answer.test(wordsOf(message))),
  );
}

/** What Vera is told, and only she, in answer to a command. */
async function told(words: string, answer: RegExp): Promise<string> {
  const message = await answerTo(words, answer);
  expect(message.ephemeral).toBe(true);
  return wordsOf(message);
}

describe("looking around as somebody who may only view", () => {
  it("lists VMs and projects with trouble first, and only for the asker", async () => {
    const vms = (await told("/vm list", /8 VMs/)).split("\n");
    expect(vms[0]).toBe("8 VMs: 1 ERROR, 2 STOPPED, 5 RUNNING");
    expect(vms[1]).toMatch(/^VM \| Status \| Project \| Region/);
    expect(vms[2]).toMatch(/^🔴 train-7 \| ERROR \| ml \| us-east-1/);
    expect(vms.filter((line) => line.includes("/web-1 |"))).toHaveLength(2);
    const few = await told("/vm list staging --status stopped", /in staging/);
    expect(few).toContain("worker-1");
    expect(few).not.toContain("train-7");
    const projects = await told("/project list", /6 projects/);
    expect(projects).toMatch(/🟢 docs-site \| ACTIVE \| GIT_DEPLOY/);
    const project = await told("/project show payments", /payments is ACTIVE/);
    expect(project).toMatch(/3 VMs: 3 RUNNING[\s\S]*🟢 db-1 \| RUNNING/);
    for (const who of [world.olivia, world.amir])
      expect(who.seesChannel("ops").messages).toEqual([]);
    expect(world.compute.writes()).toEqual([]);
  });

  it("shows a VM with the buttons that its state allows to this person", async () => {
    const hers = await told("/vm show payments/web-2", /web-2 is RUNNING/);
    expect(hers).toMatch(/4 CPU · 16 memory · 100 disk/);
    expect(hers).toContain("vm-payments-web-2");
    expect(hers).not.toMatch(/\[(Restart|Stop|Start|Restore)\]/);
    const { olivia } = world;
    const running = wordsOf(await answerTo("/vm show payments/web-2", /web-2 is RUNNING/, olivia));
    expect(running).toMatch(/\[Stop\].* \[Restart\]/);
    expect(running).not.toContain("[Start]");
    const stopped = wordsOf(await answerTo("/vm show gpu-1", /gpu-1 is STOPPED/, olivia));
    expect(stopped).toContain("[Start]");
    expect(stopped).not.toMatch(/\[(Stop|Restart)\]/);
  });

  it("asks which one is meant where two VMs have a name, and shows the one that is picked", async () => {
    await told("/vm show web-1", /2 VMs are called web-1\. Which one\?/);
    await world.vera.presses("web-1 in staging");
    const card = await hears(world.vera, "ops", /web-1 is RUNNING/);
    expect(wordsOf(card)).toContain("vm-staging-web-1");
  });

  it("shows metrics to the asker, in words too, and to everybody once they are shared", async () => {
    const chart = await answerTo("/vm metrics web-2", /CPU and memory of web-2/);
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
    expect(world.compute.calls()).toContainEqual(
      expect.objectContaining({
        path: "/v1/vms/vm-payments-web-2/metrics",
        query: "period=1h",
      }),
    );
  });

  it("tells what runs, how Gatehouse is, and what this person may run", async () => {
    expect(await told("/gatehouse jobs", /No requests are running/)).toMatch(/or waiting/);
    // It restarts until the list was read
    world.compute.weather({ match: "POST /v1/vms/*/restart", stuck: true, via: "REBOOTING" });
    await world.olivia.types("ops", "/vm restart web-2");
    await seenUnderWay(world);
    expect(await told("/gatehouse jobs", /1 request is open/)).toMatch(
      /Restart web-2 \(payments\): running/,
    );
    world.compute.edit.setStatus({ vm: "vm-payments-web-2", status: "RUNNING" });
    await world.settled();
    const status = await told("/gatehouse status", /Slack: answers/);
    expect(status).toMatch(/✅ Redis: answers[\s\S]*✅ Compute service: 8 VMs in 6 projects/);
    const help = await told("/gatehouse help", /What you can run/);
    expect(help).toContain("/vm show");
    expect(help).not.toMatch(/\/vm (restart|stop|restore)\b.*&lt;/);
    const hers = await answerTo("/gatehouse help", /What you can run/, world.olivia);
    expect(wordsOf(hers)).toContain("/vm restart");
  });

  it("answers in the thread when it is mentioned there", async () => {
    const { ts = "" } = await world.olivia.types("ops", "who knows db-1?");
    await world.vera.types("ops", "@gatehouse vm show db-1", { threadTs: ts });
    const card = await hears(world.vera, "ops", /db-1 is RUNNING/);
    expect([card.threadTs, card.ephemeral]).toEqual([ts, true]);
  });
});

describe("Share in channel", () => {
  it("shows the same answer to everybody, and who shared it, without notifying anyone", async () => {
    const list = await answerTo("/vm list ml", /2 VMs in ml/);
    await world.vera.presses("Share in channel", { in: list.ts });
    const shared = await hears(world.amir, "ops", /2 VMs in ml[^]*train-7[^]*Shared by vera/);
    expect(shared.ephemeral).toBe(false);
    expect(world.amir.sees().inbox).toEqual([]);
  });

  it("carries of requests what works for those who read it: links and history, no votes", async () => {
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
    await world.vera.types("random", "/vm list ml");
    await hears(world.vera, "random", /2 VMs in ml/);
    await world.vera.presses("Share in channel", { channel: "random" });
    await hears(world.vera, "random", /\/invite @gatehouse/);
    expect(world.amir.seesChannel("random").messages).toEqual([]);
  });
});
