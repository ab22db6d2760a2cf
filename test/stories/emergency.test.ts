import { describe, expect, it } from "vitest";
import { callOf } from "../../src/core/request/stage.ts";
import { describeSeen } from "../../sandbox/slack/describe-seen.ts";
import { policyWith, startWorld } from "../support/start-world.ts";
import { auditOf, snapshotIdOf } from "../core/asking.ts";
import { hears, wordsOf } from "./words.ts";
import { until } from "../support/until.ts";

/** Two people administer, so that one can sign what the other did in an emergency. */
const administer = ["U0ADA", "U0AMIR"];

describe.concurrent("freezing all changes", () => {
  it("is for administrators and approvers: the refusal, can-i, and help say the same", async () => {
    await using world = await startWorld();
    for (const words of ["/gatehouse freeze now", "/gatehouse can-i gatehouse freeze now"]) {
      await world.olivia.types("ops", words);
      const said = new RegExp(
        `${words.includes("can-i") ? "No\\. " : "^"}Only (ada|U0ADA) and (@leads|S02LEADS) can run /gatehouse freeze\\.`,
      );
      const refused = wordsOf(await hears(world.olivia, "ops", said));
      expect(refused).toContain("Rule: access.administer or access.approve in gatehouse.yml.");
    }
    expect(await world.store.freezeState()).toBeUndefined();
    await world.amir.types("ops", "/gatehouse help gatehouse freeze");
    await hears(world.amir, "ops", /It is for administrators and approvers/);
    await world.amir.types("ops", "/gatehouse freeze storage is failing");
    await hears(world.amir, "ops", /All changes are frozen/);
  });

  it("refuses with who and why, reading goes on, and thaw ends it", async () => {
    await using world = await startWorld();
    await world.ada.types("ops", "/gatehouse freeze storage is failing");
    await world.ada.until((seen) => describeSeen(seen).includes("All changes are frozen"));
    await world.olivia.types("ops", "/vm restart web-2");
    const refusal = await hears(world.olivia, "ops", /All changes are frozen by ada: storage/);
    expect(wordsOf(refusal)).toBe(
      "All changes are frozen by ada: storage is failing. Nothing was done.\nRequest again after /gatehouse thaw.",
    );
    expect(refusal.ephemeral).toBe(true);
    expect(await world.store.recentIds({}, 10)).toEqual([]);
    expect(world.compute.writes()).toEqual([]);
    await world.olivia.types("ops", "/vm show web-2");
    await world.olivia.until((seen) => describeSeen(seen).includes("*web-2* is *RUNNING*"));
    await world.ada.types("ops", "/gatehouse thaw");
    await world.ada.until((seen) => describeSeen(seen).includes("Changes are allowed again"));
    await world.olivia.types("ops", "/vm restart web-2");
    await world.olivia.until((seen) => describeSeen(seen).includes("Restarted `web-2`"));
    expect(world.compute.writes()).toHaveLength(1);
  });

  it("is told once more where a person did it and Gatehouse then finds a weightier reason, before somebody thaws without it", async () => {
    await using world = await startWorld();
    const { ada, client, key } = world;
    await ada.types("ops", "/gatehouse freeze storage is failing");
    const seals = key("audit", "seals");
    await until(() => client.xlen(seals)).toBeGreaterThan(0);
    await client.xtrim(seals, "MAXLEN", 0);
    await hears(
      ada,
      "audit",
      /Gatehouse froze all changes: sealed audit records after number 0 have disappeared or were replaced\. /,
    );
    await ada.types("ops", "/gatehouse status");
    await hears(
      ada,
      "ops",
      /frozen by Gatehouse: sealed audit records after number 0 have disappeared or were replaced; ada froze all changes before: storage is failing/,
    );
    const freezes = (await auditOf(client, key("audit"))).filter(({ what }) => what === "freeze");
    expect(freezes.map(({ who }) => who)).toEqual(["U0ADA", "Gatehouse"]);
    await ada.types("ops", "/gatehouse thaw");
    await hears(ada, "ops", /Changes are allowed again/);
    expect(await world.store.freezeState()).toBeUndefined();
  });
});

describe.concurrent("a limit an hour", () => {
  it("counts what is sent, not what waits: one person's drafts leave the others their places", async () => {
    await using world = await startWorld({
      policy: policyWith({ administer }, "limits: { destructivePerHour: 1, draftsPerPerson: 2 }"),
    });
    await world.slack.edit.setGroupMembers("oncall", ["olivia", "vera"]);
    await world.slack.edit.setGroupMembers("leads", ["amir"]);
    const asksToDelete = async (who: "olivia" | "vera", project: string) => {
      await world[who].types("ops", `/project delete ${project}`);
      await world[who].until(({ modals }) =>
        modals.some(({ submit }) => submit === "Request approval"),
      );
      await world[who].submits({ [`Type ${project} to confirm`]: project, Reason: "clean up" });
    };
    const drafts = async () => (await world.settled()).filter(({ state }) => state === "draft");
    await asksToDelete("olivia", "staging");
    await asksToDelete("olivia", "ml");
    await asksToDelete("olivia", "payments");
    await hears(world.olivia, "ops", /2 of your requests wait for approval/);
    await until(async () => (await drafts()).length).toBe(2);
    await asksToDelete("vera", "payments");
    await hears(world.amir, "ops", /Delete payments[^]*Waiting for approval/);
    await world.amir.presses("Approve");
    expect(await world.ended("project delete")).toMatchObject({
      state: "done",
      record: { target: { name: "payments" } },
    });
    const [waits] = await drafts();
    await world.amir.presses("Approve", { in: waits?.delivered.card?.ts ?? "" });
    const id = waits?.record.id ?? "";
    await until(async () => (await world.store.get(id))?.stage).toMatchObject({
      why: "limit reached: 1 destructive request an hour in total",
    });
    expect(world.compute.writes()).toHaveLength(1);
  });

  it("counts consoles, also a minute's", async () => {
    await using world = await startWorld({
      policy: policyWith({ administer }, "limits: { requestsPerMinute: 1 }"),
    });
    await world.olivia.types("ops", "/vm console web-2");
    await world.olivia.until((seen) => describeSeen(seen).includes("[Open console]"));
    await world.olivia.types("ops", "/vm restart db-1");
    await world.ended("vm restart");
    await world.olivia.presses("Open console");
    await hears(world.olivia, "ops", /You requested 1 change within a minute/);
    expect(world.compute.writes().map(({ path }) => path)).toEqual([
      expect.stringContaining("restart"),
    ]);
  });
});

