import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { describeSeen } from "../../sandbox/slack/describe-seen.ts";
import { addChannel } from "../../sandbox/slack/state/channels.ts";
import { addGroup, addPerson } from "../../sandbox/slack/state/people.ts";
import { seedDemo } from "../../sandbox/slack/state/seed.ts";
import { passQuiet, rewrite } from "../support/pass-time.ts";
import { startWorld, testTiming, type TestWorld } from "../support/start-world.ts";
import { hears, wordsOf } from "./words.ts";

/** Two teams and what none has; a restore of the ledger's needs somebody of security, who see nothing else. */
const policy = `access:
  view: ["U0VERA"]
  operate: []
  approve: ["U0VERA"]
  administer: ["U0ADA"]
teams:
  payments:
    projects: ["payments"]
    operate: ["S01ONCALL"]
    approve: ["S02LEADS"]
    channel: C0PAYOPS
  search:
    projects: ["search"]
    operate: ["U0VERA"]
    approve: ["U0VERA"]
approvals:
  - operations: ["vm.restart"]
    targets: ["payments/*"]
    votes:
      - { from: ["S02LEADS"], required: 1 }
      - { from: ["S0SECURITY"], required: 1 }
    expires: 1h
${testTiming.replace("[1h]", "[1h, 2h]")}
`;

/** Sam and Sue are of security, and see nothing; the bot is in the channel of payments unless said otherwise. */
async function startTeams({ isIn = true } = {}) {
  const world = await startWorld({
    policy,
    prepare: ({ edit }) => void edit.addVm({ project: "payments", name: "web-3" }),
    // How often it is looked whether a request expired, or somebody must be reminded
    pace: { sweepMs: 500 },
    slack: {
      seed(workspace) {
        seedDemo(workspace);
        addPerson(workspace, { id: "U0SAM", name: "sam", realName: "Sam Safe" });
        addPerson(workspace, { id: "U0SUE", name: "sue", realName: "Sue Sure" });
        addGroup(workspace, "S0SECURITY", "security", "Security", ["U0SAM", "U0SUE"]);
        const people = ["U0ADA", "U0AMIR", "U0SAM", "U0SUE"];
        const members = isIn ? [...people, workspace.app.botUserId] : people;
        addChannel(workspace, { id: "C0PAYOPS", name: "pay-ops", members });
      },
    },
  });
  return { ...world, sam: world.slack.person("sam"), sue: world.slack.person("sue") };
}

const writes = (world: TestWorld) => world.compute.writes().map(({ path }) => path);

const draft = async (world: TestWorld) => {
  const open = await world.store.getMany(await world.store.openIds());
  const found = open.find(({ state }) => state === "draft");
  if (!found) throw new Error("nothing waits");
  return found;
};

