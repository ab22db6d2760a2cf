import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { calledFor } from "../../../src/features/alerts/sources.ts";
import { hears } from "../../stories/words.ts";
import { fireTogether, makeDue, minute, startWithChannels } from "./sending.ts";

const source = 'format: alertmanager, notify: { critical: ["S01ONCALL"], warning: ["U0AMIR"] }';

const start = () =>
  startWithChannels({
    first: source,
    severe: source,
    moved: source,
    shared: source,
    together: 'format: alertmanager, notify: { "*": ["U0AMIR"] }',
    left: source,
  });
let world: Awaited<ReturnType<typeof start>>;
beforeAll(async () => {
  world = await start();
});
afterAll(() => world.close());

/** The messages of a channel and its threads that mention the group. */
const calls = (channel: string) =>
  world.ada
    .seesChannel(channel)
    .messages.filter(({ blocks }) => JSON.stringify(blocks).includes("<!subteam^S01ONCALL>"));

/** How often these people were mentioned in a channel. */
const mentions = (id: string) =>
  [world.olivia, world.amir].map(
    (person) => person.mentions().filter(({ channelId }) => channelId === id).length,
  );

describe("the people whom a source calls", () => {
  it("are those of the severity, whatever its case, otherwise those of all others, each once", () => {
    const notify = { critical: ["S01ONCALL", "U0ADA"], "*": ["U0AMIR"] };
    const whom = (
      severities: readonly string[],
      of: typeof notify | { critical: string[] } = notify,
    ) => [...calledFor({ notify: of }, severities).keys()];
    expect(whom(["Critical", "critical"])).toEqual(["S01ONCALL", "U0ADA"]);
    expect(whom(["", "critical"])).toEqual(["U0AMIR", "S01ONCALL", "U0ADA"]);
    expect(whom(["warning"], { critical: ["U0ADA"] })).toEqual([]);
  });

  it("are mentioned once for each firing of a group, by its first message and where its thread says that it fires again", async () => {
    const at = await world.channel("first");
    await at.fire([{}]);
    const card = await at.hears(/HighCpu on web-2/);
    await at.quiet();
    expect(mentions(at.id)).toEqual([1, 0]);
    await at.fire([{}, { vm: "db-1" }]);
    await at.hears(/HighCpu fires on db-1 too/);
    const over = { status: "resolved" } as const;
    await at.fire([{}, { vm: "db-1", ...over }]);
    await at.fire([{}, { vm: "db-1", startsAt: minute(10) }]);
    await at.quiet();
    expect(mentions(at.id)).toEqual([1, 0]);
    await at.fire([over, { vm: "db-1", ...over, endsAt: minute(11) }]);
    await at.hears(/^✅ HighCpu [^]*Ended/);
    await at.fire([{ startsAt: minute(12) }]);
    const again = await at.hears(/🔥 <.*> Fires again: HighCpu on web-2\./);
    await at.quiet();
    expect(again.threadTs).toBe(card.ts);
    expect(calls("first").map(({ ts }) => ts)).toEqual([card.ts, again.ts]);
    expect(mentions(at.id)).toEqual([2, 0]);
  });

  it("are called in the thread when the alert gets more severe", async () => {
    const at = await world.channel("severe");
    await at.fire([{ severity: "warning" }]);
    const card = await at.hears(/HighCpu on web-2/);
    await at.quiet();
    expect(mentions(at.id)).toEqual([0, 1]);
    await at.fire([{ severity: "critical" }]);
    const call = await at.hears(/^🔥 <.*> HighCpu on web-2 · critical$/);
    expect(call.threadTs).toBe(card.ts);
    await at.quiet();
    expect(mentions(at.id)).toEqual([1, 1]);
  });

  it("are called once by groups that fire together, and again by one that is more severe", async () => {
    const at = await world.channel("together");
    for (const name of ["One", "Two", "Three"])
      await at.fire([{ name, severity: "warning" }], name);
    for (const name of ["One", "Two", "Three"]) await at.hears(new RegExp(`^🔥 ${name} on web-2`));
    await at.quiet();
    expect(mentions(at.id)).toEqual([0, 1]);
    await at.fire([{ name: "Four", severity: "critical" }], "Four");
    await at.hears(/^🔥 Four on web-2/);
    await at.quiet();
    expect(mentions(at.id)).toEqual([0, 2]);
  });

  it("are called by another group if the one that was about to call never does", async () => {
    const at = await world.channel("left");
    const claim = world.key("alerts", "calling", at.id, "S01ONCALL");
    await world.client.set(claim, "5 a-gone");
    await at.fire([{}]);
    const card = await at.hears(/^🔥 HighCpu on web-2/);
    expect(calls("left")).toEqual([]);
    await world.client.del(claim);
    const call = await at.hears(/^🔥 <.*> HighCpu on web-2 · critical$/);
    expect(call.threadTs).toBe(card.ts);
  });

  it("aren't called again by a card that moves to its own channel", async () => {
    const at = await world.channel("moved");
    at.archive();
    const { alert } = await at.fire([{}]);
    await hears(world.ada, "status", /^🔥 HighCpu on web-2 /);
    expect(calls("status")).toHaveLength(1);
    at.archive(false);
    await world.client.hset(world.key("alert", String(alert)), `closed:${at.id}`, "0");
    await makeDue(world, "alert", String(alert));
    await at.hears(/^🔥 HighCpu on web-2 /);
    await at.quiet();
    expect(calls("moved")).toEqual([]);
    expect(mentions(at.id)).toEqual([0, 0]);
  });

  it("are called once by a message that many groups share", async () => {
    const at = await world.channel("shared");
    const storm = ["Storm0", "Storm1", "Storm2"].map((name) => ({ name }));
    const shared = await fireTogether(world, storm, { source: "shared", channel: "shared" });
    // The call in its thread counts the groups too.
    await at.hears(/^🔥 <.*> 3 alert groups firing: Storm/);
    await at.fire([{ name: "Storm0" }, { name: "Storm0", vm: "db-1" }], "Storm0");
    await at.hears(/^🔥 3 alert groups firing[^]*db-1/);
    await at.quiet();
    expect(calls("shared").map(({ threadTs }) => threadTs)).toEqual([shared.ts]);
  });
});
