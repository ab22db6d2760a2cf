import { describe, expect, it } from "vitest";
import { startWorld, type TestWorld } from "../support/start-world.ts";
import { wordsOf } from "./words.ts";
import { until } from "../support/until.ts";

/** Messages in #ops that say it, edits not counted. */
const saying = (world: TestWorld, words: RegExp) =>
  world.olivia.seesChannel("ops").messages.filter((message) => words.test(wordsOf(message)));

const toldOnce = async (world: TestWorld, vm: string) => {
  const result = new RegExp(`Restarted ${vm}`);
  await world.olivia.until(() => saying(world, result).length > 0);
  await until(() => saying(world, /requested by olivia/)).toHaveLength(1);
  expect(saying(world, result)).toHaveLength(1);
};

describe("a bot token that Slack refuses", () => {
  it.concurrent.each(["before anything is posted", "after the card was posted"])(
    "keeps what is owed until it works again, once each: refused %s",
    async (when) => {
      // While Slack refuses the token nobody can be looked up, so what is known of her must last
      await using world = await startWorld({ pace: { peopleCacheMs: 600_000 } });
      await world.olivia.types("ops", "/vm show web-2");
      await world.olivia.until((seen) => JSON.stringify(seen).includes("RUNNING"));
      const { app } = world.slack;
      const { botToken } = app;
      const refuse = () => void (app.botToken = "xoxb-sandbox-of-another-day");
      if (when.startsWith("before")) refuse();
      else void world.compute.called("POST /v1/vms/*/restart").then(refuse);
      await world.olivia.types("ops", "/vm restart web-2");
      await world.compute.called("POST /v1/vms/*/restart");
      const states = async () =>
        (await world.store.getMany(await world.store.recentIds({}, 5))).map(({ state }) => state);
      await until(() => states()).toEqual(["done"]);
      // Longer than a try takes
      world.slack.forgetCalls();
      const tries = () => world.slack.calls().length;
      await until(() => tries()).toBeGreaterThan(0);
      expect(saying(world, /Restarted web-2/)).toEqual([]);
      app.botToken = botToken;
      await toldOnce(world, "web-2");
      expect(world.compute.writes()).toHaveLength(1);
    },
  );

  it.concurrent.each(["account_inactive", "missing_scope"])(
    "is no other than %s",
    async (error) => {
      await using world = await startWorld();
      world.slack.weather.add({ method: "chat.postMessage", kind: "error", error, times: 1 });
      await world.olivia.types("ops", "/vm restart web-2");
      await toldOnce(world, "web-2");
    },
  );
});
