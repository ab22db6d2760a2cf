import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { SeenMessage } from "../../sandbox/slack/seen.ts";
import { usualPace } from "../../src/config/policy-schema.ts";
import { redisNow } from "../../src/redis/redis.ts";
import { pendingOf } from "../support/pending.ts";
import { testPolicy } from "../support/start-world.ts";
import { makeDue, minute, startWithChannels, usualSource } from "../features/alerts/sending.ts";
import { pressPayload, sendSigned } from "./forge.ts";
import { hears, wordsOf } from "./words.ts";
import { until } from "../support/until.ts";

const channels = {
  again: usualSource,
  restarted: usualSource,
  early: usualSource,
  anew: usualSource,
  unchanged: usualSource,
  late: usualSource,
  back: usualSource,
  anyway: usualSource,
  typed: usualSource,
};
const start = () =>
  startWithChannels(channels, {
    receive: "http",
    policy: `${testPolicy}approvals: [{ operations: [vm.restart], targets: ["voted-*"], required: 1 }]\n`,
    prepare: ({ edit }) => {
      for (const name of [
        "voted-1",
        "voted-2",
        "spare-1",
        "spare-2",
        "late-1",
        "late-2",
        "anyway-1",
        "typed-1",
      ])
        edit.addVm({ project: "payments", name });
    },
  });
let world: Awaited<ReturnType<typeof start>>;
beforeAll(async () => {
  world = await start();
});
afterAll(() => world.close());

/** How long an alert is watched after a press (ms). */
const { remedyMs } = usualPace;

const isJudged = () => until(() => pendingOf(world.client, world.key, "remedy")).toBe(0);

/** Pretends that the minutes after the newest restart are over. */
async function isTime(): Promise<void> {
  const [request] = await world.store.getMany(await world.store.recentIds({}, 1));
  const { id = "" } = request?.record ?? {};
  const endedAt = (await redisNow(world.client)) - remedyMs;
  await world.client.hset(world.key("request", id), "changedAt", endedAt);
  await makeDue(world, "remedy", id);
}

/** The alerts of one VM, told in a channel of their own. */
async function alertsOn(vm: string, channel: keyof typeof channels) {
  const at = await world.channel(channel);
  /** An alert that began two minutes ago. */
  const began = (now = Date.now()) => ({ vm, startsAt: new Date(now - 120_000).toISOString() });
  let firing = began();
  return {
    ...at,
    /** A new group of the same alert, as one night follows another. Resolves with its message. */
    async fires(groupKey: string): Promise<SeenMessage> {
      const before = new Set(at.cards().map(({ ts }) => ts));
      firing = began();
      await at.fire([firing], groupKey);
      return until(() => at.cards().find(({ ts }) => !before.has(ts)));
    },
    /** Its source speaks again: another of its servers saw the same firing a little earlier. */
    firesOn(groupKey: string) {
      firing = { vm, startsAt: new Date(Date.parse(firing.startsAt) - 1).toISOString() };
      return at.fire([firing], groupKey);
    },
    ends(groupKey: string) {
      const now = Date.now();
      const endsAt = new Date(now).toISOString();
      return at.fire([{ ...began(now), status: "resolved", endsAt }], groupKey);
    },
    async restarts(card: SeenMessage): Promise<void> {
      const before = world.compute.writes().length;
      // The same restart within ten seconds would be the same request.
      const same = await world.client.keys(world.key("same", "*"));
      if (same.length > 0) await world.client.del(...same);
      await world.olivia.presses("Restart…", { in: card.ts });
      await until(() => world.compute.writes()).toHaveLength(before + 1);
      await world.settled();
    },
    /** Presses the button of a restart that must be approved. Resolves with the card that asks for that. */
    async asks(card: SeenMessage): Promise<SeenMessage> {
      await world.olivia.presses("Restart…", { in: card.ts });
      return hears(world.amir, channel, new RegExp(`Restart ${vm}[^]*Waiting for approval`));
    },
  };
}

