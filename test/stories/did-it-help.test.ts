import { describe, expect, it } from "vitest";
import type { SeenMessage } from "../../sandbox/slack/seen.ts";
import { pendingOf } from "../support/pending.ts";
import { testPolicy, type TestWorld } from "../support/start-world.ts";
import { fire, sources, startAlertWorld } from "../features/alerts/sending.ts";
import { hears, wordsOf } from "./words.ts";
import { until } from "../support/until.ts";

/** How long the alert is watched after a press, in place of five minutes. */
const remedyMs = 2_500;
const start = (more = "") =>
  startAlertWorld({ pace: { remedyMs }, policy: `${testPolicy}${sources}${more}` });
const restartsNeedOne = "approvals: [{ operations: [vm.restart], required: 1, expires: 1m }]\n";

/** An alert that began two minutes ago. */
const began = (now = Date.now()) => ({ startsAt: new Date(now - 120_000).toISOString() });

const isJudged = (world: TestWorld) =>
  until(() => pendingOf(world.client, world.key, "remedy")).toBe(0);

/** A new group of the same alert, as one night follows another. Resolves with its message. */
async function fires(world: TestWorld, groupKey: string): Promise<SeenMessage> {
  const before = new Set(world.ada.seesChannel("ops").messages.map(({ ts }) => ts));
  await fire(world, [began()], { groupKey });
  const isNew = ({ ts, threadTs }: SeenMessage) => threadTs === undefined && !before.has(ts);
  await world.ada.until(() => world.ada.seesChannel("ops").messages.some(isNew));
  const found = world.ada.seesChannel("ops").messages.find(isNew);
  if (!found) throw new Error("no message");
  return found;
}

async function restarts(world: TestWorld, card: SeenMessage): Promise<void> {
  const before = world.compute.writes().length;
  await world.olivia.presses("Restart…", { in: card.ts });
  await until(() => world.compute.writes()).toHaveLength(before + 1);
  await world.settled();
}

function ends(world: TestWorld, groupKey: string) {
  const now = Date.now();
  const endsAt = new Date(now).toISOString();
  return fire(world, [{ ...began(now), status: "resolved", endsAt }], { groupKey });
}

/** Presses the button of a restart that must be approved. Resolves with the card that asks for that. */
async function asksFor(world: TestWorld, card: SeenMessage): Promise<SeenMessage> {
  await world.olivia.presses("Restart…", { in: card.ts });
  return hears(world.amir, "ops", /Restart web-2[^]*Waiting for approval/);
}

const told = /still fires, \d+ s after the restart\./;

