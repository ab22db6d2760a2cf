import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  cardOf,
  dialogOf,
  ended,
  fleetOf,
  numbered,
  rollStore,
  rollouts,
  startFleets,
  theRollout,
  touched,
} from "./rollout-world.ts";
import {
  policyWith,
  shortDeadlines,
  startWorld,
  testPolicy,
  type TestWorld,
} from "../../support/start-world.ts";
import { restIdOf } from "../../../src/features/rollouts/rollout.ts";
import { hears, wordsOf } from "../../stories/words.ts";
import { isOffered } from "../../support/is-offered.ts";

const start = () =>
  startFleets({
    failing: 4,
    planned: 3,
    untrusted: 4,
    debugged: 4,
    fixed: 3,
    allowed: 4,
    misfilled: 2,
    mentioned: 2,
    paused: 4,
    nightly: 4,
    halted: 4,
    frozen: 3,
  });
let world: Awaited<ReturnType<typeof start>>;
beforeAll(async () => {
  world = await start();
});
afterAll(() => world.close());

describe("several VMs in one command", () => {
  it("are listed before anything runs, run one by one after a canary, and share one message", async () => {
    // Only news edits the card
    await using own = await startWorld({ ...fleetOf(4), pace: { editMs: 3_600_000 } });
    own.slack.forgetCalls();
    await own.olivia.types("ops", "/vm restart vm-0000-* --canary");
    const dialog = await dialogOf(own.olivia);
    expect(dialog).toContain(
      "Restart 4 VMs (vm-0000-).\n⚠️ This is every VM you can see.\n⚠️ This interrupts what runs on 4 VMs, 1 at a time.",
    );
    for (const name of numbered(0, 4)) expect(dialog).toContain(`• ${name} in team-0000, RUNNING`);
    expect(own.compute.writes()).toEqual([]);
    const refused = await own.olivia.submits({ "roll:number": "3", "roll:most": "0" });
    expect(refused.errors).toEqual({
      "roll:number": "Type 4: the number of VMs that will change.",
      "roll:most": "A whole number from 1, or a percentage like 10%.",
    });
    await own.olivia.submits({ "roll:number": "4", "roll:most": "1" });
    const end = await hears(own.olivia, "ops", ended);
    expect(wordsOf(end)).toMatch(/^✅ <@U0OLIVIA> Restarted 4 VMs \(vm-0000-\) in \d+ s\.\n/);
    expect(wordsOf(end)).toMatch(/vm-0000-003 \| ✅ Restarted \| team-0000 \| \d+ s/);
    expect(touched(own)).toEqual(numbered(0, 4));
    // Each VM is settled and attested before the next one begins.
    const calls = own.compute.calls().map(({ method, path }) => `${method} ${path}`);
    for (const [at, name] of numbered(0, 3).entries()) {
      const attested = calls.lastIndexOf(`GET /v1/vms/${name}/attestation`);
      const next = calls.indexOf(`POST /v1/vms/${numbered(at + 1, at + 2)[0]}/restart`);
      expect(attested, name).toBeGreaterThan(-1);
      expect(attested, name).toBeLessThan(next);
    }
    // The result is posted first, then the card is edited.
    const card = await hears(own.olivia, "ops", /^✅ Restarted 4 VMs/);
    expect(end.threadTs).toBe(card.ts);
    expect(wordsOf(card)).toMatch(
      /^✅ Restarted 4 VMs \(vm-0000-\) in \d+ s\.\nRequested by .* · 1 at a time · canary first · stops after the first failure$/,
    );
    const counts = own.slack.callCounts();
    expect(counts["chat.postMessage"]).toBe(2);
    expect(counts["chat.update"] ?? 0).toBeLessThanOrEqual(2);
    expect(own.olivia.mentions()).toHaveLength(1);
  });

  it("stop at the first that fails; the table begins with it and names those that didn't start", async () => {
    const fleet = await world.fleet("failing");
    world.compute.weather({ match: "POST /v1/vms/failing-1/restart", goesTo: "ERROR" });
    await fleet.rolls("/vm restart failing-*");
    const rows = (await fleet.end()).split("\n");
    expect(rows[0]).toMatch(
      /^❌ <@U0OLIVIA> Restart of 4 VMs was stopped at failing-1: the compute service reports ERROR\. failing-0 restarted; 2 not touched\.$/,
    );
    expect(rows[1]).toBe("■■□□ 2 of 4 · 1 failed");
    expect(rows.slice(3).map((row) => row.split(" | ").slice(0, 2).join(" "))).toEqual([
      "failing-1 ❌ Failed, stopped here",
      "failing-2 – Not started",
      "failing-3 – Not started",
      "failing-0 ✅ Restarted",
    ]);
    expect(touched(world)).toEqual(fleet.vms.slice(0, 2));
    // One press starts the rest, and only once.
    const skip = "Skip failing-1, continue with 2";
    const again = "Try failing-1 again, then the other 2";
    const card = await fleet.hears(
      new RegExp(`Stopped at failing-1: [^]*\\[${skip}\\] \\[${again}\\]`),
    );
    await world.olivia.presses(skip, { in: card.ts });
    await fleet.hears(/<@U0OLIVIA> Restarted 2 VMs/);
    await world.olivia.presses(skip, { in: card.ts });
    await world.olivia.presses(again, { in: card.ts });
    await fleet.hears(
      /The rest of this rollout was already started by olivia, without failing-1: roll-/,
    );
    expect(touched(world)).toEqual(fleet.vms);
  });

  it("go on with the rest as the button says, although the process died that planned it, and a plan replaces nothing", async () => {
    const fleet = await world.fleet("planned");
    world.compute.weather({ match: "POST /v1/vms/planned-0/restart", goesTo: "ERROR" });
    await fleet.rolls("/vm restart planned-*");
    await fleet.end();
    const stored = rollStore(world);
    const { record, targets } = await fleet.rollout();
    // Somebody pressed Try again, and the process died before it began.
    const rest = { ...record, id: restIdOf(record.id), total: 3 };
    await stored.plan(rest, targets);
    const card = await fleet.hears(/Stopped at [^]*\[Skip planned-0/);
    await world.olivia.presses("Skip planned-0, continue with 2", { in: card.ts });
    await fleet.hears(/<@U0OLIVIA> Restarted 2 VMs/);
    await stored.plan(rest, targets);
    expect(await stored.stateOf(rest.id)).toBe("done");
    expect(touched(world)).toEqual(fleet.vms);
  });

  it("stop at one that is not attested any more, however many failures are allowed", async () => {
    const fleet = await world.fleet("untrusted");
    const letGo = fleet.holds("untrusted-2");
    await fleet.rolls("/vm restart untrusted-* --stop-on-failure 4");
    await world.compute.called("POST /v1/vms/untrusted-2/restart");
    world.compute.edit.setVerified({ vm: "untrusted-2", verified: false });
    letGo();
    expect(await fleet.end()).toContain(
      "was stopped at untrusted-2: attestation failed: the compute service says the report is not verified.",
    );
    expect(touched(world)).toEqual(fleet.vms.slice(0, 3));
  });

  it("stop before one that Gatehouse wouldn't verify, and say why", async () => {
    const fleet = await world.fleet("debugged");
    world.compute.edit.setMachine({ vm: "debugged-2", debug: true });
    await fleet.rolls("/vm restart debugged-*");
    const end = await fleet.end();
    expect(end).toContain(
      "was stopped before debugged-2: debugging is on: the host can read the VM's memory. debugged-0, debugged-1 restarted; 2 not touched.",
    );
    // The result and the card both say "2 of 4" and that 2 were not touched.
    expect(end).toMatch(/ 2 of 4$/m);
    const stopped = wordsOf(await fleet.hears(/Stopped before debugged-2/));
    expect(stopped).toMatch(/ 2 of 4$/m);
    expect(stopped).toContain("2 not touched");
    expect(end).toMatch(/debugged-2 \| ❌ Not touched, stopped here \| .*debugging is on/);
    expect(touched(world)).toEqual(fleet.vms.slice(0, 2));
    // Tried again without a change, the rollout stops before the same VM again; then that VM is
    // skipped.
    const card = await fleet.hears(/\[Try debugged-2 again, then the other 1\]/);
    await world.olivia.presses("Try debugged-2 again, then the other 1", { in: card.ts });
    await fleet.hears(/Restart of 2 VMs was stopped before debugged-2/);
    expect(touched(world)).toEqual(fleet.vms.slice(0, 2));
    const next = await fleet.hears(/2 VMs[^]*\[Skip debugged-2, continue with 1\]/);
    await world.olivia.presses("Skip debugged-2, continue with 1", { in: next.ts });
    await fleet.hears(/<@U0OLIVIA> Restarted 1 VM/);
    expect(touched(world)).toEqual(fleet.vms.toSpliced(2, 1));
  });

  it("continue with the one that stopped them, once it is fixed", async () => {
    const fleet = await world.fleet("fixed");
    world.compute.edit.setMachine({ vm: "fixed-1", debug: true });
    await fleet.rolls("/vm restart fixed-*");
    const card = await fleet.hears(/\[Try fixed-1 again, then the other 1\]/);
    world.compute.edit.setMachine({ vm: "fixed-1", debug: false });
    // Somebody pressed Skip, and the process died before it began.
    const { record, targets } = await fleet.rollout();
    const skipping = { ...record, id: restIdOf(record.id), total: 1 };
    await rollStore(world).plan(skipping, targets.slice(2));
    await world.olivia.presses("Try fixed-1 again, then the other 1", { in: card.ts });
    await fleet.hears(/<@U0OLIVIA> Restarted 2 VMs/);
    expect(touched(world)).toEqual(fleet.vms);
  });

  it("continue after allowed failures, several at a time", async () => {
    const fleet = await world.fleet("allowed");
    world.compute.weather({
      match: "POST /v1/vms/allowed-1/stop",
      status: 409,
      message: "not today",
    });
    await fleet.rolls("/vm stop allowed-* --max-unavailable 50% --stop-on-failure 2");
    expect(await fleet.end()).toMatch(
      /^⚠️ <@U0OLIVIA> Stopped 3 of 4 VMs \(allowed-\) in \d+ s; 1 failed\.\n/,
    );
    expect(new Set(touched(world))).toEqual(new Set(fleet.vms));
    expect(fleet.vms.filter((vm) => world.compute.vm(vm).status === "STOPPED")).toHaveLength(3);
  });

  it("wait for a person when one outcome is unknown: its message with the buttons is in the thread", async () => {
    const policy = policyWith({ timing: shortDeadlines.timing });
    await using own = await startWorld({ ...fleetOf(3), policy, pace: shortDeadlines.pace });
    own.compute.weather({ match: "POST /v1/vms/vm-0000-000/snapshots", lost: "after" });
    await rollouts(own.olivia, "/vm snapshot vm-0000-* nightly --max-unavailable 1", {
      "roll:number": "3",
    });
    const end = wordsOf(await hears(own.olivia, "ops", ended));
    expect(end).toContain("vm-0000-000 | ❓ Unknown, stopped here | team-0000");
    // The outcome isn't known yet, so no message says that it failed.
    expect(end).toContain("1 of 3 · 1 unknown");
    expect(end).not.toContain("1 failed");
    expect(end).toContain("was stopped at vm-0000-000: its outcome is unknown. 2 not touched.");
    const card = await hears(own.olivia, "ops", /\[Skip vm-0000-000, continue with 2\]/);
    expect(wordsOf(card)).not.toContain("[Try");
    const asking = await hears(own.olivia, "ops", /Outcome unknown[^]*\[It happened\]/);
    expect(asking.threadTs).toBe(cardOf(own.olivia)?.ts);
    expect(touched(own)).toEqual(["vm-0000-000"]);
  });
});

describe("a rollout that can't start", () => {
  let demo: TestWorld;
  beforeAll(async () => {
    const approvals = `approvals:\n  - { operations: ["vm.restart"], targets: ["db-*"], required: 1 }\n`;
    demo = await startWorld({ policy: `${testPolicy}${approvals}` });
  });
  afterAll(() => demo.close());

  const answers: readonly [words: string, answer: RegExp][] = [
    ["/vm restart wbe-*", /wbe-∗ matches none of the 8 VMs you can see\. Nothing was done\./],
    [
      "/vm restart web-2 wbe-2",
      /There is no VM called wbe-2\. Did you mean… Nothing was done\.\npayments\/web-2.*: each of several VMs must be named exactly\./,
    ],
    ["/vm restart web-2 web-1", /2 VMs are called web-1\. Which one\? Nothing was done\./],
  ];
  it.each(answers)("is answered before anything is asked: %s", async (words, answer) => {
    await demo.olivia.types("ops", words);
    expect((await hears(demo.olivia, "ops", answer)).ephemeral).toBe(true);
    expect(demo.olivia.sees().modals).toEqual([]);
    expect(demo.compute.writes()).toEqual([]);
  });

  it("is refused to a person without the right, without a form", async () => {
    await demo.vera.types("ops", "/vm restart web-*");
    await hears(demo.vera, "ops", /Only @oncall can restart VMs/);
    expect(demo.vera.sees().modals).toEqual([]);
  });

  it("says that others would have to approve", async () => {
    await demo.olivia.types("ops", "/vm restart payments/*");
    expect(await dialogOf(demo.olivia)).toMatch(
      /db-1 can't be part of a rollout: approvals\[1\].* requires 1 for vm\.restart on db-∗\. Request those one by one/,
    );
    expect(demo.compute.writes()).toEqual([]);
    await demo.olivia.closes({ all: true });
  });

  it("skips VMs that are protected or in another state, and names the reason", async () => {
    await demo.olivia.types("ops", "/vm stop *-1");
    const dialog = await dialogOf(demo.olivia);
    expect(dialog).toContain("Stop 3 VMs (-1).");
    expect(dialog).toContain("• protected by vault-∗: vault-1");
    expect(dialog).toContain("• STOPPED, nothing to change: gpu-1, worker-1");
    await demo.olivia.submits();
    const end = wordsOf(await hears(demo.olivia, "ops", ended));
    expect(end).toContain("Skipped: ");
    expect(touched(demo).toSorted()).toEqual([
      "vm-payments-db-1",
      "vm-payments-web-1",
      "vm-staging-web-1",
    ]);
  });
});

describe("a rollout of many VMs", () => {
  it("shows counts, sends its lists as files only when asked, asks to type the number, and ends with a button for the list", async () => {
    await using own = await startWorld(fleetOf(120));
    // The first one is refused, so the others need not be resized
    own.compute.weather({ match: "writes", status: 409, times: 1 });
    await own.olivia.types("ops", "/vm resize vm-* --cpu 8 --memory 32 --max-unavailable 1");
    const dialog = await dialogOf(own.olivia);
    expect(dialog).toContain("CPU 4 → 8, memory 16 → 32");
    expect(dialog).toContain("2 STOPPED, 118 RUNNING, in 1 project.\n[As a file]");
    expect(dialog).toContain("Type 120 to confirm");
    await own.olivia.submits({ "roll:number": "120" });
    const end = await hears(own.olivia, "ops", ended);
    expect(wordsOf(end)).toContain("20 more:");
    await own.vera.presses("List of 120 VMs", { in: end.ts, channel: "ops" });
    await hears(own.vera, "ops", /Only @\S*oncall can/);
    await own.olivia.presses("List of 120 VMs", { in: end.ts, channel: "ops" });
    await hears(own.olivia, "ops", /The list is in your direct messages/);
    const sent = own.olivia.seesChannel("gatehouse").messages.flatMap(({ files }) => files);
    expect(sent.map(({ name }) => name)).toEqual([expect.stringMatching(/^r.*\.csv$/)]);
    expect(touched(own)).toEqual(["vm-0000-000"]);
    expect(own.olivia.mentions()).toHaveLength(1);
  });

  it("says what is wrong with its form by the names of the fields, like the form of one VM", async () => {
    await world.fleet("misfilled");
    await world.olivia.types("misfilled", "/vm resize misfilled-* --cpu 8 --memory 32");
    await dialogOf(world.olivia);
    const { errors } = await world.olivia.submits({ CPU: "many" });
    expect(errors).toEqual({
      "arg:cpu": "CPU must be a whole number from 1 to 1,000,000, in digits.",
    });
    expect(world.compute.writes()).toEqual([]);
    await world.olivia.closes({ all: true });
  });

  it("is opened with a button when it is requested in a message", async () => {
    const fleet = await world.fleet("mentioned");
    await world.olivia.types("mentioned", "@gatehouse vm restart mentioned-*");
    await fleet.hears(/Restart 2 VMs \(mentioned-\)\?/);
    await world.olivia.presses("Review 2 VMs", { channel: "mentioned" });
    await dialogOf(world.olivia);
    await world.olivia.submits();
    await fleet.end();
    expect(touched(world)).toEqual(fleet.vms);
  });
});

describe("Pause, Resume and Stop", () => {
  it("work at once, and a paused rollout stays paused when every process restarts", async () => {
    const fleet = await world.fleet("paused");
    const letGo = fleet.holds("paused-1");
    await fleet.rolls("/vm restart paused-*");
    await world.compute.called("POST /v1/vms/paused-1/restart");
    await world.olivia.presses("Pause", { channel: "paused" });
    await fleet.hears(/⏸️ Paused by olivia\./);
    letGo();
    await world.settled();
    expect(touched(world)).toEqual(fleet.vms.slice(0, 2));
    await world.processes[0]?.close();
    await world.startProcess("all");
    await world.slack.connected();
    expect((await fleet.rollout()).state).toBe("paused");
    expect(touched(world)).toEqual(fleet.vms.slice(0, 2));
    await world.olivia.presses("Resume", { channel: "paused" });
    await fleet.end();
    expect(touched(world)).toEqual(fleet.vms);
  });

  it("are told by the night as under way, with the VMs that haven't begun", async () => {
    const fleet = await world.fleet("nightly");
    const letGo = fleet.holds("nightly-1");
    await fleet.rolls("/vm restart nightly-*");
    await world.compute.called("POST /v1/vms/nightly-1/restart");
    await world.olivia.presses("Pause", { channel: "nightly" });
    await fleet.hears(/⏸️ Paused by olivia\./);
    await world.olivia.types("nightly", "/gatehouse night 1h");
    const underWay = wordsOf(await fleet.hears(/The night since/));
    expect(underWay).toMatch(
      /⏸️ olivia is rolling out restarting nightly-0, nightly-1, nightly-2 and 1 more: 1 done, 1 running, 2 not begun yet\.\nUnder way: paused by olivia\./,
    );
    await world.ada.types("nightly", "/gatehouse audit");
    expect(wordsOf(await hears(world.ada, "nightly", /Audit trail/))).toMatch(
      /⏸️ olivia is rolling out restarting nightly-0, nightly-1, nightly-2 and 1 more: 1 done, 1 running, 2 not begun yet\./,
    );
    if (isOffered("gatehouse digest")) {
      await world.olivia.types("nightly", "/gatehouse digest handover");
      await fleet.hears(
        /Rollouts under way:\n• olivia's restart \(roll-\w+\), paused, hasn't begun on nightly-2, nightly-3/,
      );
    }
    letGo();
    await world.olivia.presses("Stop", { channel: "nightly" });
    await fleet.end();
    await world.olivia.types("nightly", "/gatehouse night 1h");
    await fleet.hears(
      /❌ olivia rolled out restarting [^]*2 done, 2 never began\.\nEnded [^]*: stopped by olivia\./,
    );
  });

  it("let VMs in progress end after Stop, and start no others", async () => {
    const fleet = await world.fleet("halted");
    const letGo = fleet.holds("halted-1");
    await fleet.rolls("/vm restart halted-*");
    await world.compute.called("POST /v1/vms/halted-1/restart");
    await world.olivia.presses("Stop", { channel: "halted" });
    await fleet.hears(/Stopped by olivia\. VMs in progress will finish/);
    letGo();
    expect(await fleet.end()).toMatch(
      /^❌ <@U0OLIVIA> Restart of 4 VMs was stopped after \d+ s by olivia\./,
    );
    const { progress, state } = await fleet.rollout();
    expect([state, progress.ok]).toEqual(["stopped", 2]);
    expect(touched(world)).toEqual(fleet.vms.slice(0, 2));
  });
});

describe("a crash in the middle of a rollout", () => {
  /** A failpoint that makes the process die once at each of these points. */
  function dyingAt(...points: readonly string[]) {
    const left = new Set(points);
    return async (point: string) => {
      if (left.delete(point)) throw new Error(`died at ${point}`);
    };
  }

  it("touches no VM twice and leaves none out, between the claim of a target and its request, or right after it", async () => {
    await using own = await startWorld({
      ...fleetOf(3),
      at: dyingAt("roll-claimed", "roll-submitted"),
    });
    await rollouts(own.olivia, "/vm restart vm-0000-* --max-unavailable 2", { "roll:number": "3" });
    await hears(own.olivia, "ops", ended);
    expect(own.lines.filter((line) => line.includes("died at roll-"))).toHaveLength(2);
    expect(touched(own).toSorted()).toEqual(numbered(0, 3));
  });

  it("is noticed by the other worker, which continues; where none is left for too long, a person decides whether it is still wanted", async () => {
    await using own = await startWorld({ ...fleetOf(5), roles: ["gateway", "worker"] });
    await own.startProcess("worker");
    const holds = (vm: string) => {
      own.compute.weather({ match: `POST /v1/vms/${vm}/restart`, stuck: true, times: 1 });
      return async () => {
        own.compute.edit.setStatus({ vm, status: "RUNNING" });
        own.compute.edit.setMachine({ vm });
      };
    };
    const [first, second] = ["vm-0000-001", "vm-0000-003"].map(holds);
    await rollouts(own.olivia, "/vm restart vm-0000-*", { "roll:number": "5" });
    await own.compute.called("POST /v1/vms/vm-0000-001/restart");
    await own.processes[1]?.close();
    await first?.();
    await own.compute.called("POST /v1/vms/vm-0000-003/restart");
    await own.processes[2]?.close();
    const { record, seenAt } = await theRollout(own);
    await own.client.hset(own.key("roll", record.id), "seenAt", seenAt - 900_000);
    await second?.();
    await own.startProcess("worker");
    await hears(own.olivia, "ops", /Paused: no worker advanced it for 15 min/);
    await own.olivia.presses("Resume", { channel: "ops" });
    expect(wordsOf(await hears(own.olivia, "ops", ended))).toContain("Restarted 5 VMs");
    expect(touched(own)).toEqual(numbered(0, 5));
    const { vms } = own.compute.truth();
    expect(numbered(0, 5).map((vm) => vms[vm]?.restarts)).toEqual(Array(5).fill(1));
  });
});

describe("a freeze in the middle of a rollout", () => {
  it("pauses it, and Resume goes on after the thaw", async () => {
    const fleet = await world.fleet("frozen");
    const letGo = fleet.holds("frozen-0");
    await fleet.rolls("/vm restart frozen-*");
    await world.compute.called("POST /v1/vms/frozen-0/restart");
    await world.ada.types("frozen", "/gatehouse freeze something is wrong");
    await fleet.hears(/Paused: all changes are frozen/);
    letGo();
    await world.ada.types("frozen", "/gatehouse thaw");
    await hears(world.ada, "frozen", /[Tt]haw/);
    await world.olivia.presses("Resume", { channel: "frozen" });
    expect(await fleet.end()).toContain("Restarted 3 VMs");
    expect(touched(world)).toEqual(fleet.vms);
  });
});
