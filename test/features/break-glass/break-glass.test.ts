import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { keepSignature } from "../../../src/core/request/journal.ts";
import { callOf } from "../../../src/core/request/stage.ts";
import { createReviews } from "../../../src/features/break-glass/reviews.ts";
import type { PersonActions } from "../../../sandbox/slack/actions.ts";
import { describeSeen } from "../../../sandbox/slack/describe-seen.ts";
import { addPerson } from "../../../sandbox/slack/state/people.ts";
import { seedDemo } from "../../../sandbox/slack/state/seed.ts";
import { auditOf, snapshotIdOf } from "../../core/asking.ts";
import { hears, wordsOf } from "../../stories/words.ts";
import { policyWith, startWorld, type TestWorld } from "../../support/start-world.ts";
import { until } from "../../support/until.ts";
import { isOffered } from "../../support/is-offered.ts";

/** Two people administer, so that one can sign what the other did in an emergency. */
const administer = ["U0ADA", "U0AMIR"];

/** Most stories are told in this one, each of projects and VMs of its own. Bea may operate and use break-glass. */
let world: TestWorld;
beforeAll(async () => {
  world = await startWorld({
    policy: policyWith(
      { administer, breakGlass: ["U0ADA", "U0BEA"] },
      "limits: { breakGlassPerHour: 100, destructivePerHour: 100 }",
    ),
    prepare({ edit }) {
      for (const name of ["first", "second", "third", "fourth", "fifth", "sixth"])
        edit.addProject({ id: `prj-${name}`, name });
    },
    slack: {
      seed(workspace) {
        seedDemo(workspace);
        addPerson(workspace, { id: "U0BEA", name: "bea" });
        workspace.groups.get("S01ONCALL")?.userIds.push("U0BEA");
        for (const id of ["C01OPS", "C03AUDIT"]) workspace.channels.get(id)?.memberIds.add("U0BEA");
      },
    },
  });
});
afterAll(() => world.close());
beforeEach(() => world.compute.forget());

/** Signs a review in the form that its button opens. */
async function signs(person: TestWorld["amir"], checked: string) {
  await person.until(({ modals }) => modals.some(({ submit }) => submit === "Sign"));
  expect((await person.submits({ "What did you check?": checked })).errors).toBeUndefined();
}

const unsigned = async (target: string, { client, key } = world) =>
  (await createReviews(client, key).unsigned()).filter((review) => review.target === target);

/** Fills in the form that `--break-glass` opens, and confirms it. */
async function breaksGlass(person: PersonActions, words: string, target: string) {
  await person.types("ops", words);
  await person.until(({ modals }) => modals.some(({ title }) => title.startsWith("Break-glass")));
  const form = describeSeen(person.sees());
  const said = await person.submits({ [`Type ${target} to confirm`]: target });
  expect(said.errors).toBeUndefined();
  return form;
}

