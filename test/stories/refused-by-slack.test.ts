import { describe, expect, it } from "vitest";
import { wordsIn } from "../../sandbox/slack/describe-seen.ts";
import { startWorld, testPolicy, type TestWorld } from "../support/start-world.ts";
import { hears, wordsOf } from "./words.ts";

const restartsNeed = (required: number) =>
  `${testPolicy}approvals: [{ operations: ["vm.restart"], required: ${required}, expires: 1m }]\n`;

const posts = (world: TestWorld) =>
  world.slack.messages().filter(({ botId, channelId }) => botId && channelId === "C01OPS");

describe.concurrent("a message whose blocks Slack refuses", () => {
  it.each(["invalid_blocks", "msg_blocks_too_long", "msg_too_long"])(
    "is posted and edited as text alone, once, where it belongs: %s",
    async (error) => {
      await using world = await startWorld();
      world.slack.edit.refuseBlocks(error);
      await world.olivia.types("ops", "/vm restart web-2");
      const ended = await world.ended("vm restart");
      expect(ended.state).toBe("done");
      const said = posts(world);
      expect(said.filter(({ text }) => /Restarted `?web-2/.test(text)).length).toBe(1);
      for (const { blocks, metadata } of said) {
        expect(blocks).toEqual([]);
        expect(JSON.stringify(metadata)).toContain(ended.record.id);
      }
    },
  );

  it("says in a direct message what a chart shows, and says no word of the channel", async () => {
    await using world = await startWorld();
    world.slack.edit.refuseBlocks("invalid_blocks");
    await world.olivia.types("gatehouse", "vm metrics web-2");
    const said = await hears(world.olivia, "gatehouse", /CPU/);
    expect(said.blocks).toEqual([]);
    expect(wordsOf(said)).toMatch(/CPU: /);
    expect(wordsOf(said)).not.toMatch(/\/invite|can't post/);
  });

  it("is refused with its own reason where its text is refused too", async () => {
    await using world = await startWorld();
    world.slack.weather.add({ method: "chat.postMessage", kind: "error", error: "invalid_blocks" });
    await world.olivia.types("ops", "/gatehouse digest now");
    const why = await hears(world.olivia, "ops", /was not posted/);
    expect(wordsOf(why)).toContain("invalid_blocks");
    expect(wordsOf(why)).not.toContain("/invite");
  });

  it("shows on the Home tab what a chart says", async () => {
    await using world = await startWorld();
    world.compute.edit.setStatus({ vm: "web-2", status: "ERROR" });
    await world.olivia.opensHome();
    await world.olivia.until(() => /Problems[^]*web-2/.test(homeOf(world)));
    await world.olivia.presses("Show", { in: "home" });
    await world.olivia.until(() => /\[Metrics\]/.test(homeOf(world)));
    await world.olivia.presses("Metrics", { in: "home" });
    await world.olivia.until(() => /CPU: [\d.]+ to/.test(homeOf(world)));
  });
});

const homeOf = (world: TestWorld) => wordsIn(world.olivia.sees().home?.blocks ?? []).join("\n");

/** Olivia asks for a restart that others must approve. */
async function asks(world: TestWorld) {
  await world.olivia.types("ops", "/vm restart web-2");
  return hears(world.olivia, "ops", /Restart web-2[^]*Waiting for approval/);
}

const cardsOf = (world: TestWorld) =>
  posts(world).filter(({ metadata }) => JSON.stringify(metadata ?? {}).includes('"said":"card"'));

describe.concurrent("a card that asks, and can't be edited any more", () => {
  it.each(["edit_window_closed", "cant_update_message", "message_not_found"])(
    "is posted anew, once, and the voter is told privately: %s",
    async (error) => {
      await using world = await startWorld({
        policy: restartsNeed(2),
        roles: ["gateway", "worker", "worker"],
      });
      await world.slack.edit.setGroupMembers("leads", ["amir", "ada"]);
      const card = await asks(world);
      world.slack.weather.add({ method: "chat.update", kind: "error", error });
      await world.amir.presses("Approve", { in: card.ts });
      const told = await hears(world.amir, "ops", /what you pressed counts/);
      expect(told.ephemeral).toBe(true);
      const anew = await hears(
        world.olivia,
        "ops",
        /Still needs|One more person[^]*Approved by amir/,
      );
      expect(anew.ts).not.toBe(card.ts);
      expect(anew.threadTs).toBeUndefined();
      expect(wordsOf(anew)).toContain("[Approve]");
      // The former card stays, and a press there counts too
      await world.ada.presses("Approve", { in: card.ts });
      expect((await world.ended("vm restart")).state).toBe("done");
      expect(cardsOf(world).length).toBe(2);
      await hears(world.olivia, "ops", /Restarted web-2/);
    },
  );

  it("is posted once though the process that posts it dies: the new one is found, not the former", async () => {
    await using world = await startWorld({ policy: restartsNeed(2) });
    await world.slack.edit.setGroupMembers("leads", ["amir", "ada"]);
    const card = await asks(world);
    world.slack.edit.setEditWindow(0);
    world.slack.weather.add({ method: "chat.postMessage", kind: "lost-after", times: 1 });
    await world.amir.presses("Approve", { in: card.ts });
    await world.settled();
    expect(cardsOf(world).length).toBe(2);
    expect(
      world.olivia
        .seesChannel("ops")
        .messages.filter((one) => /Approved by amir/.test(wordsOf(one))).length,
    ).toBe(1);
  });
});

describe.concurrent("a card that can't show the end of its request", () => {
  it("is posted anew, without a second mention, and the result is told once", async () => {
    await using world = await startWorld({ compute: { transitionMs: 700 } });
    world.slack.edit.setEditWindow(0);
    await world.olivia.types("ops", "/vm restart web-2");
    const card = await hears(world.olivia, "ops", /Restarting web-2|The result will be/);
    expect((await world.ended("vm restart")).state).toBe("done");
    const anew = await hears(world.olivia, "ops", /Restarted web-2 in/);
    expect(anew.ts).not.toBe(card.ts);
    await world.settled();
    const said = posts(world).map(({ blocks }) => JSON.stringify(blocks));
    expect(said.filter((blocks) => blocks.includes("<@U0OLIVIA>")).length).toBe(1);
    expect(said.filter((blocks) => /Restarted `web-2/.test(blocks)).length).toBe(1);
    expect(cardsOf(world).length).toBe(2);
  });
});

