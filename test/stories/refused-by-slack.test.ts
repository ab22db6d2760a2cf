import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { wordsIn } from "../../sandbox/slack/describe-seen.ts";
import type { PersonActions } from "../../sandbox/slack/actions.ts";
import type { SeenMessage } from "../../sandbox/slack/seen.ts";
import { policyWith, startWorld, type TestWorld } from "../support/start-world.ts";
import { until } from "../support/until.ts";
import { hears, wordsOf } from "./words.ts";

let world: TestWorld;

afterEach(async () => {
  const { weather, edit } = world.slack;
  weather.clear();
  edit.refuseBlocks(undefined);
  edit.setEditWindow(undefined);
  await world.settled();
});

let channels = 0;

/** A channel of the test's own, since messages that follow each other in one may become one. */
function newChannel(): string {
  channels += 1;
  const name = `room-${channels}`;
  const members = ["olivia", "amir", "ada", "gatehouse"];
  world.slack.edit.addChannel({ id: `C0ROOM${channels}`, name, members });
  return name;
}

/** What Gatehouse posted in this channel. */
const postsIn = (channel: string) =>
  world.slack
    .messages()
    .filter(({ botId, channelId }) => botId && channelId === channel.replace("room-", "C0ROOM"));

const saying = (channel: string, said: string) =>
  postsIn(channel).filter(({ metadata }) =>
    JSON.stringify(metadata ?? {}).includes(`"said":"${said}"`),
  );

/** Waits for a message that came after another one. */
const hearsAfter = (person: PersonActions, { ts, channelId }: SeenMessage, words: RegExp) =>
  until(() =>
    person
      .seesChannel(channelId)
      .messages.findLast((one) => Number(one.ts) > Number(ts) && words.test(wordsOf(one))),
  );

