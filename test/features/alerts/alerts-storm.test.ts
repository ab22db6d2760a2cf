import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createAlerts, detailsOf } from "../../../src/features/alerts/alerts.ts";
import { parseBoard } from "../../../src/redis/board.ts";
import { wordsOf } from "../../stories/words.ts";
import { until } from "../../support/until.ts";
import {
  alertmanagerBody,
  fireTogether,
  holdPosts,
  inChannel,
  makeDue,
  send,
  startWithChannels,
  usualSource,
} from "./sending.ts";

const storm = (prefix: string, count: number) =>
  Array.from({ length: count }, (_, n) => ({ name: `${prefix}${n}` }));

const channels = { worked: usualSource, lost: usualSource, ended: usualSource, line: usualSource };
const start = () => startWithChannels(channels);
let world: Awaited<ReturnType<typeof start>>;
beforeAll(async () => {
  world = await start();
});
afterAll(() => world.close());

describe("a storm of alerts", () => {
  it("continues when its shared message is gone from Redis: a firing group gets its own message", async () => {
    const at = await world.channel("lost");
    await fireTogether(world, storm("Lost", 4), { source: "lost", channel: "lost" });
    const [overview = ""] = await world.client.keys(world.key("alert", "o-*"));
    await until(async () => (await world.client.hget(overview, "card")) ?? undefined);
    const board = parseBoard("", await world.client.hgetall(overview));
    await world.client.del(overview);
    const alert = await createAlerts(world.client, world.key).get(board?.memberIds[0] ?? "");
    const name = alert ? (detailsOf(alert.record.group)[0]?.name ?? "") : "";
    const own = () => at.cards().filter((one) => wordsOf(one).startsWith(`🔥 ${name} on`));
    expect(own()).toEqual([]);
    await at.fire([{ name }, { name, vm: "db-1" }], name);
    await until(() => own().length).toBe(1);
    await at.quiet();
    expect(own()).toHaveLength(1);
  });

  it("is one message that counts each group, and says when all have ended", async () => {
    const at = await world.channel("ended");
    const names = storm("Ended", 5);
    const shared = await fireTogether(world, names, { source: "ended", channel: "ended" });
    expect(wordsOf(shared)).toMatch(/Ended\d+ on|Ended\d+: /);
    expect(at.cards().map(({ ts }) => ts)).toEqual([shared.ts]);
    await at.fire([{ name: "Ended0", status: "resolved" }], "Ended0");
    await at.hears(/^🔥 4 alert groups firing/);
    for (const { name } of names) await at.fire([{ name, status: "resolved" }], name);
    expect((await at.hears(/All 5 alert groups of this message have ended/)).ts).toBe(shared.ts);
    await at.quiet();
    expect(at.cards()).toHaveLength(1);
  });

  it("lets the card of a restart overtake its threads in the line of the channel", async () => {
    const at = await world.channel("line");
    const names = ["One", "Two"];
    const tell = async (vms: readonly string[]) => {
      const fired = [];
      for (const name of names)
        fired.push(
          await at.fire(
            vms.map((vm) => ({ name, vm })),
            name,
          ),
        );
      return fired.map(({ alert }) => String(alert));
    };
    const ids = await tell(["web-2"]);
    for (const name of names) await at.hears(new RegExp(`^🔥 ${name} on web-2`));
    await at.quiet();
    const letPosts = await holdPosts(world, at.id);
    await tell(["web-2", "gone-1"]);
    const line = () => world.client.zrange(world.key("line", "post", at.id), "0", "-1");
    await until(line).toHaveLength(2);
    await world.olivia.types("line", "/vm restart db-1");
    await until(line).toHaveLength(3);
    expect(await line()).toEqual([
      expect.stringMatching(/^request r-/),
      expect.stringMatching(/^alert a-/),
      expect.stringMatching(/^alert a-/),
    ]);
    // What joined meanwhile is told in the message that was still waiting.
    await tell(["web-2", "gone-1", "gone-2"]);
    await letPosts();
    await makeDue(world, "alert", ...ids);
    for (const name of names) {
      const told = await at.hears(new RegExp(`^🔥 ${name} fires on gone-1, gone-2 too\\.$`));
      const card = at.cards().find(({ ts }) => ts === told.threadTs);
      expect(at.thread(card ?? told)).toHaveLength(1);
    }
  });

  it("shows in its shared message who works on it, and that changes are frozen", async () => {
    const at = await world.channel("worked");
    const shared = await fireTogether(world, storm("Worked", 3), {
      source: "worked",
      channel: "worked",
    });
    const value = /"value":"((?:[^"\\]|\\.)*vm\.restart(?:[^"\\]|\\.)*)"/;
    const [, restart = ""] = value.exec(JSON.stringify(shared.blocks)) ?? [];
    await world.olivia.chooses("menu", restart.replaceAll("\\", ""), { in: shared.ts });
    await at.hears(/Restart web-2\? What runs there is interrupted/);
    await world.olivia.presses("Restart", { channel: "worked" });
    const told =
      /alert groups firing[^]*web-2 in payments is RUNNING as of[^]*\nRestarted web-2 in \d+ s \(olivia, .*\)\. Still firing, as far as worked has told\./;
    expect((await at.hears(told, world.vera)).ts).toBe(shared.ts);
    await world.ada.types("worked", "/gatehouse freeze drill");
    const frozen = /alert groups firing[^]*All changes are frozen by ada: drill\./;
    expect((await at.hears(frozen, world.vera)).ts).toBe(shared.ts);
  });

  it("is answered with 503 over its source's limit, never 429, so that the source repeats it", async () => {
    const now = Date.now();
    const places = Array.from({ length: 3_000 }, (_, n) => [now + n / 1_000, `before-${n}`]).flat();
    await world.client.zadd(world.key("rate", "api", "sources.prometheus"), ...places.map(String));
    const sent = await send(world, "prometheus", alertmanagerBody([{}]));
    expect(sent.status).toBe(503);
    expect(inChannel(world)).toEqual([]);
  });
});
