import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { SeenView } from "../../../sandbox/slack/seen.ts";
import { wordsIn } from "../../../sandbox/slack/describe-seen.ts";
import { features } from "../../../src/features/index.ts";
import { passQuiet } from "../../support/pass-time.ts";
import { policyWith, startWorld, type TestWorld } from "../../support/start-world.ts";
import { hears, wordsOf } from "../../stories/words.ts";

const wordsOfView = (view: SeenView | undefined) =>
  wordsIn(view?.blocks ?? [])
    .join("\n")
    .replaceAll(/[*`\u2060]/g, "");

/** The text of the modal on top, once it has loaded. */
async function rehearsed(world: TestWorld): Promise<string> {
  const isShown = (view: SeenView) =>
    view.title === "What would happen?" && !/Loading/.test(JSON.stringify(view.blocks));
  const { modals } = await world.olivia.until((seen) => seen.modals.some(isShown));
  return wordsOfView(modals.findLast(isShown));
}

const world = await startWorld();
afterAll(() => world.close());

const inOps = async ({ olivia }: TestWorld, words: string) => {
  await olivia.types("ops", words);
  await olivia.until(({ modals }) => modals.some(({ submit }) => submit !== ""));
};

describe("What would happen?", () => {
  it("tells in a form who could approve, how long it takes, and what is lost, and requests nothing", async () => {
    await world.olivia.types("ops", "/vm snapshot db-1 nightly");
    await world.ended();
    await inOps(world, "/vm restore db-1 nightly");
    const before = world.compute.writes().length;
    await world.olivia.chooses("reason", "Migration 42 broke the ledger table");
    await world.olivia.presses("What would happen?");
    const text = await rehearsed(world);
    expect(text).toContain("Restore db-1 (payments) from nightly");
    expect(text).toContain("👥 One other person must approve: ");
    expect(text).toContain("amir");
    expect(text).toMatch(/Everything written to db-1 since .* is replaced\./);
    expect(text).toContain("What is written until the approval comes is lost, too.");
    expect(text).toContain("no earlier restore of db-1, or in payments, is on record.");
    expect(text).toContain("Nothing was requested, sent, or counted against a limit.");
    expect(world.compute.writes()).toHaveLength(before);
    expect(await world.store.recentIds({ targetId: "vm-payments-db-1" }, 9)).toHaveLength(1);
    // The form is still there, with what was typed.
    await world.olivia.closes();
    await world.olivia.submits({ "Type db-1 to confirm": "db-1" });
    const card = await hears(world.olivia, "ops", /Waiting for approval/);
    expect(wordsOf(card)).toContain("Migration 42 broke the ledger table");
  });

  it("counts earlier runs of the same VM, and names a lock behind an unknown outcome", async () => {
    await world.olivia.types("ops", "/vm resize web-2 --cpu 4 --memory 8");
    await world.olivia.until(({ modals }) => modals.some(({ submit }) => submit === "Resize"));
    await world.olivia.submits();
    await world.ended();
    world.compute.weather({ match: "POST /v1/vms/:id/snapshots", lost: "after", times: 1 });
    await world.olivia.types("ops", "/vm snapshot web-2 before-resize");
    await passQuiet(world);
    await inOps(world, "/vm resize web-2 --cpu 8 --memory 8");
    await world.olivia.presses("What would happen?");
    const text = await rehearsed(world);
    expect(text).toContain("👥 Nobody has to approve it.");
    expect(text).toMatch(/⏱️ 1 earlier resize of web-2 took /);
    expect(text).toMatch(
      /🛑 web-2 is locked for changes: nobody has recorded whether olivia's snapshot \(r-\w+\), sent at [^\n]*, happened\./,
    );
    expect(text).not.toContain("Nothing is known that would stop it");
  });

  it("is answered by can-i below who must approve, without a request", async () => {
    await world.olivia.types("ops", "/gatehouse can-i vm restart train-7");
    const answer = await hears(world.olivia, "ops", /you can run \/vm restart/);
    expect(wordsOf(answer)).toMatch(/⚠️ train-7 has been in ERROR since [^\n]*\./);
    expect(wordsOf(answer)).toContain("no earlier restart of train-7, or in ml, is on record.");
    expect(await world.store.recentIds({ targetId: "vm-ml-train-7" }, 9)).toEqual([]);
  });

  it.each([
    [
      "an equal request of moments before",
      "vm stop web-1",
      /🛑 You already requested this: r-\w+ is done, and it wouldn't be run again\./,
    ],
    [
      "a pin that can't be proposed",
      "gatehouse pins propose db-1 tried",
      /🛑 .*(evidence|verif|attest)/i,
    ],
    [
      "a name that is taken",
      "project create --name ml --type CONTAINER --region eu-west-1",
      /🛑 A project called ml already exists\./,
    ],
    ["a VM that is gone", "vm restart gone-1", /🛑 gone-1 is gone\./],
  ])("says what the request or the gate would refuse: %s", async (_, words, said) => {
    if (words.includes("stop")) {
      await world.olivia.types("ops", "/vm stop staging/web-1");
      await world.ended("vm stop");
      words = "vm stop staging/web-1";
    }
    if (words.includes("gone-1")) {
      world.compute.edit.addVm({ project: "payments", name: "gone-1" });
      await world.olivia.types("ops", "/vm show gone-1");
      await hears(world.olivia, "ops", /gone-1[^]*RUNNING/);
      world.compute.edit.removeVm({ vm: "gone-1" });
    }
    await world.olivia.types("ops", `/gatehouse can-i ${words}`);
    const answer = await hears(world.olivia, "ops", said);
    expect(wordsOf(answer)).not.toContain("Nothing is known that would stop it");
  });

  it("says that nobody could approve it where Gatehouse can't post", async () => {
    await world.olivia.types("random", "/gatehouse can-i vm restore db-1 nightly");
    const answer = await hears(world.olivia, "random", /🛑 Gatehouse can't post in <#C04RANDOM>/);
    expect(wordsOf(answer)).toContain("Use /invite @gatehouse there first.");
  });

  it("names what it couldn't read, and still tells the rest", async () => {
    world.compute.weather({ match: "GET /v1/vms/vm-payments-web-2", status: 503 });
    await world.olivia.types("ops", "/gatehouse can-i vm restart web-2");
    const answer = await hears(world.olivia, "ops", /Not known/);
    world.compute.clear();
    expect(wordsOf(answer)).toContain(
      "❔ Not known, because it can't be read now: the state of web-2.",
    );
    expect(wordsOf(answer)).toContain("no earlier restart of web-2");
  });
});

describe("a Gatehouse without rehearsals", () => {
  it("has no button for them in forms, and answers can-i with who may", async () => {
    const others = features.filter(({ name }) => name !== "rehearsal");
    await using other = await startWorld({ features: others });
    await inOps(other, "/vm resize web-2 --cpu 4 --memory 8");
    const form = other.olivia.sees().modals.at(-1);
    expect(JSON.stringify(form?.blocks)).not.toContain("What would happen?");
    await other.olivia.closes();
    await other.olivia.types("ops", "/gatehouse can-i vm restart web-2");
    const answer = await hears(other.olivia, "ops", /you can run/);
    expect(wordsOf(answer)).not.toContain("earlier");
  });
});

describe("a rehearsal with teams and a limit", () => {
  const policy = `${policyWith({ view: ["U0ADA"], operate: ["U0ADA"] })}limits: { requestsPerMinute: 1 }
teams:
  payments: { projects: [payments], view: [U0OLIVIA], operate: [U0OLIVIA], approve: [U0AMIR] }
`;
  let strict: TestWorld;
  beforeAll(async () => {
    strict = await startWorld({ policy });
  });
  afterAll(() => strict.close());

  it("says as little as the command of what a person may not see: the same for a hidden name and for none", async () => {
    const answers: string[] = [];
    for (const called of ["train-7", "train-8"]) {
      await strict.olivia.types("ops", `/gatehouse can-i vm restart ${called}`);
      const said = await hears(strict.olivia, "ops", new RegExp(`no VM called ${called}`));
      answers.push(wordsOf(said).replaceAll(called, "X"));
    }
    expect(answers[0]).toBe(answers[1]);
  });

  it("tells of a freeze and of a limit that would refuse, and takes no place itself", async () => {
    for (const vm of ["web-1", "web-2"]) {
      await strict.olivia.types("ops", `/gatehouse can-i vm restart ${vm}`);
      await hears(strict.olivia, "ops", new RegExp(`no earlier restart of ${vm}`));
    }
    await strict.olivia.types("ops", "/vm restart web-2");
    expect((await strict.ended()).state).toBe("done");
    await strict.ada.types("ops", "/gatehouse freeze storage is failing");
    await hears(strict.ada, "ops", /All changes are frozen/);
    await strict.olivia.types("ops", "/gatehouse can-i vm restart web-2");
    const answer = await hears(strict.olivia, "ops", /A limit would refuse it now/);
    expect(wordsOf(answer)).toContain("But all changes are frozen by ada.");
    expect(wordsOf(answer)).toContain(
      "🛑 A limit would refuse it now: you requested 1 change within a minute",
    );
    expect(wordsOf(answer)).toMatch(/⏱️ 1 earlier restart of web-2 took /);
  });
});