describe.concurrent("a workspace that sends too many messages", () => {
  it("is waited for: what is owed goes once it may", async () => {
    await using world = await startWorld();
    world.slack.weather.add({
      method: "chat.postMessage",
      kind: "error",
      error: "message_limit_exceeded",
      times: 1,
    });
    await world.olivia.types("ops", "/vm restart web-2");
    await hears(world.olivia, "ops", /Restarted web-2/);
    expect(cardsOf(world).length).toBe(1);
  });
});

describe.concurrent("what belongs in a thread that takes no replies", () => {
  it("is posted in the channel: a thread that is locked", async () => {
    await using world = await startWorld({ policy: restartsNeed(1) });
    const card = await asks(world);
    world.slack.edit.lockThread("ops", card.ts);
    await world.amir.presses("Approve", { in: card.ts });
    const said = await hears(world.olivia, "ops", /<@U0OLIVIA> [^]*Restarted web-2/);
    expect(said.threadTs).toBeUndefined();
  });

  it("is posted in the channel once, also when Slack's answer is lost there", async () => {
    await using world = await startWorld({ policy: restartsNeed(1) });
    const card = await asks(world);
    world.slack.edit.setNonThreadable("ops");
    world.slack.weather.add({
      method: "chat.postMessage",
      kind: "lost-after",
      times: 1,
      where: { thread_ts: undefined },
    });
    await world.amir.presses("Approve", { in: card.ts });
    await hears(world.olivia, "ops", /<@U0OLIVIA> [^]*Restarted web-2/);
    await world.settled();
    const results = posts(world).filter(({ metadata }) =>
      JSON.stringify(metadata ?? {}).includes('"said":"result"'),
    );
    expect(results.length).toBe(1);
  });
});
