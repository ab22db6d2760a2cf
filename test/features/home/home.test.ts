import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { PersonActions } from "../../../sandbox/slack/actions.ts";
import { wordsIn } from "../../../sandbox/slack/describe-seen.ts";
import { policyWith, startWorld, testPolicy, type TestWorld } from "../../support/start-world.ts";
import { hears, wordsOf } from "../../stories/words.ts";
import { until } from "../../support/until.ts";

const needs = `approvals: [{ operations: ["vm.restart"], required: 1, expires: 10m }]\n`;
const teams = `teams: { ml: { projects: [ml], channel: C01OPS, operate: [S01ONCALL], approve: [S02LEADS], view: ["*"] } }\n`;

let world: TestWorld;
beforeAll(async () => {
  world = await startWorld({ policy: testPolicy + needs });
});
afterAll(() => world.close());

/** Opens the Home tab and resolves with its text once that matches. */
async function opens(person: PersonActions, says: RegExp): Promise<string> {
  await person.opensHome();
  return reads(person, says);
}

/** Resolves with the text of the open Home tab once that matches. */
async function reads(person: PersonActions, says: RegExp): Promise<string> {
  await person.until(() => says.test(textOf(person)));
  return textOf(person);
}

const textOf = (person: PersonActions) =>
  wordsIn(person.sees().home?.blocks ?? [])
    .join("\n")
    .replaceAll(/[*`\u2060]/g, "");

const failedPosts = ({ slack }: TestWorld) =>
  slack.calls("chat.postMessage").filter(({ ok }) => !ok);

describe("the Home tab", () => {
  it("shows problems, with buttons for what this person may do, and how fresh the data is", async () => {
    const olivia = await opens(world.olivia, /ml\/train-7 has been in ERROR since/);
    expect(olivia).toMatch(/\[Show\] \[Restart\]|\[Show\][^]*\[Restart\]/);
    expect(olivia).toMatch(/8 VMs in 6 projects\. Statuses read .+ ago/);
    const vera = await opens(world.vera, /ml\/train-7 has been in ERROR since/);
    expect(vera).not.toContain("[Restart]");
    expect(vera).toContain("You have no requests yet");
  });

  it("reads the newest 200 open requests at most, and says so", async () => {
    const open = world.key("requests", "open");
    const old = Array.from({ length: 250 }, (_, n) => `r-gone-${n}`);
    await world.client.zadd(open, ...old.flatMap((id, n) => [n + 1, id]));
    await opens(world.amir, /25\d requests are open, and only the 200 newest are on this page/);
    await world.client.zrem(open, ...old);
  });

  it("begins with what people do most, each for people who may, and the picker asks where to tell it", async () => {
    expect(await opens(world.olivia, /Problems/)).toMatch(
      /^\[List VMs\] \[Restart a VM…\] \[Help\]\nWaiting for you/,
    );
    expect(await opens(world.vera, /Problems/)).toMatch(/^\[List VMs\] \[Help\]\n/);
    await world.vera.presses("List VMs", { in: "home" });
    await reads(world.vera, /^8 VMs: [^]*train-7[^]*Waiting for you/);
    await world.olivia.presses("Restart a VM…", { in: "home" });
    await world.olivia.until(({ modals }) => modals.some(({ title }) => title === "Restart a VM"));
    await world.olivia.suggests("VM", "db-1");
    await world.olivia.submits({ VM: "db-1 in payments", "Channel for the result": "ops" });
    await hears(world.olivia, "ops", /Restart db-1[^]*Waiting for approval/);
    await world.olivia.presses("Cancel");
    await world.settled();
  });

  it("shows approvers the requests that wait for them in one line, and takes their vote below all the facts", async () => {
    await world.olivia.types("ops", "/vm restart web-2");
    await hears(world.olivia, "ops", /Restart web-2[^]*Waiting for approval/);
    const [waiting] = await world.store.getMany(await world.store.openIds());
    const line = await opens(world.amir, /Restart web-2 in payments, requested by olivia/);
    expect(line).toMatch(
      /\n✋ Restart web-2 in payments, requested by olivia\. Until [^\n]+\.\n\[Review\]\n/,
    );
    expect(line).not.toContain("[Approve]");
    await world.amir.presses("Review", { in: "home" });
    const amir = await reads(world.amir, /Fingerprint/);
    // The order is the card's: the loss first, then the buttons, then the facts.
    expect(amir).toMatch(
      /This interrupts what runs on web-2\.\nRestart web-2 in payments, requested by olivia[^\n]*\nWaiting for approval until[^\n]*\n\[Approve\] \[Deny\] \[Why\?\]\nStatus when requested: RUNNING/,
    );
    expect(amir).toContain(`Fingerprint ${waiting?.record.approval?.digest.slice(0, 16)}`);
    expect(await opens(world.olivia, /Waiting for you/)).toContain(
      "Nothing is waiting for your approval.",
    );
    expect(await opens(world.vera, /Waiting for you/)).toContain(
      "Nothing is waiting for your approval.",
    );
    const notified = world.slack.messages().length;
    await world.amir.presses("Approve", { in: "home" });
    expect((await world.ended("vm restart")).state).toBe("done");
    // The tab on which the button was pressed updates by itself.
    await reads(world.amir, /Restart web-2 \(payments\): done\nApproved by amir/);
    const left = await reads(world.amir, /Nothing is waiting for your approval/);
    expect(left).not.toContain("[Approve]");
    await world.amir.presses("Show", { in: "home" });
    await reads(world.amir, /train-7 is ERROR[^]*Waiting for you/);
    const since = world.slack.messages().slice(notified);
    expect(since.filter(({ channelId }) => channelId.startsWith("D"))).toEqual([]);
    expect(await opens(world.olivia, /✅ Restarted web-2 in /)).toContain("Nothing is running.");
  });

  it("has buttons to fix a problem, which run the command like typed words", async () => {
    await world.vera.opensHome();
    await opens(world.olivia, /ml\/train-7 has been in ERROR since/);
    const slip = await world.olivia.presses("Restart", { in: "home", confirm: "no" });
    expect(slip.error).toBe("confirm_denied");
    expect(JSON.stringify(world.olivia.sees().home?.blocks)).toContain("Restart train-7 in ml?");
    await world.olivia.presses("Restart", { in: "home" });
    const newest = async () => (await world.store.getMany(await world.store.recentIds({}, 1)))[0];
    const wanted = {
      state: "draft",
      // That of alerts, because the VM has no team
      record: { target: { name: "train-7" }, origin: { kind: "button" }, channelId: "C02STATUS" },
    };
    await until(newest).toMatchObject(wanted);
    await hears(world.amir, "status", /Restart train-7[^]*Waiting for approval/);
    expect(failedPosts(world)).toEqual([]);
  });

  it("shows guests nothing", async () => {
    const gina = await opens(world.slack.person("gina"), /full members/);
    expect(gina).not.toMatch(/train-7|VMs in/);
  });

  it("says that all is frozen, by whom and why", async () => {
    await world.ada.types("audit", "/gatehouse freeze storage is failing");
    await hears(world.ada, "audit", /froze all changes/);
    expect(
      await opens(world.vera, /All changes are frozen by ada: storage is failing/),
    ).toBeTruthy();
    // A press would be refused.
    expect(await opens(world.olivia, /All changes are frozen by ada/)).not.toContain("[Restart]");
    await world.ada.types("audit", "/gatehouse thaw");
  });
});

describe("a change that is pressed on the Home tab", () => {
  it("is told in the channel of the VM's team, with and without approvals, and in that of alerts where it has none", async () => {
    const approvals = needs.replace("required", 'targets: ["train-*"], required');
    await using own = await startWorld({
      policy: testPolicy + teams + approvals,
      pace: { inventoryRefreshMs: 200 },
    });
    const { olivia, compute } = own;
    /** Presses Restart of the VM that alone is in trouble, and resolves with the request. */
    const restarts = async (vm: string) => {
      const alone = new RegExp(
        `Problems\n🔴 \\w+/${vm} (is|has been) in ERROR[^\n]*\n\\[Show\\]\n\\[Restart`,
      );
      await until(async () => {
        await olivia.opensHome();
        return textOf(olivia);
      }).toMatch(alone);
      await olivia.presses("Restart", { in: "home" });
      return until(async () => {
        const [request] = await own.store.getMany(await own.store.recentIds({}, 1));
        return request?.record.target.name === vm && request;
      });
    };
    expect(await restarts("train-7")).toMatchObject({ record: { channelId: "C01OPS" } });
    await hears(own.amir, "ops", /Restart train-7[^]*Waiting for approval/);
    compute.edit.setStatus({ vm: "vm-ml-train-7", status: "RUNNING" });
    compute.edit.setStatus({ vm: "vm-ml-gpu-1", status: "ERROR" });
    expect(await restarts("gpu-1")).toMatchObject({ record: { channelId: "C01OPS" } });
    await hears(own.amir, "ops", /Restarted gpu-1|Restart of gpu-1/);
    compute.edit.setStatus({ vm: "vm-ml-gpu-1", status: "RUNNING" });
    compute.edit.setStatus({ vm: "vm-payments-db-1", status: "ERROR" });
    expect(await restarts("db-1")).toMatchObject({ record: { channelId: "C02STATUS" } });
    await hears(own.vera, "status", /Restarted db-1|Restart of db-1/);
    const posts = own.slack.messages().filter(({ botId }) => botId !== undefined);
    expect(posts.filter(({ channelId }) => channelId.startsWith("D"))).toEqual([]);
    expect(failedPosts(own)).toEqual([]);
  });

  it("comes to its requester's direct messages where no channel may see it", async () => {
    await using own = await startWorld({ policy: policyWith({ alerts: undefined }) });
    await opens(own.olivia, /ml\/train-7 has been in ERROR since/);
    await own.olivia.presses("Restart", { in: "home" });
    const said = wordsOf(await hears(own.olivia, "gatehouse", /Restart(ed)? train-7/));
    expect(said).not.toContain("/invite");
    expect(failedPosts(own)).toEqual([]);
  });
});

describe("people who may not see VMs", () => {
  it("see no names on the Home tab, in pickers, and in messages, except what they may act on", async () => {
    await using closed = await startWorld({
      policy: policyWith({ view: ["U0ADA"] }, needs),
    });
    const vera = await opens(closed.vera, /can't see more/);
    expect(vera).not.toMatch(/train-7|VMs in/);
    await closed.olivia.types("ops", "/vm restart web-2");
    await hears(closed.olivia, "ops", /Waiting for approval/);
    const amir = await opens(closed.amir, /Restart web-2 in payments, requested by olivia/);
    expect(amir).toMatch(/VMs in/);
    await closed.vera.picksShortcut("restart-vm");
    await closed.vera.until(({ modals }) => modals.length > 0);
    expect((await closed.vera.suggests("VM", "web")).options).toEqual([]);
    await closed.vera.closes();
    await closed.olivia.picksShortcut("restart-vm");
    await closed.olivia.until(({ modals }) => modals.length > 0);
    expect((await closed.olivia.suggests("VM", "web")).options.length).toBeGreaterThan(1);
    const message = await closed.vera.types("ops", "web-2 and gpu-1 are slow");
    await closed.vera.picksMessageShortcut("show-vms", message.ts ?? "");
    await hears(closed.vera, "ops", /Only .* can run \/vm list/);
  });
});