const told = /still fires, \d+ min after the restart, as far as \w+ has told/;

describe("an alert after a press", () => {
  it("still fires, which its message and its thread say; the next alert and its dialog know it; then one ends", async () => {
    const at = await alertsOn("web-2", "again");
    const first = await at.fires("one");
    await at.restarts(first);
    await at.hears(
      /^🔥 HighCpu on web-2 [^]*\nRestarted web-2 in \d+ s \(olivia, .*\)\. Still firing, as far as again has told\./,
    );
    const goesOn = "HighCpu still fires on web-2; Gatehouse looks again in 5 min.";
    const result = await hears(world.olivia, "again", /^✅ <@U0OLIVIA> [^]*RUNNING read/);
    expect(wordsOf(result)).toContain(goesOn);
    expect(result.text.replace(/ in \d+ s/, "")).toBe(`✅ Restarted web-2. ${goesOn}`);
    await world.vera.types("again", "/gatehouse why web-2");
    await hears(
      world.vera,
      "again",
      /⏳ HighCpu still fires on web-2; Gatehouse looks again in 5 min\./,
    );
    // What a shared card opens
    const [request] = await world.store.getMany(await world.store.recentIds({}, 1));
    const details = {
      action: "request:show",
      value: JSON.stringify({ request: request?.record.id }),
    };
    await sendSigned(world, pressPayload(world, "vera", result, details));
    const opened = await hears(world.vera, "again", /✅ olivia: Restarted web-2/);
    expect(wordsOf(opened)).toContain(goesOn);
    await isTime();
    const still = await at.hears(told);
    expect(still.threadTs).toBe(first.ts);
    expect(wordsOf(still)).toMatch(
      /^🔥 <@U0OLIVIA> HighCpu on web-2 still fires, \d+ min after the restart, as far as again has told: it last spoke at \d+:\d\d [AP]M UTC\.\n\[Graph\]$/,
    );
    await isJudged();
    expect(wordsOf(at.cards().at(-1) ?? first)).not.toContain("didn't help");
    await at.firesOn("one");
    await at.hears(/^🔥 [^]*\nA restart didn't help the last time\.\n[^]*\. Still firing\.$/m);
    await isJudged();
    await at.ends("one");
    // It ended long after the restart, so nobody is said to have ended it.
    await at.hears(/^✅ HighCpu on web-2 ended after \d+ min\.$/);

    const second = await at.fires("two");
    expect(wordsOf(second)).toContain("\nA restart didn't help the last time.\n");
    expect(JSON.stringify(second.blocks)).toMatch(
      /"What runs there is interrupted\. Last change with Gatehouse: olivia restarted it, [^.]+ before the alert came\. A restart didn't help the last time\."/,
    );
    await at.restarts(second);
    await isTime();
    await until(() => at.thread(second).some((words) => told.test(words)));
    await at.firesOn("two");
    await at.hears(/^🔥 [^]*\nA restart didn't help the last 2 times\.\n/);
    await isJudged();
    await at.ends("two");

    const third = await at.fires("three");
    expect(wordsOf(third)).toContain("\nA restart didn't help the last 2 times.\n");
    await at.restarts(third);
    await at.ends("three");
    await world.vera.types("again", "/gatehouse why web-2");
    expect(wordsOf(await hears(world.vera, "again", /web-2 is [^]*\[Show\]/))).not.toContain(
      "looks again",
    );
    await at.hears(/^✅ HighCpu on web-2 ended after \d+ min; olivia had restarted it\.$/);
    await isTime();
    await isJudged();
    const fourth = await at.fires("four");
    expect(wordsOf(fourth)).toMatch(/\nLast time a restart ended it \(\d+:\d\d [AP]M UTC\)\.\n/);

    const all = world.vera.seesChannel("again").messages.filter((one) => told.test(wordsOf(one)));
    expect(all).toHaveLength(2);
    const mentions = world.olivia.mentions().filter(({ channelId }) => channelId === at.id);
    expect(mentions.filter(({ text }) => told.test(text))).toHaveLength(2);
  });

  it("is helped, or not, by a change that was typed elsewhere: message, thread, advice, and the night agree", async () => {
    const at = await alertsOn("typed-1", "typed");
    const typesRestart = async () => {
      const before = world.compute.writes().length;
      const same = await world.client.keys(world.key("same", "*"));
      if (same.length > 0) await world.client.del(...same);
      await world.olivia.types("ops", "/vm restart typed-1");
      await until(() => world.compute.writes()).toHaveLength(before + 1);
      await world.settled();
    };
    const first = await at.fires("one");
    await typesRestart();
    await at.hears(
      /^🔥 HighCpu on typed-1 [^]*\nRestarted typed-1 in \d+ s \(olivia, .*\)\. Still firing/,
    );
    await isTime();
    expect((await at.hears(told)).threadTs).toBe(first.ts);
    await at.firesOn("one");
    await at.hears(/^🔥 [^]*\nA restart didn't help the last time\.\n[^]*\. Still firing\.$/m);
    await isJudged();
    await at.ends("one");
    const second = await at.fires("two");
    await typesRestart();
    await at.ends("two");
    await at.hears(/^✅ HighCpu on typed-1 ended after \d+ min; olivia had restarted it\.$/);
    await isTime();
    await isJudged();
    expect(at.thread(second).join("\n")).not.toMatch(told);

    await world.vera.types("typed", "/gatehouse night 1h");
    const night = wordsOf(await hears(world.vera, "typed", /The night since/));
    const about = night.split("\n").filter((line) => /typed-1/.test(line));
    // Each firing began two minutes before it was told.
    expect(about.map((line) => line.replace(/^.*? UTC /, ""))).toEqual([
      expect.stringMatching(/^✅ HighCpu on typed-1 ended .* says typed\.$/),
      expect.stringMatching(/^✅ HighCpu on typed-1 ended .* says typed\.$/),
      expect.stringMatching(/^✅ olivia restarted typed-1 in \d+ s\.$/),
      "🔥 HighCpu went on after the vm restart of typed-1 by olivia.",
      expect.stringMatching(/^✅ olivia restarted typed-1 in \d+ s\.$/),
      "✅ HighCpu ended after the vm restart of typed-1 by olivia.",
    ]);
  });

  it("isn't said to have ended by a restart before whose call it ended", async () => {
    const at = await alertsOn("voted-1", "early");
    const asked = await at.asks(await at.fires("one"));
    await at.ends("one");
    await at.hears(/^✅ HighCpu on voted-1 ended after \d+ min\.$/);
    await world.amir.presses("Approve", { in: asked.ts });
    expect((await world.ended("vm restart")).state).toBe("done");
    await isTime();
    await isJudged();
    expect(wordsOf(await at.fires("two"))).not.toMatch(/ended it/);
  });

  it("isn't said to have been ended by a restart that came after the end, which was told later", async () => {
    const at = await alertsOn("late-1", "late");
    const card = await at.fires("one");
    const endsAt = new Date(Date.now() - 3_000).toISOString();
    await at.restarts(card);
    await at.fire([{ vm: "late-1", startsAt: minute(0), endsAt, status: "resolved" }], "one");
    expect(wordsOf(await at.hears(/^✅ HighCpu on late-1 ended/))).not.toContain("had restarted");
    await isTime();
    await isJudged();
    expect(wordsOf(await at.fires("two"))).not.toMatch(/ended it/);

    const startsAt = new Date().toISOString();
    await at.fire([{ vm: "late-1", startsAt }], "one");
    await at.hears(/^🔥 [^]*\nRestarted late-1 [^\n]*\. Firing again\.$/m);
    const over = { status: "resolved", startsAt, endsAt: new Date().toISOString() } as const;
    await at.fire([{ vm: "late-1", ...over }], "one");
    // That firing began after the restart.
    const ends = () => at.thread(card).filter((words) => words.startsWith("✅ HighCpu"));
    await until(() => ends().length).toBe(2);
    expect(ends().join("\n")).not.toContain("had restarted");
  });

  it("has ended in time though it was told late: that it still fires is taken back", async () => {
    const at = await alertsOn("late-2", "back");
    const card = await at.fires("one");
    await at.restarts(card);
    const endsAt = new Date().toISOString();
    await isTime();
    await until(() => at.thread(card).some((words) => told.test(words)));
    await at.fire([{ vm: "late-2", startsAt: minute(0), endsAt, status: "resolved" }], "one");
    await until(() =>
      at
        .thread(card)
        .some((words) => /HighCpu on late-2 had ended after the restart; back told it/.test(words)),
    );
    await isJudged();
    expect(wordsOf(await at.fires("two"))).toMatch(/Last time a restart ended it/);
  });

  it("didn't end by it, if its source tells later that it fires on", async () => {
    const at = await alertsOn("anyway-1", "anyway");
    await at.restarts(await at.fires("one"));
    await at.ends("one");
    await at.hears(/^✅ HighCpu on anyway-1 ended after \d+ min; olivia had restarted it\.$/);
    await isTime();
    await isJudged();
    await at.firesOn("one");
    await at.hears(/^🔥 [^]*\nA restart didn't help the last time\.\n[^]*\. Still firing\.$/m);
    await isJudged();
    expect(at.cards().map(wordsOf).join("\n")).not.toContain("ended it");
  });

  it("is told under the new message of an alert that ended and fires anew", async () => {
    const at = await alertsOn("voted-2", "anew");
    const asked = await at.asks(await at.fires("one"));
    await at.ends("one");
    const [request] = await world.store.getMany(await world.store.recentIds({}, 1));
    const origin = request?.record.origin;
    if (origin?.kind !== "alert") throw new Error("no alert made it");
    // A group that fires again long after its end gets a new message.
    await world.client.hincrby(world.key("alert", origin.alert), "changedAt", -11 * 60_000);
    const anew = await at.fires("one");
    await world.amir.presses("Approve", { in: asked.ts });
    expect((await world.ended("vm restart")).state).toBe("done");
    await isTime();
    const said = await at.hears(/fires again, \d+ min after the restart\./);
    expect(said.threadTs).toBe(anew.ts);
    await isJudged();
    // The firing that the press was about had ended before, so nobody knows whether it helped.
    expect(at.cards().map(wordsOf).join("\n")).not.toContain("didn't help");
  });

  it("isn't judged by a request that changed nothing, and a snapshot is no attempt to end it", async () => {
    const at = await alertsOn("spare-1", "unchanged");
    const card = await at.fires("one");
    await world.olivia.presses("Snapshot", { in: card.ts });
    await world.ended("vm snapshot");
    world.compute.weather({ match: "POST /v1/vms/:id/restart", status: 400, times: 1 });
    const before = new Set(await world.client.keys(world.key("remedy", "*")));
    await world.olivia.presses("Restart…", { in: card.ts });
    expect((await world.ended("vm restart")).state).toBe("rejected");
    await isJudged();
    const shown = await at.hears(/✅ Took a snapshot of [^]*❌ Restart of spare-1/);
    expect(wordsOf(shown)).not.toMatch(/Still firing|didn't help/);
    const after = await world.client.keys(world.key("remedy", "*"));
    const [remedy = "", ...others] = after.filter((one) => !before.has(one));
    expect([await world.client.hget(remedy, "state"), others]).toEqual(["void", []]);
  });

  it("is followed by the next process when the one that took the press has ended, and told once", async () => {
    const at = await alertsOn("spare-2", "restarted");
    const card = await at.fires("one");
    await at.restarts(card);
    await world.processes[0]?.close();
    await world.startProcess("worker");
    await world.startProcess("worker");
    await isTime();
    const said = await at.hears(told);
    await isJudged();
    expect(at.thread(card).filter((words) => told.test(words))).toHaveLength(1);
    expect(said.threadTs).toBe(card.ts);
  });
});