describe("break-glass", () => {
  it("can't be signed by an approver of another team, who sees no such review", async () => {
    const teams = `teams:
  apps: { projects: [staging], operate: [S01ONCALL], approve: [U0AMIR], breakGlass: [U0ADA] }
  search: { projects: [search], approve: [U0VERA] }`;
    await using teamed = await startWorld({
      policy: policyWith({}, teams),
    });
    const { vera, amir } = teamed;
    await breaksGlass(teamed.ada, '/project delete staging --break-glass "now"', "staging");
    const notice = await hears(vera, "audit", /Break-glass[^]*\[Sign review\]/);
    await vera.presses("Sign review", { in: notice.ts, channel: "audit" });
    await hears(vera, "audit", /This review is already signed/);
    expect(await unsigned("staging", teamed)).toHaveLength(1);
    await amir.presses("Sign review", { in: notice.ts, channel: "audit" });
    await signs(amir, "staging was empty");
    await hears(amir, "audit", /amir signed the review/);
    expect(await unsigned("staging", teamed)).toEqual([]);
  });

  it("runs without waiting, tells the audit channel, and stays open until somebody else signs", async () => {
    await world.ada.types("ops", '/project delete first --break-glass "it leaks data right now"');
    await world.ada.until(({ modals }) => modals.some(({ submit }) => submit === "Delete"));
    const wrong = await world.ada.submits({ "Type first to confirm": "firs" });
    expect(wrong.errors).toEqual({ confirm: "Type first exactly as shown." });
    expect(world.compute.writes()).toEqual([]);
    await world.ada.closes();
    const form = await breaksGlass(
      world.ada,
      '/project delete first --break-glass "it leaks data right now"',
      "first",
    );
    expect(form).toMatch(/Everything in first is lost[^]*This can't be undone/);
    expect(form).toContain("🚨 *This skips approval.* It runs at once.");
    const request = await world.ended("project delete");
    expect(request).toMatchObject({ state: "done", record: { reason: "it leaks data right now" } });
    expect(world.compute.writes()).toMatchObject([{ method: "DELETE" }]);
    // The channel is told that the change began, and then how it ended.
    await hears(world.ada, "audit", /ada started this without approval: Delete first, “it leaks/);
    await hears(world.ada, "audit", /✅ Break-glass by ada: Deleted first/);
    const { ts } = await hears(world.amir, "audit", /it leaks data right now[^]*\[Sign review\]/);
    const review = { in: ts, channel: "audit" };
    await world.ada.presses("Sign review", review);
    await world.ada.until((seen) => describeSeen(seen).includes("someone else must sign"));
    expect(await unsigned("first")).toHaveLength(1);
    await world.amir.presses("Sign review", review);
    expect(await unsigned("first")).toHaveLength(1);
    await signs(world.amir, "first held no customer's data");
    await hears(
      world.amir,
      "audit",
      /✅ amir signed the review of <@U0ADA>'s break-glass, project delete of first: “first held no customer's data”/,
    );
    expect(await unsigned("first")).toEqual([]);
    const notice = await hears(
      world.ada,
      "audit",
      /ada started this without approval[^]*✅ Signed by amir: “first held no customer's data”/,
    );
    expect(wordsOf(notice)).not.toContain("[Sign review]");
    // The signed notice no longer asks for a signature. It shows who signed, when, and what they
    // checked.
    expect(wordsOf(notice)).toMatch(/Signed by amir: .* · \w{3} \d+, \d+:\d\d [AP]M UTC/);
    expect(wordsOf(notice)).not.toContain("must sign");
    const card = await hears(
      world.olivia,
      "ops",
      /Break-glass: approval skipped; review signed by amir \w{3} \d+, \d+:\d\d [AP]M UTC: “first held no customer's data”\./,
    );
    expect(wordsOf(card)).toContain("Deleted first");
    expect(JSON.stringify(world.olivia.seesChannel("ops"))).not.toContain("review pending");
    await world.olivia.types("ops", `/gatehouse why ${request.record.id}`);
    await hears(world.olivia, "ops", /project delete of first[^]*review signed by amir /);
    const trail = await auditOf(world.client, world.key("audit"));
    expect(trail.find(({ what }) => what === "review-signed")).toMatchObject({
      who: "U0AMIR",
      why: "first held no customer's data",
    });
  });

  it("is signed by who signed first, and told, also where the process that kept that signature died right then", async () => {
    const { amir, store } = world;
    const keepFirst = async (project: string, by: string, byId: string) => {
      await breaksGlass(world.ada, `/project delete ${project} --break-glass "it leaks"`, project);
      const notice = await hears(amir, "audit", new RegExp(`Delete ${project}[^]*Sign review`));
      const made = await world.settled();
      const id = made.find(({ record }) => record.target.name === project)?.record.id ?? "";
      const signature = { byId, by, at: await store.now(), why: "it was empty" };
      await keepSignature(id, signature, store);
      await amir.presses("Sign review", { in: notice.ts, channel: "audit" });
      await amir.until(({ modals }) => modals.some(({ submit }) => submit === "Sign"));
      return amir.submits({ "What did you check?": "I looked, too" });
    };
    const own = await keepFirst("second", "amir", "U0AMIR");
    expect(own.errors).toBeUndefined();
    await hears(amir, "audit", /amir signed the review[^]*second: “it was empty”/);
    await keepFirst("third", "bea", "U0BEA");
    expect(describeSeen(amir.sees())).toContain("This review is already signed");
    await hears(amir, "audit", /bea signed the review[^]*third: “it was empty”/);
    await hears(amir, "audit", /Delete third[^]*✅ Signed by bea/);
    for (const project of ["second", "third"]) {
      const notice = await hears(amir, "audit", new RegExp(`Delete ${project}[^]*Signed by`));
      expect(wordsOf(notice)).not.toContain("Sign review");
      expect(await unsigned(project)).toEqual([]);
    }
  });

  it("can't be signed with a second account of the person who used it", async () => {
    const { workspace, edit } = world.slack;
    workspace.app.scopes.push("users:read.email");
    addPerson(workspace, { id: "U0ADA2", name: "ada2", email: "ada@confidential.example" });
    await edit.setGroupMembers("leads", ["amir", "ada2"]);
    const second = world.slack.person("ada2");
    await breaksGlass(world.ada, '/project delete fourth --break-glass "it leaks"', "fourth");
    const notice = await hears(second, "audit", /Delete fourth[^]*\[Sign review\]/);
    await second.presses("Sign review", { in: notice.ts, channel: "audit" });
    await hears(second, "audit", /An account with your e-mail address used break-glass/);
    expect(await unsigned("fourth")).toHaveLength(1);
    await edit.setGroupMembers("leads", ["amir", "ada"]);
  });

  it.runIf(isOffered("gatehouse digest"))(
    "shows who signed in every digest with its button, in those on request and in a shared handover, too",
    async () => {
      await using quiet = await startWorld({ policy: policyWith({ administer }) });
      const { amir, olivia } = quiet;
      await breaksGlass(quiet.ada, '/project delete staging --break-glass "it leaks"', "staging");
      await quiet.ended("project delete");
      await olivia.types("ops", "/gatehouse digest now");
      const digest = await hears(amir, "ops", /^Digest[^]*\[Sign review\]/);
      await olivia.types("ops", "/gatehouse digest handover");
      const mine = await hears(olivia, "ops", /^Handover[^]*\[Sign review\]/);
      await olivia.presses("Share in channel", { in: mine.ts });
      await hears(amir, "ops", /^Handover[^]*\[Sign review\][^]*Shared by olivia/);
      await amir.presses("Sign review", { in: digest.ts, channel: "ops" });
      await signs(amir, "staging was empty");
      const signed =
        "without approval \\(break-glass\\): “it leaks”\\.\\n✅ Signed by amir: “staging was empty”";
      for (const title of ["Digest", "Handover"]) {
        const shown = await hears(amir, "ops", new RegExp(`^${title}[^]*${signed}`));
        expect(wordsOf(shown)).not.toContain("[Sign review]");
        expect(wordsOf(shown)).not.toContain("must sign");
      }
      const posted = amir.seesChannel("ops").messages.map(wordsOf);
      expect(posted.filter((words) => /^(Digest|Handover)/.test(words))).toHaveLength(2);
    },
  );

  it("takes the safety snapshot with the same right, for a person outside of `operate`", async () => {
    await world.olivia.types("ops", "/vm snapshot db-1 nightly");
    const id = snapshotIdOf(await world.ended("vm snapshot"));
    await breaksGlass(
      world.ada,
      `/vm restore db-1 ${id} --break-glass "the index is corrupt"`,
      "db-1",
    );
    const restored = await world.ended("vm restore");
    expect(restored).toMatchObject({ state: "done", record: { requester: { id: "U0ADA" } } });
    expect(callOf(restored.stage)?.safety?.snapshotId).toBeTruthy();
    expect(world.compute.writes()).toHaveLength(3);
    // The review belongs to the restore. One of its safety snapshot could never be signed.
    const ids = await world.store.recentIds({ targetId: "vm-payments-db-1" }, 10);
    const all = await world.store.getMany(ids);
    const safety = all.find(({ record }) => record.origin.kind === "safety");
    await world.ada.types("ops", `/gatehouse why ${safety?.record.id}`);
    const why = await hears(world.ada, "ops", /vm snapshot of db-1[^]*State: done/);
    expect(wordsOf(why)).not.toContain("review pending");
    await world.ada.types("ops", `/gatehouse why ${restored.record.id}`);
    await hears(world.ada, "ops", /vm restore of db-1[^]*review pending/);
  });

  it("is named only in the help of people whom policy lists", async () => {
    const helpOf = async (person: TestWorld["ada"]) => {
      await person.types("ops", "/gatehouse help");
      return wordsOf(await hears(person, "ops", /What you can run/));
    };
    expect(await helpOf(world.ada)).toMatch(
      /In an emergency you can skip approval: add --break-glass "why"/,
    );
    for (const person of [world.olivia, world.amir])
      expect(await helpOf(person)).not.toMatch(/break-glass|emergency/i);
    // Ada isn't in `operate`, but can restore in an emergency.
    await world.ada.types("ops", "/gatehouse help vm restore");
    const one = wordsOf(await hears(world.ada, "ops", /Restore a VM from a snapshot/));
    expect(one).toMatch(/\/vm restore <?.*In an emergency you can skip approval/s);
    await world.amir.types("ops", "/gatehouse help vm restore");
    await hears(world.amir, "ops", /Only @oncall can restore VMs\.\n\/vm restore/);
  });

  it("is told once in the channel of the team whose VM it is, with the names of those who can sign", async () => {
    const teams = `teams:
  ml: { projects: [ml], channel: C02STATUS, operate: [S01ONCALL], approve: [U0AMIR], breakGlass: [U0ADA] }`;
    await using teamed = await startWorld({ policy: policyWith({}, teams) });
    await breaksGlass(teamed.ada, '/project delete ml --break-glass "now"', "ml");
    const told = /Break-glass: ada started this without approval/;
    const notice = await hears(teamed.amir, "status", told);
    expect(wordsOf(notice)).toMatch(/\nReviewers: amir[^<>]*\.\n[^]*\[Sign review\]/);
    await hears(teamed.amir, "audit", told);
    await teamed.settled();
    const all = teamed.amir.seesChannel("status").messages.filter((one) => told.test(wordsOf(one)));
    expect(all).toHaveLength(1);
  });

  it("is mentioned on the card that waits, and by can-i, for people who may use it", async () => {
    await world.olivia.types("ops", "/project delete fifth");
    await world.olivia.until(({ modals }) =>
      modals.some(({ submit }) => submit === "Request approval"),
    );
    await world.olivia.submits({ "Type fifth to confirm": "fifth", Reason: "no longer used" });
    const card = wordsOf(await hears(world.amir, "ops", /Delete fifth[^]*Waiting for approval/));
    expect(card).toMatch(/In an emergency, (?!U0)[^<>]+ can skip this: add --break-glass/);
    const asks = async (person: TestWorld["ada"], words: string, said: RegExp) => {
      await person.types("ops", `/gatehouse can-i ${words}`);
      return wordsOf(await hears(person, "ops", said));
    };
    // Ada isn't in `operate`: the everyday rules refuse her, but those for an emergency don't.
    const forAda =
      /No\. Only @oncall can delete fifth\.[^]*In an emergency you can: add --break-glass "why"/;
    await asks(world.ada, "project delete fifth", forAda);
    expect(await asks(world.ada, "vm stop vault-1", /No\. vault-1 is protected/)).not.toContain(
      "emergency",
    );
    expect(await asks(world.ada, "vm snapshot db-1", /can snapshot db-1/)).not.toContain(
      "emergency",
    );
    const forOlivia = await asks(world.olivia, "project delete fifth", /must approve it within/);
    expect(forOlivia).not.toContain("emergency");
    // The waiting request doesn't block another one.
    await breaksGlass(world.ada, '/project delete fifth --break-glass "it leaks"', "fifth");
    await until(() => world.compute.writes().map(({ path }) => path)).toContain(
      "/v1/projects/prj-fifth",
    );
  });

  it("runs beside a request of the same person for the same, which waits for approval", async () => {
    const bea = world.slack.person("bea");
    await bea.types("ops", "/project delete sixth");
    await bea.until(({ modals }) => modals.some(({ submit }) => submit === "Request approval"));
    await bea.submits({ "Type sixth to confirm": "sixth", Reason: "no longer used" });
    await hears(world.amir, "ops", /Delete sixth[^]*Waiting for approval/);
    await breaksGlass(bea, '/project delete sixth --break-glass "it leaks"', "sixth");
    await until(() => world.compute.writes()).toMatchObject([
      { method: "DELETE", path: "/v1/projects/prj-sixth" },
    ]);
    await hears(bea, "audit", /bea started this without approval: Delete sixth[^]*\[Sign review\]/);
  });

  it("is on no card if nobody may use it", async () => {
    const none = policyWith({ administer, breakGlass: [] });
    await using strict = await startWorld({ policy: none });
    await strict.olivia.types("ops", "/project delete ml");
    await strict.olivia.until(({ modals }) =>
      modals.some(({ submit }) => submit === "Request approval"),
    );
    await strict.olivia.submits({ "Type ml to confirm": "ml", Reason: "no longer used" });
    const card = wordsOf(await hears(strict.amir, "ops", /Delete ml[^]*Waiting for approval/));
    expect(card).not.toMatch(/break-?glass/i);
  });

  it("is only for those whom policy lists, and never bypasses protection", async () => {
    await world.olivia.types("ops", '/vm stop web-2 --break-glass "I want to"');
    await world.olivia.until((seen) => describeSeen(seen).includes("access.breakGlass"));
    await world.ada.types("ops", '/vm stop vault-1 --break-glass "I want to"');
    await world.ada.until((seen) => describeSeen(seen).includes("is protected"));
    // Policy decides before names are looked up, so a stranger learns none.
    await world.vera.types("ops", '/vm stop web-1 --break-glass "I want to"');
    const refused = await hears(
      world.vera,
      "ops",
      /Only ada and bea can stop VMs without approval/,
    );
    expect(wordsOf(refused)).not.toMatch(/Which one|needs an exact target/);
    expect(world.compute.writes()).toEqual([]);
    const noted = await auditOf(world.client, world.key("audit"));
    const refusals = noted.filter(({ what }) => what === "refusal");
    expect(refusals.map(({ who, rule }) => `${String(who)}: ${String(rule)}`).toSorted()).toEqual([
      "U0ADA: break-glass: protect vault-*",
      "U0OLIVIA: break-glass: access.breakGlass",
      "U0VERA: break-glass: access.breakGlass",
    ]);
  });

  it("has a limit of its own: a full hour of deletes doesn't stop it, and it takes none of their places", async () => {
    const limits = "limits: { destructivePerHour: 0, breakGlassPerHour: 1 }";
    await using limited = await startWorld({ policy: policyWith({ administer }, limits) });
    await breaksGlass(limited.ada, '/project delete staging --break-glass "it leaks"', "staging");
    expect(await limited.ended("project delete")).toMatchObject({ state: "done" });
    await breaksGlass(limited.ada, '/project delete ml --break-glass "this one too"', "ml");
    await hears(limited.ada, "ops", /Limit reached: 1 use of break-glass an hour in total/);
    expect(limited.compute.writes()).toHaveLength(1);
    const noted = await auditOf(limited.client, limited.key("audit"));
    expect(noted.filter(({ rule }) => rule === "limits")).toMatchObject([{ who: "U0ADA" }]);
  });
});
