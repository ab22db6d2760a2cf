import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { describeSeen } from "../../sandbox/slack/describe-seen.ts";
import type { SeenMessage } from "../../sandbox/slack/seen.ts";
import { startWorld, testPolicy, type TestWorld } from "../support/start-world.ts";
import { hears, wordsOf } from "./words.ts";
import { until } from "../support/until.ts";

/** What the requester sees of one change, from the question to the button under its result. */
let world: TestWorld;
beforeAll(async () => {
  world = await startWorld({ policy: `${testPolicy}confirm: ["db-*", "staging/web-*"]\n` });
});
afterAll(() => world.close());

const writes = () => world.compute.writes().map(({ method, path }) => `${method} ${path}`);

/** Each part has a channel of its own: Slack takes one message a second in each. */
let channel = "ops";
const hearing = (words: RegExp) => hears(world.olivia, channel, words);

describe("what interrupts a VM that `confirm` names", () => {
  it("asks once, typed or pressed alike, and runs what was confirmed", async () => {
    await world.olivia.types(channel, "/vm restart db-1");
    const asked = await world.olivia.until(({ modals }) =>
      modals.some(({ submit }) => submit === "Restart"),
    );
    expect(describeSeen(asked)).toMatch(/Restart\* `db-1` in payments, RUNNING at/);
    expect(describeSeen(asked)).toContain("This interrupts what runs on db-1.");
    expect(writes()).toEqual([]);
    await world.olivia.closes();
    await world.olivia.types(channel, "/vm show db-1");
    const shown = await hearing(/db-1 is RUNNING/);
    await world.olivia.presses("Restart", { in: shown.ts });
    await world.olivia.until(({ modals }) => modals.some(({ submit }) => submit === "Restart"));
    expect(writes()).toEqual([]);
    await world.olivia.submits({});
    await hearing(/Restarted db-1 in/);
    expect(writes()).toEqual(["POST /v1/vms/vm-payments-db-1/restart"]);
    world.compute.forget();
  });

  it("asks once before a retry, and before what a result offers next, in its form and in no dialog", async () => {
    const dialogOf = (message: SeenMessage) => JSON.stringify(message.blocks).includes('"confirm"');
    const asksToStop = () =>
      world.olivia.until(({ modals }) => modals.some(({ submit }) => submit === "Stop"));
    const route = { match: "POST /v1/vms/vm-staging-web-1/stop", status: 422 };
    world.compute.weather(route);
    await world.olivia.types(channel, "/vm stop staging/web-1");
    await asksToStop();
    await world.olivia.submits({});
    const failed = await hearing(/Stop of staging\/web-1 was not done[^]*\[Try again\]/);
    world.compute.clear();
    world.compute.forget();
    expect(dialogOf(failed)).toBe(false);
    await world.olivia.presses("Try again", { in: failed.ts });
    await asksToStop();
    expect(writes()).toEqual([]);
    await world.olivia.submits({});
    const stopped = await hearing(/Stopped staging\/web-1 in[^]*\[Start\]/);
    await world.olivia.presses("Start", { in: stopped.ts });
    const started = await hearing(/Started staging\/web-1 in[^]*\[Stop\]/);
    expect(dialogOf(started)).toBe(false);
    await world.olivia.presses("Stop", { in: started.ts });
    await asksToStop();
    await world.olivia.closes();
    expect(writes()).toHaveLength(2);
    world.compute.forget();
  });

  it("doesn't ask twice after a mention: its button is the confirmation, and says what it interrupts", async () => {
    await world.olivia.types(channel, "@gatehouse vm stop db-1");
    const offer = await hearing(/Stop db-1\? Press the button/);
    expect(wordsOf(offer)).toContain("This interrupts what runs on db-1.");
    await world.olivia.presses("Stop", { in: offer.ts });
    await hearing(/✓ Stop db-1: requested/);
    await hearing(/Stopped db-1 in/);
    expect(writes()).toEqual(["POST /v1/vms/vm-payments-db-1/stop"]);
    world.compute.forget();
  });
});

