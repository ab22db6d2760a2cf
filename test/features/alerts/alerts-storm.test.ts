import { describe, expect, it } from "vitest";
import { createAlerts, detailsOf } from "../../../src/features/alerts/alerts.ts";
import { parseBoard } from "../../../src/redis/board.ts";
import { hears, wordsOf } from "../../stories/words.ts";
import { type TestWorld } from "../../support/start-world.ts";
import {
  alertmanagerBody,
  bearer,
  send,
  startAlertWorld,
  fire,
  inChannel,
  isQuiet,
} from "./sending.ts";
import { until } from "../../support/until.ts";

const inChannelAndThreads = (world: TestWorld, channel = "ops") =>
  world.ada.seesChannel(channel).messages.map(wordsOf);

describe("a storm of alerts", () => {
  it("shows in its shared message who works on it, and that changes are frozen", async () => {
    await using world = await startAlertWorld();
    const names = Array.from({ length: 60 }, (_, n) => `Storm${n}`);
    await Promise.all(names.map((name) => fire(world, [{ name }], { groupKey: name })));
    const shared = await hears(world.olivia, "ops", /\d+ alert groups firing/);
    const value = /"value":"((?:[^"\\]|\\.)*vm\.restart(?:[^"\\]|\\.)*)"/;
    const [, restart = ""] = value.exec(JSON.stringify(shared.blocks)) ?? [];
    await world.olivia.chooses("menu", restart.replaceAll("\\", ""), { in: shared.ts });
    await hears(world.olivia, "ops", /Restart web-2\? What runs there is interrupted/);
    await world.olivia.presses("Restart", { channel: "ops" });
    const told =
      /alert groups firing[^]*web-2 in payments is RUNNING as of[^]*\nRestarted web-2 in \d+ s \(olivia, .*\)\. Still firing\./;
    expect((await hears(world.vera, "ops", told)).ts).toBe(shared.ts);
    await world.ada.types("ops", "/gatehouse freeze drill");
    const frozen = /alert groups firing[^]*All changes are frozen by ada: drill\./;
    expect((await hears(world.vera, "ops", frozen)).ts).toBe(shared.ts);
  });

  it("whose shared message is gone from Redis continues: a firing group gets its own message", async () => {
    await using world = await startAlertWorld();
    const names = Array.from({ length: 20 }, (_, n) => `Storm${n}`);
    await Promise.all(names.map((name) => fire(world, [{ name }], { groupKey: name })));
    await hears(world.olivia, "ops", /\d+ alert groups firing/);
    await isQuiet(world);
    const [overview = ""] = await world.client.keys(world.key("alert", "o-*"));
    const board = parseBoard("", await world.client.hgetall(overview));
    await world.client.del(overview);
    const alert = await createAlerts(world.client, world.key).get(board?.memberIds[0] ?? "");
    const name = alert ? (detailsOf(alert.record.group)[0]?.name ?? "") : "";
    const own = () => inChannel(world).filter((one) => wordsOf(one).startsWith(`🔥 ${name} on`));
    expect(own()).toEqual([]);
    await fire(world, [{ name }, { name, vm: "db-1" }], { groupKey: name });
    await until(() => own().length).toBe(1);
    await isQuiet(world);
    expect(own()).toHaveLength(1);
  });

  it("is shown or counted completely, in few messages, and a restart meanwhile is told at once", async () => {
    await using world = await startAlertWorld();
    const groups = 120;
    const all = Array.from({ length: groups }, (_, n) =>
      fire(world, [{ name: `Storm${n}`, vm: n % 2 === 0 ? "web-2" : `gone-${n}` }], {
        groupKey: `storm-${n}`,
      }),
    );
    await Promise.all(all);
    const began = performance.now();
    await world.olivia.types("ops", "/vm restart db-1");
    await hears(world.olivia, "ops", /Restarted db-1/);
    expect(performance.now() - began).toBeLessThan(8_000);
    const shared = await hears(world.olivia, "ops", /\d+ alert groups firing/);
    const counted = () => {
      const own = inChannel(world).filter((one) => /^🔥 Storm\d+/.test(wordsOf(one)));
      const others = inChannel(world).flatMap(
        (one) => /(\d+) alert groups? firing/.exec(wordsOf(one))?.[1] ?? [],
      );
      return own.length + others.reduce((sum, one) => sum + Number(one), 0);
    };
    await until(counted).toBe(groups);
    expect(inChannel(world).length).toBeLessThan(30);
    expect(wordsOf(shared)).toMatch(/Storm\d+ on/);
    await Promise.all(
      Array.from({ length: groups }, (_, n) =>
        fire(
          world,
          [{ name: `Storm${n}`, vm: n % 2 === 0 ? "web-2" : `gone-${n}`, status: "resolved" }],
          {
            groupKey: `storm-${n}`,
          },
        ),
      ),
    );
    await hears(world.olivia, "ops", /All \d+ alert groups of this message have ended/);
  });

  it("whose threads wait for their turns is overtaken by the card of a restart", async () => {
    await using world = await startAlertWorld({ compute: { transitionMs: 20_000 } });
    const names = ["One", "Two", "Three", "Four"];
    const tell = (vms: readonly string[]) =>
      Promise.all(
        names.map((name) =>
          fire(
            world,
            vms.map((vm) => ({ name, vm })),
            { groupKey: name },
          ),
        ),
      );
    await tell(["web-2"]);
    for (const name of names) await hears(world.olivia, "ops", new RegExp(`^🔥 ${name} on web-2`));
    await tell(["web-2", "gone-1"]);
    await tell(["web-2", "gone-1", "gone-2"]);
    const joined = () =>
      world.ada.seesChannel("ops").messages.filter((one) => wordsOf(one).endsWith(" too.")).length;
    const before = joined();
    await world.olivia.types("ops", "/vm restart db-1");
    await hears(world.olivia, "ops", /Restarting db-1/);
    expect(joined() - before).toBeLessThan(names.length);
    const told = () => inChannelAndThreads(world).filter((one) => one.includes("gone-2")).length;
    await until(told).toBeGreaterThanOrEqual(2 * names.length);
    await isQuiet(world);
    // Both VMs that joined meanwhile are told, in one message if the first one was still waiting.
    for (const name of names)
      expect(
        inChannelAndThreads(world)
          .filter((one) => one.startsWith(`🔥 ${name} fires on`))
          .join(),
      ).toMatch(/gone-1.*gone-2/);
  });

  it("over its source's limit is answered with 503, never 429, so that the source repeats it", async () => {
    await using world = await startAlertWorld();
    const at = Date.now();
    const places = Array.from({ length: 3_000 }, (_, n) => [at + n / 1_000, `before-${n}`]).flat();
    await world.client.zadd(world.key("rate", "api", "sources.prometheus"), ...places.map(String));
    const sent = await send(world, "prometheus", alertmanagerBody([{}]), bearer());
    expect(sent.status).toBe(503);
  });
});
