import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { seenUnderWay } from "../support/pass-time.ts";
import { startWorld, type TestWorld } from "../support/start-world.ts";
import { until } from "../support/until.ts";
import { wordsOf } from "./words.ts";

let world: TestWorld;
beforeAll(async () => {
  // While Slack refuses the token nobody can be looked up, so what is known of her must last
  world = await startWorld({ pace: { peopleCacheMs: 3_600_000 } });
});
afterAll(() => world.close());

/** What stood in #ops before a test. */
const former = new Set<string>();
beforeEach(() => {
  for (const { ts } of world.olivia.seesChannel("ops").messages) former.add(ts);
});

/** Messages in #ops that say it, edits not counted. */
const saying = (words: RegExp) =>
  world.olivia
    .seesChannel("ops")
    .messages.filter((message) => !former.has(message.ts) && words.test(wordsOf(message)));

const toldOnce = async (vm: string) => {
  await until(() => saying(/requested by olivia/i)).toHaveLength(1);
  await until(() => saying(new RegExp(`Restarted ${vm}`))).toHaveLength(1);
  await world.settled();
  expect(saying(new RegExp(`Restarted ${vm}`))).toHaveLength(1);
};

describe("a bot token that Slack refuses", () => {
  it.each([
    ["before anything is posted", "web-2"],
    ["after the card was posted", "db-1"],
  ])("keeps what is owed until it works again, once each: refused %s", async (when, vm) => {
    await world.olivia.types("ops", `/vm show ${vm}`);
    await world.olivia.until((seen) => JSON.stringify(seen).includes(`vm-payments-${vm}`));
    const { app } = world.slack;
    const { botToken } = app;
    const refuse = () => void (app.botToken = "xoxb-sandbox-of-another-day");
    // It restarts until its card is there, or the token is refused
    const storm = { match: "POST /v1/vms/*/restart", stuck: true, via: "REBOOTING", times: 1 };
    world.compute.weather(storm);
    if (when.startsWith("before")) refuse();
    await world.olivia.types("ops", `/vm restart ${vm}`);
    await world.compute.called("POST /v1/vms/*/restart");
    if (when.startsWith("after")) {
      await world.olivia.until(() => saying(new RegExp(`Restart\\S* ${vm}`)).length > 0);
      refuse();
    }
    await seenUnderWay(world);
    world.compute.edit.setStatus({ vm, status: "RUNNING" });
    const states = async () =>
      (await world.store.getMany(await world.store.recentIds({}, 1))).map(({ state }) => state);
    await until(() => states()).toEqual(["done"]);
    // It is tried, and refused
    world.slack.forgetCalls();
    await until(() => world.slack.calls().length).toBeGreaterThan(0);
    expect(saying(new RegExp(`Restarted ${vm}`))).toEqual([]);
    app.botToken = botToken;
    await toldOnce(vm);
    expect(world.compute.writes()).toHaveLength(1);
    world.compute.forget();
  });

  it.each([
    ["account_inactive", "payments/web-1"],
    ["missing_scope", "staging/web-1"],
  ])("is waited for like one that is refused for another reason: %s", async (error, vm) => {
    world.slack.weather.add({ method: "chat.postMessage", kind: "error", error, times: 1 });
    await world.olivia.types("ops", `/vm restart ${vm}`);
    await toldOnce(vm);
  });
});