describe("what a team decides and somebody requested in another channel", () => {
  let world: Awaited<ReturnType<typeof startTeams>>;
  beforeAll(async () => {
    world = await startTeams();
  });
  afterAll(() => world.close());

  it("waits in the team's channel, is approved there by one of each group, and is told in both places", async () => {
    const { olivia, amir, sam, sue } = world;
    await olivia.types("ops", "/vm restart payments/web-2");
    const asked = await hears(
      olivia,
      "ops",
      /Restart web-2[^]*The approvers see it in <#C0PAYOPS>/,
    );
    expect(wordsOf(asked)).toContain("Needs one of @leads and one of @security.");
    expect(wordsOf(asked)).not.toMatch(/S02LEADS|Approve/);
    const card = await hears(
      amir,
      "pay-ops",
      /Restart web-2[^]*in <#C01OPS> \(<http[^>]*\|open>\)/,
    );
    expect(wordsOf(card)).toMatch(/Needs one of @leads and one of @security\.[^]*\[Approve\]/);
    expect([amir, sam].map((one) => one.mentions().length)).toEqual([1, 1]);

    await sam.presses("Approve", { in: card.ts, channel: "pay-ops" });
    await hears(amir, "pay-ops", /Still needs one of @leads\. Approved by sam\./);
    await hears(olivia, "ops", /Still needs one of @leads/);
    await sue.presses("Approve", { in: card.ts, channel: "pay-ops" });
    await hears(sue, "pay-ops", /have already been given; this still needs one of @leads/);
    await amir.presses("Approve", { in: card.ts, channel: "pay-ops" });
    expect((await world.ended()).state).toBe("done");
    const answer = await hears(olivia, "ops", /✅ <@U0OLIVIA> [^]*Sent .* read/);
    expect(answer.threadTs).toBe(asked.ts);
    const result = await hears(amir, "pay-ops", /✅ olivia: [^]*Sent .* read/);
    expect(result.threadTs).toBe(card.ts);
    expect(olivia.mentions()).toHaveLength(1);
    expect([amir, sam].map((one) => one.mentions().length)).toEqual([1, 1]);
    expect(writes(world)).toEqual(["/v1/vms/vm-payments-web-2/restart"]);
  });

  it("takes one of two who press for the same place at the same moment", async () => {
    const { olivia, amir, sam, sue } = world;
    await olivia.types("ops", "/vm restart payments/db-1");
    const card = await hears(amir, "pay-ops", /Restart db-1[^]*\[Approve\]/);
    const press = { in: card.ts, channel: "pay-ops" };
    await Promise.all([sam.presses("Approve", press), sue.presses("Approve", press)]);
    await hears(amir, "pay-ops", /Restart db-1[^]*Still needs one of @leads/);
    await world.slack.until(() =>
      [sam, sue]
        .flatMap((one) => one.seesChannel("pay-ops").messages)
        .some(({ ts, text }) => ts > card.ts && /this still needs one of @.?leads/.test(text)),
    );
    const { votes, state } = await draft(world);
    expect([state, votes.length]).toEqual(["draft", 1]);
    await amir.presses("Approve", press);
    expect((await world.ended()).state).toBe("done");
  });

  it("can be decided from Home and from the list by those who see nothing else", async () => {
    const { olivia, amir, sam, sue } = world;
    await olivia.types("ops", "/vm restart payments/web-1");
    await hears(amir, "pay-ops", /Restart web-1[^]*\[Approve\]/);
    await sam.types("pay-ops", "/gatehouse approvals");
    const list = await hears(sam, "pay-ops", /1 request waits for your approval/);
    expect(wordsOf(list)).toContain("Needs one of @leads and one of @security.");
    await sam.types("pay-ops", "/vm list");
    await hears(sam, "pay-ops", /(Only .* can|You can't) run \/vm list/);
    await sue.opensHome();
    await sue.until(({ home }) => JSON.stringify(home ?? "").includes("Review"));
    await sue.presses("Review", { in: "home" });
    await sue.until(({ home }) => JSON.stringify(home ?? "").includes("Approve"));
    await sue.presses("Approve", { in: "home" });
    await sue.until((seen) => describeSeen(seen).includes("Nothing is waiting for your approval"));
    // Whom sam could approve for is no longer missing
    await sam.types("pay-ops", "/gatehouse approvals");
    await hears(sam, "pay-ops", /1 request that you can see waits for approval by others/);
    await olivia.types("ops", "/gatehouse why");
    const why = await hears(olivia, "ops", /Needs one of @leads: (amir, ada|ada, amir)/);
    expect(wordsOf(why)).toMatch(
      /Why: approvals\[1\] in gatehouse\.yml \(line 17\) requires 2[^]*Needs one of @leads[^]*requested by/,
    );
    expect(wordsOf(why)).toMatch(
      /Needs one of @security: (sam, sue|sue, sam)\. Still missing: one of @leads\./,
    );
  });

  it("is reminded of half way, without mentions, and its requester hears in a direct message that it expired", async () => {
    const { olivia, amir, sam } = world;
    world.compute.forget();
    const { id: vm } = world.compute.edit.findVm("payments/web-3");
    await olivia.types("ops", "/vm restart payments/web-3");
    const card = await hears(amir, "pay-ops", /Restart web-3[^]*\[Approve\]/);
    await sam.presses("Approve", { in: card.ts, channel: "pay-ops" });
    await hears(amir, "pay-ops", /Restart web-3[^]*Still needs one of @leads\. Approved by sam\./);
    await rewrite(world, vm, ({ record }) => ({
      record: { ...record, approval: { ...record.approval, remindsAt: 1 } },
    }));
    const reminder = await hears(
      amir,
      "pay-ops",
      /⏰ Half of the time has passed[^]*still needs one of @leads/,
    );
    expect(reminder.threadTs).toBe(card.ts);
    expect(reminder.text).not.toContain("<");
    await world.settled();
    await rewrite(world, vm, ({ record }) => ({
      record: { ...record, approval: { ...record.approval, expiresAt: 1 } },
    }));
    const direct = await hears(olivia, "gatehouse", /⌛ Restart web-3 \(payments\) expired/);
    expect(wordsOf(direct)).toContain("It still needed one of @leads.");
    await hears(olivia, "ops", /❌ Restart of web-3 expired/);
    await olivia.presses("Request again", { in: direct.ts, channel: direct.channelId });
    const again = await hears(amir, "pay-ops", /Restart web-3[^]*in <#C01OPS>[^]*\[Approve\]/);
    expect(again.ts).not.toBe(card.ts);
    expect(writes(world)).toEqual([]);
  });

  it("is told in the team's channel when nobody knows its outcome, with a link to its message, and told there again with each reminder", async () => {
    const { olivia, amir } = world;
    world.compute.weather({ match: "POST /v1/vms/:id/snapshots", lost: "before", times: 1 });
    await olivia.types("ops", "/vm snapshot payments/db-1");
    await passQuiet(world);
    const told = await hears(
      amir,
      "pay-ops",
      /❓ Outcome unknown: did “[^”]*db-1[^”]*” happen[^]*olivia requested it/,
    );
    expect(wordsOf(told)).toMatch(/olivia requested it in <#C01OPS>\. <http[^>]*\|Its message>/);
    const again = () =>
      amir
        .seesChannel("pay-ops")
        .messages.filter((one) => /❓ Still unknown: did “[^”]*db-1/.test(wordsOf(one)));
    for (const hours of [1, 2]) {
      const since = (await world.store.now()) - hours * 3_600_000;
      await rewrite(world, "vm-payments-db-1", ({ stage }) => ({ stage: { ...stage, since } }));
      await world.slack.until(() => again().length === hours);
    }
    // The second reminder takes the buttons from the first.
    const inThread = () =>
      olivia
        .seesChannel("ops")
        .messages.filter((message) => /❓ <@U0OLIVIA> Still unknown/.test(wordsOf(message)));
    await olivia.until(() => inThread().length === 2);
    await olivia.presses("It did not happen", { channel: "ops" });
    await olivia.until(({ modals }) => modals.length > 0);
    await olivia.submits({ reason: "nothing was done" });
    await world.settled();
    expect(again()).toHaveLength(2);
  });

  it("stays where it was requested when the bot isn't in the team's channel, and says so", async () => {
    await using alone = await startTeams({ isIn: false });
    await alone.olivia.types("ops", "/vm restart payments/web-2");
    const card = await hears(alone.amir, "ops", /Restart web-2[^]*can't post in <#C0PAYOPS>/);
    expect(wordsOf(card)).toContain("[Approve]");
    expect((await draft(alone)).delivered.requestMessage).toBeUndefined();
  });
});
