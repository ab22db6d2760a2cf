import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { policyWith, startWorld, type TestWorld } from "../support/start-world.ts";
import { hears, wordsOf } from "./words.ts";
import { until } from "../support/until.ts";

/** #vendor is shared with another company, whose Stan is in it. */
const unnamed = policyWith({ sharedChannels: undefined });
const postedIn = (world: TestWorld, channel: string) =>
  world.slack
    .calls()
    .filter(({ method, args }) => method === "chat.postMessage" && args["channel"] === channel);

/** A world whose policy names no shared channel. */
let closed: TestWorld;
beforeAll(async () => {
  closed = await startWorld({
    policy: unnamed,
    prepare({ edit }) {
      for (let n = 1; n <= 8; n += 1) edit.addVm({ project: "payments", name: `app-${n}` });
    },
  });
});
afterAll(() => closed.close());

/** Works without these scopes of the app. */
async function lacking(scopes: readonly string[], work: () => Promise<void>): Promise<void> {
  const { app } = closed.slack;
  const all = app.scopes;
  app.scopes = all.filter((scope) => !scopes.includes(scope));
  await work();
  await closed.settled();
  app.scopes = all;
}

describe("a channel that is shared with another company", () => {
  it("is told nothing of a VM: who asked is answered alone, and how the policy allows it", async () => {
    const { olivia, amir } = closed;
    const stan = closed.slack.person("stan");
    await olivia.types("vendor", "/vm restart web-2");
    expect((await closed.ended()).state).toBe("done");
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
    expect(postedIn(closed, "C07VENDOR")).toEqual([]);
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

  it("is asked about once in a while, not for each message; while Slack doesn't say, nothing is posted", async () => {
    const { olivia } = closed;
    closed.slack.weather.add({
      method: "conversations.info",
      kind: "rate-limited",
      retryAfter: 1,
      times: 1,
    });
    await olivia.types("ops", "/vm restart app-1");
    await hears(olivia, "ops", /Restarted app-1/);
    await olivia.types("ops", "/vm restart app-2");
    await hears(olivia, "ops", /Restarted app-2/);
    const asked = closed.slack.calls("conversations.info");
    // Once, and once more where the limit struck this channel's question
    expect(asked.filter(({ args }) => args["channel"] === "C01OPS").length).toBeLessThanOrEqual(2);
    expect(postedIn(closed, "C01OPS").length).toBeGreaterThan(1);
  });

  it("is posted in as before while the app lacks the scope to know it, which the log says", async () => {
    closed.slack.edit.addChannel({
      id: "C0PARTNER",
      name: "partner",
      shared: true,
      members: ["olivia", "amir", "stan", "gatehouse"],
    });
    await lacking(["channels:read"], async () => {
      await closed.olivia.types("partner", "/vm restart app-3");
      await hears(closed.amir, "partner", /Restarted app-3/);
    });
    expect(closed.lines.some((line) => /slack\.channel-unseen.*missing_scope/.test(line))).toBe(
      true,
    );
  });
});

describe("a group direct message", () => {
  const addGroup = (id: string, { shared }: { shared: boolean }) =>
    closed.slack.edit.addChannel({
      id,
      name: `mpdm-olivia--amir--stan-${id}`,
      kind: "group",
      shared,
      members: ["olivia", "amir", ...(shared ? ["stan"] : []), "gatehouse"],
    });

  it("is closed when another company reads it, by the scopes that manifest.yml asks for", async () => {
    addGroup("G0SHARED", { shared: true });
    await closed.olivia.types("G0SHARED", "/vm restart app-4");
    expect((await closed.ended()).state).toBe("done");
    await hears(
      closed.olivia,
      "gatehouse",
      /<#G0SHARED>, so only you see this\. It is shared with another company: sharedChannels/,
    );
    expect(postedIn(closed, "G0SHARED")).toEqual([]);
  });

  it("is open among colleagues alone", async () => {
    addGroup("G0OURS", { shared: false });
    await closed.olivia.types("G0OURS", "/vm restart app-5");
    await hears(closed.amir, "G0OURS", /Restarted app-5/);
  });

  it("is closed, too, while the app may not see who reads it, and says what is missing", async () => {
    addGroup("G0UNSEEN", { shared: true });
    await lacking(["mpim:read"], async () => {
      await closed.olivia.types("G0UNSEEN", "/vm restart app-6");
      expect((await closed.ended()).state).toBe("done");
      await hears(closed.olivia, "gatehouse", /The app lacks the scope mpim:read/);
      expect(postedIn(closed, "G0UNSEEN")).toEqual([]);
      await closed.olivia.types("status", "/vm restart app-7");
      await hears(closed.amir, "status", /Restarted app-7/);
    });
  });
});
