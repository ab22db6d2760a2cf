import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { auditOf, requestIn, snapshotIdOf } from "../core/asking.ts";
import { passQuiet, rewrite } from "../support/pass-time.ts";
import { policyWith, startWorld, testTiming, type TestWorld } from "../support/start-world.ts";
import { hears, wordsOf } from "./words.ts";
import { until } from "../support/until.ts";

let world: TestWorld;
beforeAll(async () => {
  world = await startWorld();
});
afterAll(() => world.close());

/** Its answer is lost, and a snapshot leaves no trace to read. */
async function lostSnapshot(name: string, lost: "before" | "after" = "after") {
  world.compute.weather({ match: "POST /v1/vms/:id/snapshots", lost, times: 1 });
  await world.olivia.types("ops", `/vm snapshot db-1 ${name}`);
  await passQuiet(world);
  return hears(
    world.olivia,
    "ops",
    new RegExp(`Outcome unknown\\.[^]*as ${name}[^]*\\[It happened\\]`),
  );
}

const dialog = ({ olivia }: Pick<TestWorld, "olivia">, who = olivia) =>
  who
    .until(({ modals }) => modals.some(({ submit }) => submit === "Record it"))
    .then(({ modals }) => JSON.stringify(modals.at(-1)));

const reminders = () =>
  world.olivia.seesChannel("ops").messages.filter((one) => /Still unknown/.test(wordsOf(one)));