describe.concurrent("opening a console", () => {
  it("shows the address to the asker alone, takes it away at its end, and leaves no trace of it", async () => {
    await using world = await startWorld({ compute: { consoleMs: 900 } });
    await world.olivia.types("ops", "/vm console web-2");
    await world.olivia.until((seen) => describeSeen(seen).includes("[Open console]"));
    await world.olivia.presses("Open console");
    const open = await world.olivia.until((seen) => describeSeen(seen).includes("wss://"));
    const address = /wss:\/\/\S+?token=([\w-]+)/.exec(describeSeen(open));
    expect(address?.[1]).toBeTruthy();
    const token = address?.[1] ?? "";
    await world.amir.until((seen) => describeSeen(seen).includes("olivia opened a console on"));
    expect(describeSeen(world.amir.sees())).not.toContain("wss://");
    await world.olivia.until((seen) => !describeSeen(seen).includes("wss://"));
    expect(world.lines.join("\n")).not.toContain(token);
    const keys = await world.client.keys(`${world.key.prefix}*`);
    for (const key of keys) {
      const dump = await world.client.dumpBuffer(key);
      expect(dump?.includes(token) ?? false).toBe(false);
    }
    expect(JSON.stringify(world.slack.messages())).not.toContain(token);
  });
});

describe.concurrent("restoring with a way back", () => {
  it("takes a safety snapshot first and offers to undo", async () => {
    await using world = await startWorld();
    await world.olivia.types("ops", "/vm snapshot db-1 nightly");
    const taken = await world.ended("vm snapshot");
    await world.olivia.types("ops", `/vm restore db-1 ${snapshotIdOf(taken)}`);
    await world.olivia.until((seen) =>
      seen.modals.some(({ submit }) => submit === "Request approval"),
    );
    await world.olivia.submits({ "Type db-1 to confirm": "db-1", Reason: "corrupt index" });
    await world.amir.until((seen) => describeSeen(seen).includes("[Approve]"));
    await world.amir.presses("Approve");
    const restored = await world.ended("vm restore");
    expect(callOf(restored.stage)?.safety?.snapshotId).toBeTruthy();
    expect(world.compute.writes().map(({ path }) => path.split("/").at(-1))).toEqual([
      "snapshots",
      "snapshots",
      "restore",
    ]);
    await world.vera.presses("Undo");
    await hears(world.vera, "ops", /Only @oncall can restore db-1/);
    await world.olivia.presses("Undo");
    const dialog = await world.olivia.until((seen) =>
      seen.modals.some(({ submit }) => submit === "Request approval"),
    );
    expect(describeSeen(dialog)).toMatch(/back to how it was at .*, before olivia had it done/);
    await world.olivia.closes();
    // Who may approve a restore may ask for its undo, without operating; another approver decides, from the list
    await world.amir.presses("Undo");
    const undo = await world.amir.until((seen) =>
      seen.modals.some(({ submit }) => submit === "Request approval"),
    );
    expect(undo.modals[0]?.title).toBe("Undo the restore");
    expect(describeSeen(undo)).toMatch(
      /\*Undo the restore of `db-1` in payments\*: back to how it was at /,
    );
    expect(JSON.stringify(undo.modals)).toMatch(/"initial_value":"Undo: [^"]+"/);
    expect(describeSeen(undo)).toContain("One other person must approve: ada can.");
    await world.amir.submits({ "Type db-1 to confirm": "db-1", Reason: "it was the wrong one" });
    await hears(
      world.ada,
      "ops",
      /Undo the restore of db-1 in payments: back to how it was at .*“it was the wrong one”/,
    );
    await world.ada.types("random", "/gatehouse approvals");
    const list = await hears(world.ada, "random", /1 request waits for your approval/);
    expect(wordsOf(list)).toMatch(
      /^1 request waits for your approval\.[^]*Everything written to db-1 since [^]*is replaced\.\*? A safety snapshot is taken first, so it can be undone\.[^]*One other person must approve: ada can[^]*\[Approve\][^]*Status when requested: RUNNING/,
    );
    expect(JSON.stringify(list.blocks)).toMatch(/<https:[^>|]*archives[^>|]*\|Open its message>/);
    await world.ada.presses("Approve", { in: list.ts });
    await until(async () => (await world.ended("vm restore")).record.origin).toMatchObject({
      press: "undo",
      undoes: restored.record.id,
    });
    expect(await world.ended("vm restore")).toMatchObject({
      state: "done",
      record: { requester: { id: "U0AMIR" }, labels: { snapshot: `before-${restored.record.id}` } },
    });
  });
});