describe("a message that Slack refuses", () => {
  beforeAll(async () => {
    world = await startWorld();
  });
  afterAll(() => world.close());

  it.each([
    ["invalid_blocks", "web-2"],
    ["msg_blocks_too_long", "db-1"],
    ["msg_too_long", "staging/web-1"],
  ])("is posted and edited as text alone, once, where it belongs: %s", async (error, vm) => {
    const channel = newChannel();
    world.slack.edit.refuseBlocks(error);
    await world.olivia.types(channel, `/vm restart ${vm}`);
    const { state, record } = await world.ended("vm restart");
    expect(state).toBe("done");
    const texts = postsIn(channel).map(({ text }) => text);
    expect(texts.filter((text) => text.includes("Restarted"))).toHaveLength(1);
    for (const { blocks, metadata } of postsIn(channel)) {
      expect(blocks).toEqual([]);
      expect(JSON.stringify(metadata)).toContain(record.id);
    }
  });

  it("says in a direct message what a chart shows, and says no word of the channel", async () => {
    world.slack.edit.refuseBlocks("invalid_blocks");
    await world.olivia.types("gatehouse", "vm metrics web-2");
    const said = await hears(world.olivia, "gatehouse", /CPU/);
    expect(said.blocks).toEqual([]);
    expect(wordsOf(said)).toMatch(/CPU: /);
    expect(wordsOf(said)).not.toMatch(/\/invite|can't post/);
  });

  it("shows on the Home tab what a chart says", async () => {
    const home = () => wordsIn(world.olivia.sees().home?.blocks ?? []).join("\n");
    await world.olivia.opensHome();
    await world.olivia.until(() => /Problems[^]*train-7/.test(home()));
    await world.olivia.presses("Show", { in: "home" });
    await world.olivia.until(() => /\[Metrics\]/.test(home()));
    await world.olivia.presses("Metrics", { in: "home" });
    await world.olivia.until(() => /CPU: [\d.]+ to/.test(home()));
  });

  it("is waited for in a workspace that sends too many messages: what is owed goes once it may", async () => {
    const channel = newChannel();
    world.slack.weather.add({
      method: "chat.postMessage",
      kind: "error",
      error: "message_limit_exceeded",
      times: 1,
    });
    await world.olivia.types(channel, "/vm restart payments/web-1");
    await hears(world.olivia, channel, /Restarted payments\/web-1/);
    await world.settled();
    expect(saying(channel, "card").length).toBe(1);
  });

  it("is posted anew where a card can't show the end of its request, without a second mention, and the result is told once", async () => {
    const channel = newChannel();
    // It runs until its card was seen
    world.compute.weather({ match: "POST /v1/vms/*/start", stuck: true, via: "STARTING" });
    world.slack.edit.setEditWindow(0);
    await world.olivia.types(channel, "/vm start gpu-1");
    const card = await hears(world.olivia, channel, /Starting gpu-1|The result will be/);
    await until(async () => (await newest()).state).toBe("accepted");
    world.compute.edit.setStatus({ vm: "gpu-1", status: "RUNNING" });
    expect((await world.ended("vm start")).state).toBe("done");
    const anew = await hears(world.olivia, channel, /Started gpu-1 in/);
    expect(anew.ts).not.toBe(card.ts);
    await world.settled();
    const said = postsIn(channel).map(({ blocks }) => JSON.stringify(blocks));
    expect(said.filter((blocks) => blocks.includes("<@U0OLIVIA>")).length).toBe(1);
    expect(said.filter((blocks) => /Started `gpu-1/.test(blocks)).length).toBe(1);
    expect(saying(channel, "card").length).toBe(2);
  });
});

/** Olivia asks in a channel of its own for something that others must approve. */
async function asks(words: string) {
  const channel = newChannel();
  await world.olivia.types(channel, words);
  return { channel, card: await hears(world.olivia, channel, /Waiting for approval/) };
}

async function newest() {
  const [request] = await world.store.getMany(await world.store.recentIds({}, 1));
  if (!request) throw new Error("nothing was requested");
  return request;
}

describe("a workspace in which changes need approvals", () => {
  beforeAll(async () => {
    world = await startWorld({
      policy: policyWith(
        {},
        `approvals:
  - { operations: ["vm.restart"], required: 2, expires: 1h }
  - { operations: ["vm.stop"], required: 1, expires: 1h }
`,
      ),
      roles: ["gateway", "worker", "worker"],
    });
    await world.slack.edit.setGroupMembers("leads", ["amir", "ada"]);
  });
  afterAll(() => world.close());

  it.each([
    ["edit_window_closed", "web-2"],
    ["cant_update_message", "db-1"],
    ["message_not_found", "staging/web-1"],
  ])(
    "has a card that can't be edited any more posted anew, once, and tells the voter privately: %s",
    async (error, vm) => {
      const { card, channel } = await asks(`/vm restart ${vm}`);
      world.slack.weather.add({ method: "chat.update", kind: "error", error });
      await world.amir.presses("Approve", { in: card.ts, channel });
      const told = await hearsAfter(world.amir, card, /what you pressed counts/);
      expect(told.ephemeral).toBe(true);
      const anew = await hearsAfter(
        world.olivia,
        card,
        /Still needs|One more person[^]*Approved by amir/,
      );
      expect(anew.threadTs).toBeUndefined();
      expect(wordsOf(anew)).toContain("[Approve]");
      // The former card stays, and a press there counts too
      await world.ada.presses("Approve", { in: card.ts, channel });
      expect((await world.ended("vm restart")).state).toBe("done");
      expect(saying(channel, "card").length).toBe(2);
      await hearsAfter(world.olivia, card, /Restarted \S+ in/);
    },
  );

  it("has such a card posted once though the process that posts it dies: the new one is found, not the former", async () => {
    const { card, channel } = await asks("/vm restart payments/web-1");
    world.slack.edit.setEditWindow(0);
    world.slack.weather.add({ method: "chat.postMessage", kind: "lost-after", times: 1 });
    await world.amir.presses("Approve", { in: card.ts, channel });
    await world.settled();
    expect(saying(channel, "card").length).toBe(2);
    const approved = world.olivia
      .seesChannel(channel)
      .messages.filter((one) => /Approved by amir/.test(wordsOf(one)));
    expect(approved.length).toBe(1);
  });

  it("has a result posted in the channel where its thread is locked", async () => {
    const { card, channel } = await asks("/vm stop web-2");
    world.slack.edit.lockThread(channel, card.ts);
    await world.amir.presses("Approve", { in: card.ts, channel });
    const said = await hears(world.olivia, channel, /<@U0OLIVIA> [^]*Stopped web-2/);
    expect(said.threadTs).toBeUndefined();
  });

  it("has a result posted in the channel once, also when Slack's answer is lost there", async () => {
    const { card, channel } = await asks("/vm stop db-1");
    world.slack.edit.setNonThreadable(channel);
    world.slack.weather.add({
      method: "chat.postMessage",
      kind: "lost-after",
      times: 1,
      where: { thread_ts: undefined },
    });
    await world.amir.presses("Approve", { in: card.ts, channel });
    await hears(world.olivia, channel, /<@U0OLIVIA> [^]*Stopped db-1/);
    await world.settled();
    expect(saying(channel, "result").length).toBe(1);
  });
});
