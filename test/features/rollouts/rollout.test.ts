import { usualPace } from "../../../src/config/policy-schema.ts";
import { describe, expect, it } from "vitest";
import {
  cardOf,
  dialogOf,
  fleetOf,
  numbered,
  rollStore,
  rollouts,
  theRollout,
  touched,
} from "./rollout-world.ts";
import { policyWith, startWorld, testPolicy } from "../../support/start-world.ts";
import { restIdOf } from "../../../src/features/rollouts/rollout.ts";
import { hears, wordsOf } from "../../stories/words.ts";

const ended = /<@U0OLIVIA> ([\w ]+ (\d+ of )?\d+ VMs? \(|\w+ of \d+ VMs? was stopped)/;

describe("several VMs in one command", () => {
  it("are listed before anything runs, run one by one after a canary, and share one message", async () => {
    const usual = { editMs: usualPace.editMs };
    await using world = await startWorld({ ...fleetOf(12), pace: usual });
    world.slack.forgetCalls();
    await world.olivia.types("ops", "/vm restart vm-0000-* --canary");
    const dialog = await dialogOf(world.olivia);
    expect(dialog).toContain(
      "Restart 12 VMs (vm-0000-).\n⚠️ This is every VM you can see.\n⚠️ This interrupts what runs on 12 VMs, 1 at a time.",
    );
    for (const name of numbered(0, 12)) expect(dialog).toContain(`• ${name} in team-0000, RUNNING`);
    expect(world.compute.writes()).toEqual([]);
    const refused = await world.olivia.submits({ "roll:number": "11", "roll:most": "0" });
    expect(refused.errors).toEqual({
      "roll:number": "Type 12: the number of VMs that will change.",
      "roll:most": "A whole number from 1, or a percentage like 10%.",
    });
    await world.olivia.submits({ "roll:number": "12", "roll:most": "1" });
    const end = await hears(world.olivia, "ops", ended);
    expect(wordsOf(end)).toMatch(/^✅ <@U0OLIVIA> Restarted 12 VMs \(vm-0000-\) in \d+ s\.\n/);
    expect(wordsOf(end)).toMatch(/vm-0000-011 \| ✅ Restarted \| team-0000 \| 1 s/);
    expect(touched(world)).toEqual(numbered(0, 12));
    // Each VM is settled and attested before the next one begins.
    const calls = world.compute.calls().map(({ method, path }) => `${method} ${path}`);
    for (const [at, name] of numbered(0, 11).entries()) {
      const attested = calls.lastIndexOf(`GET /v1/vms/${name}/attestation`);
      const next = calls.indexOf(`POST /v1/vms/${numbered(at + 1, at + 2)[0]}/restart`);
      expect(attested, name).toBeGreaterThan(-1);
      expect(attested, name).toBeLessThan(next);
    }
    // The result is posted first, then the card is edited.
    const card = await hears(world.olivia, "ops", /^✅ Restarted 12 VMs/);
    expect(end.threadTs).toBe(card.ts);
    expect(wordsOf(card)).toMatch(
      /^✅ Restarted 12 VMs \(vm-0000-\) in \d+ s\.\nRequested by .* · 1 at a time · canary first · stops after the first failure$/,
    );
    const counts = world.slack.callCounts();
    expect(counts["chat.postMessage"]).toBe(2);
    const seconds = Number(/in (\d+) s/.exec(wordsOf(end))?.[1]);
    expect(counts["chat.update"] ?? 0).toBeLessThanOrEqual(2 + seconds / 4);
    expect(world.olivia.mentions()).toHaveLength(1);
  });

  it("stop at the first that fails; the table begins with it and names those that didn't start", async () => {
    await using world = await startWorld(fleetOf(5));
    world.compute.weather({ match: "POST /v1/vms/vm-0000-001/restart", goesTo: "ERROR" });
    await rollouts(world.olivia, "/vm restart vm-0000-*", { "roll:number": "5" });
    const rows = wordsOf(await hears(world.olivia, "ops", ended)).split("\n");
    expect(rows[0]).toMatch(
      /^❌ <@U0OLIVIA> Restart of 5 VMs was stopped at vm-0000-001: the compute service reports ERROR\. vm-0000-000 restarted; 3 not touched\.$/,
    );
    expect(rows[1]).toBe("■■□□□ 2 of 5 · 1 failed");
    expect(
      rows.slice(3).map((row) =>
        row
          .split(" | ")
          .filter((_, at) => at < 2)
          .join(" "),
      ),
    ).toEqual([
      "vm-0000-001 ❌ Failed, stopped here",
      "vm-0000-002 – Not started",
      "vm-0000-003 – Not started",
      "vm-0000-004 – Not started",
      "vm-0000-000 ✅ Restarted",
    ]);
    expect(touched(world)).toEqual(numbered(0, 2));
    // One press starts the rest, and only once.
    const card = await hears(
      world.olivia,
      "ops",
      /Stopped at vm-0000-001: [^]*\[Skip vm-0000-001, continue with 3\] \[Try vm-0000-001 again, then the other 3\]/,
    );
    await world.olivia.presses("Skip vm-0000-001, continue with 3", { in: card.ts });
    const rest = wordsOf(await hears(world.olivia, "ops", /<@U0OLIVIA> Restarted 3 VMs/));
    expect(rest).toContain("Restarted 3 VMs");
    await world.olivia.presses("Skip vm-0000-001, continue with 3", { in: card.ts });
    await world.olivia.presses("Try vm-0000-001 again, then the other 3", { in: card.ts });
    await hears(
      world.olivia,
      "ops",
      /The rest of this rollout was already started by olivia, without vm-0000-001: roll-/,
    );
    expect(touched(world)).toEqual(numbered(0, 5));
  });

  it("go on with the rest as the button says, although the process died that planned it, and a plan replaces nothing", async () => {
    await using world = await startWorld(fleetOf(3));
    world.compute.weather({ match: "POST /v1/vms/vm-0000-000/restart", goesTo: "ERROR" });
    await rollouts(world.olivia, "/vm restart vm-0000-*", { "roll:number": "3" });
    await hears(world.olivia, "ops", ended);
    const stored = rollStore(world);
    const { record, targets } = await theRollout(world);
    // Somebody pressed Try again, and the process died before it began.
    const rest = { ...record, id: restIdOf(record.id), total: 3 };
    await stored.plan(rest, targets);
    const card = await hears(world.olivia, "ops", /Stopped at [^]*\[Skip vm-0000-000/);
    await world.olivia.presses("Skip vm-0000-000, continue with 2", { in: card.ts });
    await hears(world.olivia, "ops", /<@U0OLIVIA> Restarted 2 VMs/);
    await stored.plan(rest, targets);
    expect(await stored.stateOf(rest.id)).toBe("done");
    expect(touched(world)).toEqual(numbered(0, 3));
  });

  it("stop at one that is not attested any more, however many failures are allowed", async () => {
    await using world = await startWorld(fleetOf(5));
    void world.compute
      .called("POST /v1/vms/vm-0000-002/restart")
      .then(() => world.compute.edit.setVerified({ vm: "vm-0000-002", verified: false }));
    await rollouts(world.olivia, "/vm restart vm-0000-* --stop-on-failure 4", {
      "roll:number": "5",
    });
    const end = wordsOf(await hears(world.olivia, "ops", ended));
    expect(end).toContain(
      "was stopped at vm-0000-002: attestation failed: the compute service says the report is not verified.",
    );
    expect(touched(world)).toEqual(numbered(0, 3));
  });

  it("stop before one that Gatehouse wouldn't verify, and say why", async () => {
    await using world = await startWorld(fleetOf(4));
    world.compute.edit.setMachine({ vm: "vm-0000-002", debug: true });
    await rollouts(world.olivia, "/vm restart vm-0000-*", { "roll:number": "4" });
    const end = wordsOf(await hears(world.olivia, "ops", ended));
    expect(end).toContain(
      "was stopped before vm-0000-002: debugging is on: the host can read the VM's memory. vm-0000-000, vm-0000-001 restarted; 2 not touched.",
    );
    // The result and the card both say "2 of 4" and that 2 were not touched.
    expect(end).toMatch(/ 2 of 4$/m);
    const stopped = wordsOf(await hears(world.olivia, "ops", /Stopped before vm-0000-002/));
    expect(stopped).toMatch(/ 2 of 4$/m);
    expect(stopped).toContain("2 not touched");
    expect(end).toMatch(/vm-0000-002 \| ❌ Not touched, stopped here \| .*debugging is on/);
    expect(touched(world)).toEqual(numbered(0, 2));
    // Tried again without a change, the rollout stops before the same VM again; then that VM is
    // skipped.
    const card = await hears(world.olivia, "ops", /\[Try vm-0000-002 again, then the other 1\]/);
    await world.olivia.presses("Try vm-0000-002 again, then the other 1", { in: card.ts });
    await hears(world.olivia, "ops", /Restart of 2 VMs was stopped before vm-0000-002/);
    expect(touched(world)).toEqual(numbered(0, 2));
    const next = await hears(world.olivia, "ops", /2 VMs[^]*\[Skip vm-0000-002, continue with 1\]/);
    await world.olivia.presses("Skip vm-0000-002, continue with 1", { in: next.ts });
    await hears(world.olivia, "ops", /<@U0OLIVIA> Restarted 1 VM/);
    expect(touched(world)).toEqual([...numbered(0, 2), ...numbered(3, 4)]);
  });

  it("continue with the one that stopped them, once it is fixed", async () => {
    await using world = await startWorld(fleetOf(4));
    world.compute.edit.setMachine({ vm: "vm-0000-001", debug: true });
    await rollouts(world.olivia, "/vm restart vm-0000-*", { "roll:number": "4" });
    const card = await hears(world.olivia, "ops", /\[Try vm-0000-001 again, then the other 2\]/);
    world.compute.edit.setMachine({ vm: "vm-0000-001", debug: false });
    // Somebody pressed Skip, and the process died before it began.
    const { record, targets } = await theRollout(world);
    const skipping = { ...record, id: restIdOf(record.id), total: 2 };
    await rollStore(world).plan(skipping, targets.slice(2));
    await world.olivia.presses("Try vm-0000-001 again, then the other 2", { in: card.ts });
    await hears(world.olivia, "ops", /<@U0OLIVIA> Restarted 3 VMs/);
    expect(touched(world)).toEqual(numbered(0, 4));
  });

  it("continue after allowed failures, several at a time", async () => {
    await using world = await startWorld(fleetOf(8));
    world.compute.weather({
      match: "POST /v1/vms/vm-0000-001/stop",
      status: 409,
      message: "not today",
    });
    await rollouts(world.olivia, "/vm stop vm-0000-* --max-unavailable 50% --stop-on-failure 2", {
      "roll:number": "8",
    });
    const end = wordsOf(await hears(world.olivia, "ops", ended));
    expect(end).toMatch(/^⚠️ <@U0OLIVIA> Stopped 7 of 8 VMs \(vm-0000-\) in \d+ s; 1 failed\.\n/);
    expect(new Set(touched(world))).toEqual(new Set(numbered(0, 8)));
    expect(
      Object.values(world.compute.truth().vms).filter(({ status }) => status === "STOPPED"),
    ).toHaveLength(7);
  });

  it("wait for a person when one outcome is unknown: its message with the buttons is in the thread", async () => {
    await using world = await startWorld(fleetOf(3));
    world.compute.weather({ match: "POST /v1/vms/vm-0000-000/snapshots", lost: "after" });
    await rollouts(world.olivia, "/vm snapshot vm-0000-* nightly --max-unavailable 1", {
      "roll:number": "3",
    });
    const end = wordsOf(await hears(world.olivia, "ops", ended));
    expect(end).toContain("vm-0000-000 | ❓ Unknown, stopped here | team-0000");
    // The outcome isn't known yet, so no message says that it failed.
    expect(end).toContain("1 of 3 · 1 unknown");
    expect(end).not.toContain("1 failed");
    expect(end).toContain("was stopped at vm-0000-000: its outcome is unknown. 2 not touched.");
    const card = await hears(world.olivia, "ops", /\[Skip vm-0000-000, continue with 2\]/);
    expect(wordsOf(card)).not.toContain("[Try");
    const asking = await hears(world.olivia, "ops", /Outcome unknown[^]*\[It happened\]/);
    expect(asking.threadTs).toBe(cardOf(world.olivia)?.ts);
    expect(touched(world)).toEqual(["vm-0000-000"]);
  });
});

describe("a rollout that can't start", () => {
  const answers: readonly [words: string, answer: RegExp][] = [
    ["/vm restart wbe-*", /wbe-∗ matches none of the 8 VMs you can see\. Nothing was done\./],
    [
      "/vm restart web-2 wbe-2",
      /There is no VM called wbe-2\. Did you mean… Nothing was done\.\npayments\/web-2.*: each of several VMs must be named exactly\./,
    ],
    ["/vm restart web-2 web-1", /2 VMs are called web-1\. Which one\? Nothing was done\./],
  ];
  it.each(answers)("%s is answered before anything is asked", async (words, answer) => {
    await using world = await startWorld();
    await world.olivia.types("ops", words);
    expect((await hears(world.olivia, "ops", answer)).ephemeral).toBe(true);
    expect(world.olivia.sees().modals).toEqual([]);
    expect(world.compute.writes()).toEqual([]);
  });

  it("skips VMs that are protected or in another state, and names the reason", async () => {
    await using world = await startWorld();
    await world.olivia.types("ops", "/vm stop *-1");
    const dialog = await dialogOf(world.olivia);
    expect(dialog).toContain("Stop 3 VMs (-1).");
    expect(dialog).toContain("• protected by vault-∗: vault-1");
    expect(dialog).toContain("• STOPPED, nothing to change: gpu-1, worker-1");
    await world.olivia.submits();
    const end = wordsOf(await hears(world.olivia, "ops", ended));
    expect(end).toContain("Skipped: ");
    expect(touched(world).toSorted()).toEqual([
      "vm-payments-db-1",
      "vm-payments-web-1",
      "vm-staging-web-1",
    ]);
  });

  it("says that others would have to approve", async () => {
    const policy = `${testPolicy}approvals:\n  - { operations: ["vm.restart"], targets: ["db-*"], required: 1 }\n`;
    await using world = await startWorld({ policy });
    await world.olivia.types("ops", "/vm restart payments/*");
    expect(await dialogOf(world.olivia)).toMatch(
      /db-1 can't be part of a rollout: approvals\[1\].* requires 1 for vm\.restart on db-∗\. Request those one by one/,
    );
    expect(world.compute.writes()).toEqual([]);
  });

  it("is refused to a person without the right, without a form", async () => {
    await using world = await startWorld();
    await world.vera.types("ops", "/vm restart web-*");
    await hears(world.vera, "ops", /Only @oncall can restart VMs/);
    expect(world.vera.sees().modals).toEqual([]);
  });
});

describe("a rollout of many VMs", () => {
  it("shows counts, sends its lists as files only when asked, asks to type the number, and ends with a button for the list", async () => {
    // A busy machine doesn't answer 120 reads within the second that most tests give the service.
    const timing = { httpTimeout: "10s", quiesce: "40s", settleDeadline: "60s" };
    await using world = await startWorld({ ...fleetOf(120, 20), policy: policyWith({ timing }) });
    await world.olivia.types("ops", "/vm resize vm-* --cpu 8 --memory 32 --max-unavailable 40%");
    const dialog = await dialogOf(world.olivia);
    expect(dialog).toContain("CPU 4 → 8, memory 16 → 32");
    expect(dialog).toContain("2 STOPPED, 118 RUNNING, in 1 project.\n[As a file]");
    expect(dialog).toContain("Type 120 to confirm");
    await world.olivia.submits({ "roll:number": "120" });
    const end = await hears(world.olivia, "ops", ended);
    expect(wordsOf(end)).toContain("Resized 120 VMs (vm-)");
    expect(wordsOf(end)).toContain("20 more:");
    await world.vera.presses("List of 120 VMs", { in: end.ts, channel: "ops" });
    await hears(world.vera, "ops", /Only @\S*oncall can/);
    await world.olivia.presses("List of 120 VMs", { in: end.ts, channel: "ops" });
    await hears(world.olivia, "ops", /The list is in your direct messages/);
    const sent = world.olivia.seesChannel("gatehouse").messages.flatMap(({ files }) => files);
    expect(sent.map(({ name }) => name)).toEqual([expect.stringMatching(/^r.*\.csv$/)]);
    expect(new Set(touched(world)).size).toBe(120);
    expect(world.olivia.mentions()).toHaveLength(1);
  });

  it("says what is wrong with its form by the names of the fields, like the form of one VM", async () => {
    await using world = await startWorld(fleetOf(2));
    await world.olivia.types("ops", "/vm resize vm-0000-* --cpu 8 --memory 32");
    await dialogOf(world.olivia);
    const { errors } = await world.olivia.submits({ CPU: "many", "roll:number": "2" });
    expect(errors).toEqual({
      "arg:cpu": "CPU must be a whole number from 1 to 1,000,000, in digits.",
    });
    expect(world.compute.writes()).toEqual([]);
  });

  it("requested in a message is opened with a button", async () => {
    await using world = await startWorld(fleetOf(2));
    await world.olivia.types("ops", "@gatehouse vm restart vm-0000-*");
    await hears(world.olivia, "ops", /Restart 2 VMs \(vm-0000-\)\?/);
    await world.olivia.presses("Review 2 VMs");
    await dialogOf(world.olivia);
    await world.olivia.submits({ "roll:number": "2" });
    await hears(world.olivia, "ops", ended);
    expect(touched(world)).toEqual(numbered(0, 2));
  });
});

describe("Pause, Resume and Stop", () => {
  it("work at once, and a paused rollout stays paused when every process restarts", async () => {
    await using world = await startWorld(fleetOf(6, 80));
    await rollouts(world.olivia, "/vm restart vm-0000-*", { "roll:number": "6" });
    await world.compute.called("POST /v1/vms/:id/restart", 2);
    await world.olivia.until(() => cardOf(world.olivia) !== undefined);
    await world.olivia.presses("Pause", { channel: "ops" });
    await hears(world.olivia, "ops", /⏸️ Paused by olivia\./);
    await world.settled();
    const before = touched(world);
    expect(before.length).toBeLessThan(6);
    await world.processes[0]?.close();
    await world.startProcess("all");
    await world.slack.connected();
    expect((await theRollout(world)).state).toBe("paused");
    expect(touched(world)).toEqual(before);
    await world.olivia.presses("Resume", { channel: "ops" });
    await hears(world.olivia, "ops", ended);
    expect(touched(world)).toEqual(numbered(0, 6));
  });

  it("let VMs in progress end after Stop, and start no others", async () => {
    await using world = await startWorld(fleetOf(6, 80));
    await rollouts(world.olivia, "/vm restart vm-0000-*", { "roll:number": "6" });
    await world.compute.called("POST /v1/vms/:id/restart", 2);
    await world.olivia.until(() => cardOf(world.olivia) !== undefined);
    await world.olivia.presses("Stop", { channel: "ops" });
    const end = wordsOf(await hears(world.olivia, "ops", ended));
    expect(end).toMatch(/^❌ <@U0OLIVIA> Restart of 6 VMs was stopped after \d+ s by olivia\./);
    const { progress, state } = await theRollout(world);
    expect(state).toBe("stopped");
    expect(progress.ok).toBe(touched(world).length);
    expect(progress.ok).toBeLessThan(6);
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

  it("between the claim of a target and its request, or right after it, touches no VM twice and leaves none out", async () => {
    await using world = await startWorld({
      ...fleetOf(6),
      at: dyingAt("roll-claimed", "roll-submitted"),
    });
    await rollouts(world.olivia, "/vm restart vm-0000-* --max-unavailable 2", {
      "roll:number": "6",
    });
    await hears(world.olivia, "ops", ended);
    expect(world.lines.filter((line) => line.includes("died at roll-"))).toHaveLength(2);
    expect(touched(world).toSorted()).toEqual(numbered(0, 6));
  });

  it("of one of two workers is noticed by the other, which continues", async () => {
    await using world = await startWorld({ ...fleetOf(8, 60), roles: ["gateway", "worker"] });
    await world.startProcess("worker");
    await rollouts(world.olivia, "/vm restart vm-0000-*", { "roll:number": "8" });
    await world.compute.called("POST /v1/vms/:id/restart", 3);
    await world.processes[1]?.close();
    const end = wordsOf(await hears(world.olivia, "ops", ended));
    expect(end).toContain("Restarted 8 VMs");
    expect(touched(world)).toEqual(numbered(0, 8));
    const { truth } = world.compute;
    expect(Object.values(truth().vms).map(({ restarts }) => restarts)).toEqual(Array(8).fill(1));
  });

  it("that leaves no worker for too long pauses the rollout: a person decides whether it is still wanted", async () => {
    const policy = policyWith({ timing: { staleAfter: "500ms" } });
    await using world = await startWorld({
      ...fleetOf(6, 60),
      policy,
      roles: ["gateway", "worker"],
    });
    await rollouts(world.olivia, "/vm restart vm-0000-*", { "roll:number": "6" });
    await world.compute.called("POST /v1/vms/:id/restart", 2);
    await world.processes[1]?.close();
    const { seenAt } = await theRollout(world);
    await world.client.hset(
      world.key("roll", (await theRollout(world)).record.id),
      "seenAt",
      seenAt - 600_000,
    );
    await world.startProcess("worker");
    await hears(world.olivia, "ops", /Paused: no worker advanced it for 10 min/);
    await world.olivia.presses("Resume", { channel: "ops" });
    await hears(world.olivia, "ops", ended);
    expect(touched(world)).toEqual(numbered(0, 6));
  });

  it("a freeze pauses it, and Resume goes on after the thaw", async () => {
    await using world = await startWorld(fleetOf(6, 60));
    await rollouts(world.olivia, "/vm restart vm-0000-*", { "roll:number": "6" });
    await world.compute.called("POST /v1/vms/:id/restart", 1);
    await world.ada.types("ops", "/gatehouse freeze something is wrong");
    await hears(world.olivia, "ops", /Paused: all changes are frozen/);
    await world.ada.types("ops", "/gatehouse thaw");
    await hears(world.ada, "ops", /[Tt]haw/);
    await world.olivia.presses("Resume", { channel: "ops" });
    expect(wordsOf(await hears(world.olivia, "ops", ended))).toContain("Restarted 6 VMs");
    expect(touched(world)).toEqual(numbered(0, 6));
  });
});
