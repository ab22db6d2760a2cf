import { describe, expect, it } from "vitest";
import { policyWith, startWorld } from "../support/start-world.ts";
import { hears, wordsOf } from "./words.ts";
import { until } from "../support/until.ts";

/** #vendor is shared with another company, whose Stan is in it. */
const unnamed = policyWith({ sharedChannels: undefined });
const postedIn = (world: Awaited<ReturnType<typeof startWorld>>, channel: string) =>
  world.slack
    .calls()
    .filter(({ method, args }) => method === "chat.postMessage" && args["channel"] === channel);

describe("a channel that is shared with another company", () => {
  it("is told nothing of a VM: who asked is answered alone, and how the policy allows it", async () => {
    await using world = await startWorld({ policy: unnamed });
    const { olivia, amir } = world;
    const stan = world.slack.person("stan");
    await olivia.types("vendor", "/vm restart web-2");
    expect((await world.ended()).state).toBe("done");
    await hears(olivia, "gatehouse", /Restarted web-2 in/);
    const why =
      /<#C07VENDOR>, so only you see this\. It is shared with another company: sharedChannels/;
    await hears(olivia, "gatehouse", why);
    await olivia.types("vendor", "/vm show web-2");
    await hears(olivia, "vendor", /web-2 is RUNNING/);
    await olivia.presses("Share in channel", { channel: "vendor" });
    await hears(
      olivia,
      "vendor",
      /can't post in this channel, so only you see this\. It is shared/,
    );
    for (const reader of [stan, amir]) expect(reader.seesChannel("vendor").messages).toEqual([]);
    expect(postedIn(world, "C07VENDOR")).toEqual([]);
  });

  it("is told what the policy names it for, while its strangers may still do nothing", async () => {
    await using world = await startWorld();
    const { olivia } = world;
    const stan = world.slack.person("stan");
    await olivia.types("vendor", "/vm restart web-2");
    await hears(stan, "vendor", /Restarted web-2/);
    world.compute.forget();
    await stan.types("vendor", "/vm restart db-1");
    await stan.types("vendor", "/vm show db-1");
    await stan.until((seen) => JSON.stringify(seen).includes('"text":"Show"'));
    await stan.presses("Show", { channel: "vendor" });
    const turnedAway = () =>
      world.lines.filter((line) => /"slack\.refused".*"reason":"team"/.test(line));
    await until(() => turnedAway().length).toBe(2);
    await hears(stan, "vendor", /This is only for members of this workspace/);
    expect(world.compute.writes()).toEqual([]);
  });

  it("gets no card of its team: that stays where it was requested, and says why", async () => {
    const policy = `${unnamed}teams: { apps: { projects: [payments], operate: [S01ONCALL], approve: [S02LEADS], channel: C07VENDOR } }
approvals: [{ operations: [vm.restart], required: 1 }]
`;
    await using world = await startWorld({ policy });
    await world.olivia.types("ops", "/vm restart web-2");
    const card = await hears(world.amir, "ops", /Restart web-2[^]*can't post in <#C07VENDOR>/);
    expect(wordsOf(card)).toMatch(/unless another company shares it[^]*/);
    await world.amir.presses("Approve", { in: card.ts, channel: "ops" });
    expect((await world.ended()).state).toBe("done");
    expect(postedIn(world, "C07VENDOR")).toEqual([]);
  });

  it("is posted in as before while the app lacks the scope to know it, which the log says", async () => {
    await using world = await startWorld({ policy: unnamed });
    const { app } = world.slack;
    app.scopes = app.scopes.filter((scope) => scope !== "channels:read");
    await world.olivia.types("vendor", "/vm restart web-2");
    await hears(world.amir, "vendor", /Restarted web-2/);
    expect(world.lines.some((line) => /slack\.channel-unseen.*missing_scope/.test(line))).toBe(
      true,
    );
  });

  it("is asked about once in a while, not for each message; while Slack doesn't say, nothing is posted", async () => {
    await using world = await startWorld({ policy: unnamed });
    const { olivia } = world;
    world.slack.weather.add({
      method: "conversations.info",
      kind: "rate-limited",
      retryAfter: 1,
      times: 1,
    });
    await olivia.types("ops", "/vm restart web-2");
    await hears(olivia, "ops", /Restarted web-2/);
    await olivia.types("ops", "/vm restart db-1");
    await hears(olivia, "ops", /Restarted db-1/);
    const asked = world.slack.calls("conversations.info");
    // Once, and once more where the limit struck this channel's question
    expect(asked.filter(({ args }) => args["channel"] === "C01OPS").length).toBeLessThanOrEqual(2);
    expect(postedIn(world, "C01OPS").length).toBeGreaterThan(1);
  });
});

describe("a group direct message", () => {
  /** With somebody of another company, or without. */
  const startInGroup = async ({ shared, scopes }: { shared: boolean; scopes?: string[] }) => {
    const world = await startWorld({ policy: unnamed });
    const { app, edit } = world.slack;
    edit.addChannel({
      id: "G0GROUP",
      name: "mpdm-olivia--amir--stan-1",
      kind: "group",
      shared,
      members: ["olivia", "amir", ...(shared ? ["stan"] : []), "gatehouse"],
    });
    app.scopes = app.scopes.filter((scope) => !scopes?.includes(scope));
    return world;
  };

  it("that another company reads is closed, by the scopes that manifest.yml asks for", async () => {
    await using world = await startInGroup({ shared: true });
    await world.olivia.types("G0GROUP", "/vm restart web-2");
    expect((await world.ended()).state).toBe("done");
    await hears(world.olivia, "gatehouse", /It is shared with another company: sharedChannels/);
    expect(postedIn(world, "G0GROUP")).toEqual([]);
  });

  it("of colleagues alone is open", async () => {
    await using world = await startInGroup({ shared: false });
    await world.olivia.types("G0GROUP", "/vm restart web-2");
    await hears(world.amir, "G0GROUP", /Restarted web-2/);
  });

  it("is closed, too, while the app may not see who reads it, and says what is missing", async () => {
    await using world = await startInGroup({ shared: true, scopes: ["mpim:read"] });
    await world.olivia.types("G0GROUP", "/vm restart web-2");
    expect((await world.ended()).state).toBe("done");
    await hears(world.olivia, "gatehouse", /The app lacks the scope mpim:read/);
    expect(postedIn(world, "G0GROUP")).toEqual([]);
    await world.olivia.types("ops", "/vm restart db-1");
    await hears(world.amir, "ops", /Restarted db-1/);
  });
});