describe.concurrent("an alert after a press", () => {
  it("still fires, which its message and its thread say; the next alert and its dialog know it; then one ends", async () => {
    await using world = await start();
    const first = await fires(world, "one");
    await restarts(world, first);
    await hears(
      world.vera,
      "ops",
      /^🔥 HighCpu on web-2 [^]*\nRestarted web-2 in \d+ s \(olivia, .*\)\. Still firing\./,
    );
    const still = await hears(world.vera, "ops", told);
    expect(still.threadTs).toBe(first.ts);
    expect(wordsOf(still)).toMatch(
      /^🔥 <@U0OLIVIA> HighCpu on web-2 still fires, \d+ s after the restart\. A restart didn't help\.\n\[Graph\]$/,
    );
    await hears(world.vera, "ops", /^🔥 [^]*\nA restart didn't help the last time\.\n/);
    await isJudged(world);
    await ends(world, "one");
    // It ended long after the restart, so nobody is said to have ended it.
    await hears(world.vera, "ops", /^✅ HighCpu on web-2 ended after 2 min\.$/);

    const second = await fires(world, "two");
    expect(wordsOf(second)).toContain("\nA restart didn't help the last time.\n");
    expect(JSON.stringify(second.blocks)).toMatch(
      /"What runs there is interrupted\. Last change: olivia restarted it, \d+ s before the alert came\. A restart didn't help the last time\."/,
    );
    // The same restart within ten seconds would be the same request.
    await world.client.del(...(await world.client.keys(world.key("same", "*"))));
    await restarts(world, second);
    await hears(world.vera, "ops", /A restart didn't help; it didn't the last time either\./);
    await isJudged(world);
    await ends(world, "two");

    const third = await fires(world, "three");
    expect(wordsOf(third)).toContain("\nA restart didn't help the last 2 times.\n");
    await world.client.del(...(await world.client.keys(world.key("same", "*"))));
    await restarts(world, third);
    await ends(world, "three");
    await hears(
      world.vera,
      "ops",
      /^✅ HighCpu on web-2 ended after 2 min; olivia had restarted it\.$/,
    );
    await isJudged(world);
    const fourth = await fires(world, "four");
    expect(wordsOf(fourth)).toMatch(/\nLast time a restart ended it \(\d+:\d\d [AP]M UTC\)\.\n/);

    const all = world.vera.seesChannel("ops").messages.filter((one) => told.test(wordsOf(one)));
    expect(all).toHaveLength(2);
    expect(
      world.olivia
        .mentions()
        .map(({ text }) => text)
        .filter((text) => told.test(text)),
    ).toHaveLength(2);
  });

  it("is followed by the next process when the one that took the press has ended, and told once", async () => {
    await using world = await start();
    const card = await fires(world, "one");
    await restarts(world, card);
    await world.processes[0]?.close();
    await world.startProcess("all");
    await world.startProcess("all");
    await hears(world.vera, "ops", told);
    await isJudged(world);
    const all = world.vera.seesChannel("ops").messages.filter((one) => told.test(wordsOf(one)));
    expect(all.map(({ threadTs }) => threadTs)).toEqual([card.ts]);
  });

  it("that ended before the restart was sent isn't said to have ended by it", async () => {
    await using world = await start(restartsNeedOne);
    const asked = await asksFor(world, await fires(world, "one"));
    await ends(world, "one");
    await hears(world.vera, "ops", /^✅ HighCpu on web-2 ended after 2 min\.$/);
    await world.amir.presses("Approve", { in: asked.ts });
    expect((await world.ended("vm restart")).state).toBe("done");
    await isJudged(world);
    expect(wordsOf(await fires(world, "two"))).not.toMatch(/ended it/);
  });

  it("that ended and fires anew under a new message is told there", async () => {
    await using world = await start(restartsNeedOne);
    const asked = await asksFor(world, await fires(world, "one"));
    await ends(world, "one");
    const [request] = await world.store.getMany(await world.store.recentIds({}, 1));
    const origin = request?.record.origin;
    if (origin?.kind !== "alert") throw new Error("no alert made it");
    // A group that fires again long after its end gets a new message.
    await world.client.hincrby(world.key("alert", origin.alert), "changedAt", -11 * 60_000);
    const anew = await fires(world, "one");
    await world.amir.presses("Approve", { in: asked.ts });
    const said = await hears(world.vera, "ops", /fires again, \d+ s after the restart\./);
    expect(said.threadTs).toBe(anew.ts);
    await hears(world.vera, "ops", /^🔥 [^]*\nA restart didn't help the last time\.\n/);
    await isJudged(world);
  });

  it("isn't judged by a request that changed nothing, and a snapshot is no attempt to end it", async () => {
    await using world = await start();
    const card = await fires(world, "one");
    await world.olivia.presses("Snapshot", { in: card.ts });
    await world.ended("vm snapshot");
    world.compute.weather({ match: "POST /v1/vms/:id/restart", status: 400, times: 1 });
    await world.olivia.presses("Restart…", { in: card.ts });
    expect((await world.ended("vm restart")).state).toBe("rejected");
    await isJudged(world);
    const shown = await hears(world.vera, "ops", /✅ Took a snapshot of [^]*❌ Restart of web-2/);
    expect(wordsOf(shown)).not.toMatch(/Still firing|didn't help/);
    const [remedy = "", ...others] = await world.client.keys(world.key("remedy", "*"));
    expect([await world.client.hget(remedy, "state"), others]).toEqual(["void", []]);
  });
});
