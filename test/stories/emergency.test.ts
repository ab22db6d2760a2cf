import { describe, expect, it } from "vitest";
import { describeSeen } from "../../src/sandbox/slack/describe-seen.ts";
import { startWorld } from "../support/start-world.ts";

const policy = (more: string) => `access:
  view: ["*"]
  operate: ["S01ONCALL"]
  approve: ["S02LEADS"]
  administer: ["U0ADA", "U0AMIR"]
  breakGlass: ["U0ADA"]
audit: { channel: C03AUDIT }
${more}
timing: { httpTimeout: 1s, quiesce: 300ms, settleDeadline: 4s, restartMark: 1500ms, pollFirst: 20ms, pollMost: 100ms, stableGap: 30ms, sweep: 200ms, heartbeat: 200ms, claimWindow: 500ms, inventoryRefresh: 5s, peopleCache: 1s, reminders: [1h] }
`;

describe("freezing all changes", () => {
  it("refuses with who and why, reading goes on, and thaw ends it", async () => {
    await using world = await startWorld();
    await world.ada.types("ops", "/gatehouse freeze storage is failing");
    await world.ada.until((seen) => describeSeen(seen).includes("All changes are frozen"));
    await world.olivia.types("ops", "/vm restart web-2");
    const refused = await world.ended();
    expect(refused).toMatchObject({
      state: "cancelled",
      progress: { why: "all changes are frozen by ada: storage is failing" },
    });
    expect(world.compute.writes()).toEqual([]);
    await world.olivia.types("ops", "/vm show web-2");
    await world.olivia.until((seen) => describeSeen(seen).includes("*web-2* is *RUNNING*"));
    await world.ada.types("ops", "/gatehouse thaw");
    await world.ada.until((seen) => describeSeen(seen).includes("Changes are allowed again"));
    await world.olivia.types("ops", "/vm restart web-2");
    await world.olivia.until((seen) => describeSeen(seen).includes("Restarted `web-2`"));
    expect(world.compute.writes()).toHaveLength(1);
  });

  it("is not for everybody", async () => {
    await using world = await startWorld();
    await world.vera.types("ops", "/gatehouse freeze for fun");
    await world.vera.until((seen) => describeSeen(seen).includes("You may not run"));
    expect(await world.store.freezeState()).toBeUndefined();
  });
});

describe("breaking the glass", () => {
  it("runs without waiting, tells the audit channel, and stays open until somebody else signs", async () => {
    await using world = await startWorld({ policy: policy("") });
    await world.ada.types("ops", '/project delete staging --break-glass "it leaks data right now"');
    const request = await world.ended("project delete");
    expect(request.state).toBe("done");
    expect(world.compute.writes()).toMatchObject([{ method: "DELETE" }]);
    const told = await world.amir.until((seen) => describeSeen(seen).includes("[Sign review]"));
    expect(describeSeen(told)).toContain("it leaks data right now");
    await world.ada.presses("Sign review");
    await world.ada.until((seen) => describeSeen(seen).includes("somebody else has to sign"));
    expect(await world.store.openReviews()).toHaveLength(1);
    await world.amir.presses("Sign review");
    await world.amir.until((seen) => describeSeen(seen).includes("signed by amir"));
    expect(await world.store.openReviews()).toEqual([]);
  });

  it("is only for those whom policy lists, and never past protection", async () => {
    await using world = await startWorld({ policy: policy('protect: ["vault-*"]') });
    await world.olivia.types("ops", '/vm stop web-2 --break-glass "I want to"');
    await world.olivia.until((seen) => describeSeen(seen).includes("access.breakGlass"));
    await world.ada.types("ops", '/vm stop vault-1 --break-glass "I want to"');
    await world.ada.until((seen) => describeSeen(seen).includes("is protected"));
    expect(world.compute.writes()).toEqual([]);
  });
});

describe("opening a console", () => {
  it("shows the address to the asker alone, takes it away at its end, and leaves no trace of it", async () => {
    await using world = await startWorld({ compute: { consoleMs: 900 } });
    await world.olivia.types("ops", "/vm console web-2");
    await world.olivia.until((seen) => describeSeen(seen).includes("[Open console]"));
    await world.olivia.presses("Open console");
    const open = await world.olivia.until((seen) => describeSeen(seen).includes("wss://"));
    const address = /wss:\/\/\S+?token=([\w-]+)/.exec(describeSeen(open));
    expect(address?.[1]).toBeTruthy();
    const token = address?.[1] ?? "";
    await world.amir.until((seen) => describeSeen(seen).includes("open by olivia until"));
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

describe("restoring with a way back", () => {
  it("takes a safety snapshot first and offers to undo", async () => {
    await using world = await startWorld();
    await world.olivia.types("ops", "/vm snapshot db-1 nightly");
    const taken = await world.ended("vm snapshot");
    await world.olivia.types("ops", `/vm restore db-1 ${taken.progress.answer?.snapshotId ?? ""}`);
    await world.olivia.until((seen) =>
      seen.modals.some(({ submit }) => submit === "Ask for approval"),
    );
    await world.olivia.submits({ "Type db-1 to confirm": "db-1", Reason: "corrupt index" });
    await world.amir.until((seen) => describeSeen(seen).includes("[Approve]"));
    await world.amir.presses("Approve");
    const restored = await world.ended("vm restore");
    expect(restored.progress.safety?.snapshotId).toBeTruthy();
    expect(world.compute.writes().map(({ path }) => path.split("/").at(-1))).toEqual([
      "snapshots",
      "snapshots",
      "restore",
    ]);
    await world.olivia.presses("Undo");
    const dialog = await world.olivia.until((seen) =>
      seen.modals.some(({ submit }) => submit === "Ask for approval"),
    );
    expect(JSON.stringify(dialog.modals)).toContain(restored.progress.safety?.snapshotId);
  });
});
