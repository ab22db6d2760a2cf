import { describe, expect, it } from "vitest";
import { calledFor } from "../../../src/features/alerts/sources.ts";
import { hears, wordsOf } from "../../stories/words.ts";
import { testPolicy, type TestWorld } from "../../support/start-world.ts";
import { channelNamed, fire, inChannel, isQuiet, sources, startAlertWorld } from "./sending.ts";

const policy = `${testPolicy}${sources}`.replace(
  "offer: [vm.snapshot] }",
  'offer: [vm.snapshot], notify: { critical: ["S01ONCALL"], warning: ["U0AMIR"] } }',
);

/** How often messages were posted with a mention of the group, in the channel and its threads. */
const calls = (world: TestWorld, channel = "ops") =>
  world.ada
    .seesChannel(channel)
    .messages.filter(({ blocks }) => JSON.stringify(blocks).includes("<!subteam^S01ONCALL>"));

describe.concurrent("whom a source calls", () => {
  it("are those of the severity, whatever its case, otherwise those of all others, each once", () => {
    const notify = { critical: ["S01ONCALL", "U0ADA"], "*": ["U0AMIR"] };
    expect(calledFor({ notify }, ["Critical", "critical"])).toEqual(["S01ONCALL", "U0ADA"]);
    expect(calledFor({ notify }, ["", "critical"])).toEqual(["U0AMIR", "S01ONCALL", "U0ADA"]);
    expect(calledFor({ notify: { critical: ["U0ADA"] } }, ["warning"])).toEqual([]);
  });

  it("are mentioned once, by the first message of a group, however often that is edited and fires again", async () => {
    await using world = await startAlertWorld({ policy });
    await fire(world, [{}]);
    const card = await hears(world.olivia, "ops", /HighCpu on web-2/);
    await isQuiet(world);
    expect(world.olivia.mentions()).toHaveLength(1);
    await fire(world, [{}, { vm: "db-1" }]);
    await hears(world.olivia, "ops", /HighCpu fires on db-1 too/);
    const over = { status: "resolved" } as const;
    await fire(world, [over, { vm: "db-1", ...over }]);
    await hears(world.olivia, "ops", /^✅ HighCpu [^]*Ended/);
    await fire(world, [{}]);
    await hears(world.olivia, "ops", /🔥 Fires again: HighCpu on web-2\./);
    await isQuiet(world);
    expect(calls(world).map(({ ts }) => ts)).toEqual([card.ts]);
    expect(world.olivia.mentions()).toHaveLength(1);
    expect(world.amir.mentions()).toEqual([]);
  });

  it("are called in the thread when the alert gets more severe", async () => {
    await using world = await startAlertWorld({ policy });
    await fire(world, [{ severity: "warning" }]);
    const card = await hears(world.olivia, "ops", /HighCpu on web-2/);
    await isQuiet(world);
    expect([world.amir.mentions().length, world.olivia.mentions().length]).toEqual([1, 0]);
    await fire(world, [{ severity: "critical" }]);
    const call = await hears(world.olivia, "ops", /^🔥 <.*> HighCpu on web-2 · critical$/);
    expect(call.threadTs).toBe(card.ts);
    await isQuiet(world);
    expect([world.amir.mentions().length, world.olivia.mentions().length]).toEqual([1, 1]);
  });

  it("aren't called again by a card that moves to its own channel", async () => {
    await using world = await startAlertWorld({ policy });
    channelNamed(world, "ops").archived = true;
    const { alert } = await fire(world, [{}]);
    await hears(world.ada, "status", /^🔥 HighCpu on web-2 /);
    expect(calls(world, "status")).toHaveLength(1);
    channelNamed(world, "ops").archived = false;
    await world.client.hset(world.key("alert", String(alert)), "closed:C01OPS", "0");
    await world.client.zadd(world.key("pending"), 0, `alert ${String(alert)}`);
    await hears(world.olivia, "ops", /^🔥 HighCpu on web-2 /);
    await isQuiet(world);
    expect(calls(world)).toEqual([]);
    expect(world.olivia.mentions().length).toBeLessThanOrEqual(1);
  });

  it("are called once by a message that many groups share", async () => {
    await using world = await startAlertWorld({ policy });
    const names = Array.from({ length: 40 }, (_, n) => `Storm${n}`);
    await Promise.all(names.map((name) => fire(world, [{ name }], { groupKey: name })));
    // The call in its thread counts the groups too.
    const shared = await hears(world.olivia, "ops", /^🔥 \d+ alert groups firing/);
    await hears(world.olivia, "ops", /^🔥 <.*> (\d+ alert groups firing: )?Storm/);
    await isQuiet(world);
    const own = inChannel(world).filter((one) => /^🔥 Storm\d+ on/.test(wordsOf(one)));
    const inThread = calls(world).filter(({ threadTs }) => threadTs !== undefined);
    expect(inThread.map(({ threadTs }) => threadTs)).toEqual([shared.ts]);
    expect(calls(world)).toHaveLength(own.length + 1);
  });
});