describe("a button", () => {
  beforeAll(() => {
    channel = "status";
  });

  it("asks once before it interrupts, while typed words run, and the result offers Start, once", async () => {
    await world.olivia.types(channel, "/vm stop web-2");
    const card = await hearing(/Stopped web-2 in[^]*\[Start\]/);
    await world.olivia.presses("Start", { in: card.ts });
    const started = await hearing(/Started web-2 in[^]*\[Stop\]/);
    expect(writes()).toHaveLength(2);
    // Minutes later, by somebody else of the team
    await world.slack.edit.setGroupMembers("oncall", ["olivia", "vera"]);
    await world.olivia.presses("Start", { in: card.ts });
    const told = await hearing(/This button was already used/);
    expect(wordsOf(told)).toMatch(/Start web-2 \(payments\): done/);
    expect(started.ts).not.toBe(card.ts);
    expect(writes()).toHaveLength(2);
    const stop = await world.olivia.presses("Stop", { in: started.ts, confirm: "no" });
    expect(stop.error).toBe("confirm_denied");
    expect(JSON.stringify(started.blocks)).toMatch(
      /"title":\{[^}]*"text":"Stop web-2 in payments\?"[^}]*\},"text":\{[^}]*"What runs there is interrupted\."/,
    );
    world.compute.forget();
  });

  it("asks about a VM that `confirm` names, whatever its stored status says", async () => {
    await using strict = await startWorld({ policy: `${testPolicy}confirm: ["worker-*"]\n` });
    await strict.olivia.types("ops", "/vm stop worker-1");
    await strict.olivia.until(({ modals }) => modals.some(({ submit }) => submit === "Stop"));
    expect(await strict.store.recentIds({}, 1)).toEqual([]);
  });

  it("starts a stopped VM where a restart had nothing to do", async () => {
    await world.olivia.types(channel, "/vm restart worker-1");
    const card = await hearing(/⚪[^]*Not restarted: worker-1 is stopped\.[^]*\[Start\]/);
    expect(writes()).toEqual([]);
    await world.olivia.presses("Start", { in: card.ts });
    await hearing(/Started worker-1 in/);
    expect(writes()).toHaveLength(1);
    world.compute.forget();
  });

  it("is replaced, where only its reader saw it, by what became of it, and a copy of its press does nothing", async () => {
    await world.olivia.types(channel, "/vm show web-2");
    const shown = await hearing(/web-2 is RUNNING/);
    await Promise.all([
      world.olivia.presses("Restart", { in: shown.ts }),
      world.olivia.presses("Restart", { in: shown.ts }),
    ]);
    await hearing(/✓ Restart web-2: requested/);
    await hearing(/Restarted web-2 in/);
    expect(writes()).toHaveLength(1);
    world.compute.forget();
  });
});