describe("the card of an unknown outcome", () => {
  it("says where to look and for what, and asks for the ID only of what happened", async () => {
    const card = await lostSnapshot("before-x");
    expect(wordsOf(card)).toMatch(
      /Outcome unknown\. Look in the compute service's own console for the snapshot of db-1 as before-x, sent at [\d:]+ [AP]M UTC\. Then record what you found\./,
    );
    expect(wordsOf(card)).toContain(
      "[It happened] [It did not happen] [I can't tell yet] [Check again]",
    );
    await world.olivia.presses("It did not happen", { in: card.ts });
    expect(await dialog(world)).not.toContain("ID of the snapshot");
    await world.olivia.closes();
    await world.olivia.presses("It happened", { in: card.ts });
    expect(await dialog(world)).toContain("ID of the snapshot");
    await world.olivia.submits({ made: "snap-found", reason: "the console lists it" });
    await hears(world.olivia, "ops", /✅ Took a snapshot of db-1 as before-x, says/);
    await hears(world.olivia, "ops", /Its ID is snap-found\./);
    await world.settled();
    const steps = await world.store.history((await world.ended()).record.id);
    expect(steps.at(-1)?.why).toBe("it happened (snap-found), says U0OLIVIA: the console lists it");
    await world.olivia.types("ops", "/vm snapshots db-1");
    await hears(world.olivia, "ops", /before-x \| snap-found/);
  });

  it("says in the service's words that a 200 says that it failed", async () => {
    const message = "snapshot quota exceeded";
    const match = "POST /v1/vms/:id/snapshots";
    world.compute.weather({ match, status: 200, message, times: 1 });
    await world.olivia.types("ops", "/vm snapshot web-2 refused-so");
    await passQuiet(world);
    const said =
      /Outcome unknown\.[^]*The compute service answered \(200\): snapshot quota exceeded/;
    const card = await hears(world.olivia, "ops", said);
    await world.olivia.presses("It did not happen", { in: card.ts });
    await dialog(world);
    await world.olivia.submits({ reason: "the quota is full" });
    await hears(world.olivia, "ops", /Snapshot of web-2 as refused-so .*not/);
  });

  it("takes no ID that Gatehouse knows, and needs none", async () => {
    await world.olivia.types("ops", "/vm snapshot web-2 nightly");
    const known = snapshotIdOf(await world.ended());
    const card = await lostSnapshot("before-y");
    await world.olivia.presses("It happened", { in: card.ts });
    await dialog(world);
    await world.olivia.submits({ made: known, reason: "the console lists it" });
    expect(JSON.stringify(world.olivia.sees().modals)).toContain(
      `Gatehouse knows ${known} as another snapshot. Check the ID.`,
    );
    expect((await world.store.get((await newestOf(world)).record.id))?.state).toBe("unknown");
    await world.olivia.submits({ made: "", reason: "the console lists it" });
    await hears(world.olivia, "ops", /✅ Took a snapshot of db-1 as before-y, says/);
    await hears(world.olivia, "ops", /so it can't be restored by its name before-y\./);
  });

  it("asks for the ID of a project, and reads what is there", async () => {
    await using own = await startWorld();
    own.compute.weather({ match: "POST /v1/projects", lost: "after", times: 1 });
    await own.olivia.types("ops", "/project create --name lab --type CONTAINER --region eu-west-1");
    await own.olivia.until(({ modals }) => modals.some(({ submit }) => submit === "Create"));
    await own.olivia.submits({});
    // The list fails from then on, until a person looks
    await own.slack.until(() => own.compute.writes().length === 1);
    own.compute.weather({ match: "GET /v1/projects", status: 503 });
    await passQuiet(own);
    const card = await hears(own.olivia, "ops", /Outcome unknown[^]*the creation of lab/);
    own.compute.clear();
    await own.olivia.presses("It happened", { in: card.ts });
    expect(await dialog(own)).toContain("ID of the project");
    await own.olivia.submits({ made: "prj-payments", reason: "the console lists it" });
    expect(JSON.stringify(own.olivia.sees().modals)).toContain(
      "The compute service has no project prj-payments called lab.",
    );
    const [id = ""] = Object.values(own.compute.truth().projects).flatMap((one) =>
      one.name === "lab" ? [one.id] : [],
    );
    await own.olivia.submits({ made: id, reason: "the console lists it" });
    await hears(own.olivia, "ops", /✅ Created lab, says olivia/);
    await hears(own.olivia, "ops", /CONTAINER in eu-west-1\./);
  });
});

describe("what waits behind an unknown outcome", () => {
  it("says that it waits for a person, and runs once that is recorded from its own card", async () => {
    await lostSnapshot("before-w", "before");
    await world.olivia.types("status", "/vm restart db-1");
    const waiting = await hears(
      world.olivia,
      "status",
      /Waiting for a person: did the snapshot of [\d:]+ [AP]M UTC happen\?/,
    );
    expect(wordsOf(waiting)).toContain("[Record it] [Cancel]");
    await world.olivia.presses("Record it", { in: waiting.ts });
    const shown = await hears(world.olivia, "status", /for the snapshot of db-1 as before-w/);
    expect(shown.ephemeral).toBe(true);
    await world.olivia.presses("It did not happen", { in: shown.ts });
    await dialog(world);
    await world.olivia.submits({ reason: "the console lists none" });
    await hears(world.olivia, "status", /Restarted db-1 in/);
    const why = (await world.store.history((await newestOf(world)).record.id)).map(
      (step) => step.why,
    );
    expect(why.filter((text) => text.startsWith("waits for"))).toHaveLength(1);
  });
});

describe("a reminder of an unknown outcome", () => {
  it("comes later, once, even where every process was replaced meanwhile", async () => {
    const card = await lostSnapshot("before-z");
    await world.olivia.presses("I can't tell yet", { in: card.ts });
    await hears(world.olivia, "ops", /Gatehouse asks again in its thread at [\d:]+ [AP]M UTC\./);
    await hears(
      world.olivia,
      "ops",
      /Outcome unknown\.[^]*• Gatehouse asks again at [\d:]+ [AP]M UTC\./,
    );
    const asked = requestIn(await newestOf(world), "unknown");
    const inMs = (asked.stage.asksAgainAt ?? 0) - (await world.store.now());
    expect(inMs).toBeGreaterThan(20 * 60_000);
    expect(inMs).toBeLessThanOrEqual(30 * 60_000);
    for (const running of world.processes) await running.close();
    // Half an hour, and the reminder of the policy, have passed
    const passed = { asksAgainAt: await world.store.now(), since: 1 };
    await rewrite(world, asked.record.target.id, ({ stage }) => ({
      stage: { ...stage, ...passed },
    }));
    expect(reminders()).toHaveLength(0);
    await world.startProcess("all");
    const again = await hears(world.olivia, "ops", /❓ <@U0OLIVIA> Still unknown: did/);
    expect(again.threadTs).toBe(card.ts);
    await world.settled();
    expect((await newestOf(world)).stage).toMatchObject({ reminders: 1, remindersOver: 1 });
    await hears(world.olivia, "ops", /Outcome unknown\.(?![^]*asks again at)/);
    expect(reminders()).toHaveLength(1);
    await world.olivia.presses("It did not happen", { in: card.ts });
    await dialog(world);
    await world.olivia.submits({ reason: "the console lists none" });
    await world.settled();
  });
});

it("a request whose call was refused with 429 says when it is canceled that a call was made", async () => {
  world.compute.weather({ match: "POST /v1/vms/*/restart", status: 429, retryAfter: 60 });
  await world.olivia.types("ops", "/vm restart web-2");
  await world.compute.called("POST /v1/vms/vm-payments-web-2/restart");
  await until(async () => (await newestOf(world)).state).toBe("authorized");
  const card = await hears(world.olivia, "ops", /\[Cancel\]/);
  await world.olivia.types("ops", "/gatehouse jobs");
  const list = await hears(world.olivia, "ops", /1 request is open[^]*\[Cancel\]/);
  await world.olivia.presses("Cancel", { in: card.ts });
  await hears(world.olivia, "ops", /canceled by olivia: the earlier call was not applied\./);
  await world.olivia.presses("Cancel", { in: list.ts });
  await hears(world.olivia, "ops", /: you canceled it\. The earlier call was not applied\.$/);
});

describe("an unknown outcome where no change is accepted", () => {
  it("is looked at, put off, and recorded by those who may operate, and by nobody else", async () => {
    const policy = policyWith({}, "channels: [C01OPS]");
    await using strict = await startWorld({ policy });
    strict.compute.weather({ match: "POST /v1/vms/:id/restart", lost: "before", times: 1 });
    await strict.ada.types("status", '/vm restart web-2 --break-glass "it hangs"');
    await strict.ada.until(({ modals }) =>
      modals.some(({ title }) => title.startsWith("Break-glass")),
    );
    await strict.ada.submits({ "Type web-2 to confirm": "web-2" });
    await passQuiet(strict);
    const words = /Outcome unknown[^]*\[It happened\]/;
    const card = await hears(strict.olivia, "status", words);
    await strict.olivia.types("status", "/vm restart db-1");
    await hears(strict.olivia, "status", /it can't be run in this channel/);
    await strict.vera.presses("It happened", { in: card.ts });
    await hears(strict.vera, "status", /Only @\S*oncall can restart/);
    await strict.olivia.presses("Check again", { in: card.ts });
    await hears(strict.olivia, "status", /web-2 is RUNNING now/);
    await strict.olivia.presses("I can't tell yet", { in: card.ts });
    await hears(strict.olivia, "status", /Gatehouse asks again in its thread/);
    await strict.olivia.presses("It happened", { in: card.ts });
    await dialog(strict, strict.olivia);
    expect((await strict.olivia.submits({ reason: "its uptime says so" })).errors).toBeUndefined();
    await hears(strict.olivia, "status", /Restarted web-2, says olivia/);
    const noted = await auditOf(strict.client, strict.key("audit"));
    const rules = noted.filter(({ what }) => what === "refusal").map(({ rule }) => rule);
    expect(rules).toEqual(["channels", "verdict: access.operate"]);
  });
});

async function newestOf({ store }: TestWorld) {
  const [newest] = await store.getMany(await store.recentIds({}, 1));
  if (!newest) throw new Error("nothing was requested");
  return newest;
}

describe("the ID of a snapshot that only a team's people saw", () => {
  const policy = `access: { view: [], operate: [], administer: ["U0ADA"] }
teams:
  pay: { projects: ["payments"], operate: ["U0AMIR"], approve: ["U0AMIR"], channel: C02STATUS }
  web: { projects: ["staging"], operate: ["U0OLIVIA"] }
audit: { channel: C03AUDIT }
approvals: [{ operations: ["vm.restore"], required: 0 }]
${testTiming}
`;

  let teams: TestWorld;
  beforeAll(async () => {
    teams = await startWorld({ policy });
  });
  afterAll(() => teams.close());

  /** Amir's answer is lost; he has seen the snapshot, and says under which ID. */
  async function seen(name: string, made: string) {
    teams.compute.weather({ match: "POST /v1/vms/:id/snapshots", lost: "after", times: 1 });
    await teams.amir.types("status", `/vm snapshot db-1 ${name}`);
    await passQuiet(teams);
    const words = new RegExp(`Outcome unknown[^]*as ${name}[^]*\\[It happened\\]`);
    const card = await hears(teams.amir, "status", words);
    await teams.amir.presses("It happened", { in: card.ts });
    const asked = await dialog(teams, teams.amir);
    expect(asked).toContain("ID of the snapshot");
    expect(asked).toContain("Someone who sees every VM confirms it");
    await teams.amir.submits({ made, reason: "the console lists it" });
    await teams.settled();
    return card;
  }

  it("is asked of them, waits for someone who sees every VM, and then restores", async () => {
    const card = await seen("before-x", "snap-theirs");
    await hears(teams.amir, "status", /Its ID is snap-theirs, says amir\. It can be restored/);
    await teams.amir.types("status", "/vm snapshots db-1");
    await hears(teams.amir, "status", /before-x \| snap-theirs, to be confirmed/);
    const asking = await hears(teams.ada, "audit", /amir says that the snapshot before-x of db-1/);
    expect(wordsOf(asking)).toContain("Confirm its ID");
    const no = /was named by amir, and nobody who sees every VM has confirmed it yet/;
    await teams.amir.types("status", "/vm restore db-1 before-x");
    await hears(teams.amir, "status", no);
    expect(teams.compute.writes().filter(({ path }) => path.endsWith("/restore"))).toEqual([]);
    await teams.ada.presses("Confirm its ID", { in: card.ts });
    expect(await dialog(teams, teams.ada)).toContain("snap-theirs");
    await teams.ada.submits({ reason: "it is of db-1" });
    await hears(teams.amir, "status", /Its ID is snap-theirs\./);
    await teams.settled();
    await teams.amir.types("status", "/vm snapshots db-1");
    await hears(teams.amir, "status", /before-x \| snap-theirs \|/);
    const steps = await teams.store.history((await teams.ended()).record.id);
    expect(steps.map(({ why }) => why).slice(-2)).toEqual([
      "it happened (snap-theirs), says U0AMIR: the console lists it",
      "its ID is snap-theirs, says U0ADA: it is of db-1",
    ]);
    await teams.amir.types("status", "/vm restore db-1 before-x");
    await teams.amir.until(({ modals }) => modals.some(({ submit }) => submit !== ""));
    await teams.amir.closes({ all: true });
  });

  it("can be added later, and is told neither from one of another team nor from one that nobody knows", async () => {
    await teams.olivia.types("ops", "/vm snapshot staging/web-1 secret");
    const theirs = snapshotIdOf(await teams.ended());
    const card = await seen("before-y", "");
    for (const [label, made] of [
      ["Add its ID", theirs],
      ["Confirm its ID", "snap-nobodys"],
    ] as const) {
      await teams.amir.presses(label, { in: card.ts });
      await dialog(teams, teams.amir);
      await teams.amir.submits({ made, reason: "the console lists it" });
      await hears(teams.amir, "status", new RegExp(`Its ID is ${made}, says amir`));
      await teams.settled();
    }
    await teams.amir.presses("Confirm its ID", { in: card.ts });
    await dialog(teams, teams.amir);
    await teams.amir.submits({ made: theirs, reason: "the console lists it" });
    await hears(teams.amir, "status", new RegExp(`Its ID is ${theirs}, says amir`));
    await teams.ada.presses("Confirm its ID", { in: card.ts });
    await dialog(teams, teams.ada);
    await teams.ada.submits({ reason: "looked" });
    expect(JSON.stringify(teams.ada.sees().modals)).toContain(
      `Gatehouse knows ${theirs} as another snapshot`,
    );
  });
});