describe("words about a VM", () => {
  beforeAll(() => {
    channel = "vendor";
  });

  it("name its project wherever its name alone isn't unique, and nowhere else", async () => {
    await world.olivia.types(channel, "/vm restart payments/web-1");
    const card = await hearing(/Restarted payments\/web-1 in/);
    expect(card.text).toMatch(/Restarted payments\/web-1 in/);
    world.compute.forget();
  });

  it("name the next step when the service refuses it for its ERROR, and don't offer it again", async () => {
    await world.olivia.types(channel, "/vm restart train-7");
    const card = await hearing(
      /Restart of train-7 was not done[^]*\[Restore\] \[Console\] \[Attest\]/,
    );
    expect(wordsOf(card)).not.toContain("[Try again]");
    await hearing(/Next: restore a snapshot, open a console/);
    await world.olivia.types(channel, "/vm show train-7");
    const shown = await hearing(/train-7 is ERROR/);
    expect(wordsOf(shown)).not.toContain("[Restart]");
  });

  it("name the snapshot that was taken and the one that is restored", async () => {
    await world.olivia.types(channel, "/vm snapshot db-1 nightly");
    await hearing(/Took a snapshot of db-1 as nightly/);
    await world.olivia.types(channel, "/vm restore db-1 nightly");
    await world.olivia.until(({ modals }) =>
      modals.some(({ submit }) => submit === "Request approval"),
    );
    // The form names it as it was typed
    expect(JSON.stringify(world.olivia.sees().modals)).toMatch(
      /"initial_option":\{"text":\{[^}]*"text":"nightly"/,
    );
    await world.olivia.submits({ "Type db-1 to confirm": "db-1", Reason: "bad migration" });
    const card = await hears(world.amir, channel, /Restore db-1 in payments from nightly/);
    expect(card.text).toMatch(
      /^olivia asks to restore db-1 \(payments\) from nightly: “bad migration”\. Data written in the \d+ s before the request is lost\. 15 min to decide\.$/,
    );
    await world.amir.presses("Approve", { in: card.ts });
    await hearing(/Restored db-1 from nightly in/);
    await hearing(/Undo restores the safety snapshot snap-/);
  });
});

describe("a freeze", () => {
  beforeAll(() => {
    channel = "ops";
  });

  it("is told once where people wait for something, and what it turned away can be requested again", async () => {
    // It waits, so that the freeze comes between the request and its send
    world.compute.weather({ match: "GET /v1/vms/vm-ml-gpu-1", status: 503 });
    await world.olivia.types(channel, "/vm start gpu-1");
    await hears(world.olivia, "ops", /Start gpu-1[^]*Waiting: /);
    await world.ada.types("random", "/gatehouse freeze storage is failing");
    await hears(world.vera, "ops", /ada froze all changes: storage is failing/);
    world.compute.clear();
    const card = await hears(
      world.olivia,
      "ops",
      /Start of gpu-1 was canceled[^]*\[Request again\]/,
    );
    await world.ada.types("random", "/gatehouse thaw");
    await hears(world.vera, "ops", /Changes are allowed again: ada ended the freeze/);
    world.compute.forget();
    await world.olivia.presses("Request again", { in: card.ts });
    await hearing(/Started gpu-1/);
    expect(writes()).toEqual(["POST /v1/vms/vm-ml-gpu-1/start"]);
    const news = world.vera
      .seesChannel("ops")
      .messages.filter(({ text }) => /froze all changes|allowed again/.test(text));
    expect(news).toHaveLength(2);
  });

  it("refuses what is typed then to its requester alone, and takes the changes off a VM's card", async () => {
    await world.ada.types("random", "/gatehouse freeze the storage fails again");
    await hears(world.vera, "ops", /ada froze all changes: the storage fails again/);
    await world.settled();
    const before = new Set(world.vera.seesChannel("ops").messages.map(({ ts }) => ts));
    const requests = await world.store.recentIds({}, 200);
    for (const words of ["/vm resize web-2 --cpu 8 --memory 32", "/vm restart web-2 db-1"]) {
      await world.olivia.types(channel, words);
      const refusal = await hears(
        world.olivia,
        "ops",
        /^All changes are frozen by ada: the storage/,
      );
      expect(refusal.ephemeral).toBe(true);
      expect(wordsOf(refusal)).toBe(
        "All changes are frozen by ada: the storage fails again. Nothing was done.\nRequest again after /gatehouse thaw.",
      );
    }
    expect(world.olivia.sees().modals).toEqual([]);
    // Break-glass skips approvals, not the freeze
    await world.ada.types(channel, "/vm stop web-2 --break-glass the disk burns");
    await hears(world.ada, "ops", /^All changes are frozen by ada: the storage/);
    expect(world.ada.sees().modals).toEqual([]);
    await world.olivia.types(channel, "/vm show web-2");
    const shown = wordsOf(
      await hears(world.olivia, "ops", /web-2 is RUNNING[^]*ada froze all changes/),
    );
    expect(shown).toMatch(
      /🧊 ada froze all changes at .*: “the storage fails again”\. Until the freeze ends, nothing is sent\./,
    );
    expect(shown).toMatch(/\[Metrics\][^\n]*\[Refresh\]/);
    expect(shown).not.toMatch(/\[(Stop|Restart|Resize|Snapshot|Restore)\]/);
    expect(await world.store.recentIds({}, 200)).toEqual(requests);
    const after = world.vera.seesChannel("ops").messages.filter(({ ts }) => !before.has(ts));
    expect(after.map(wordsOf)).toEqual([]);
    await world.ada.types("random", "/gatehouse thaw");
    await until(() => world.store.freezeState()).toBeUndefined();
  });
});
