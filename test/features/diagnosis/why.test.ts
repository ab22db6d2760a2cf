import { afterAll, describe, expect, it } from "vitest";
import { commands } from "../../../src/features/index.ts";
import { type StatusFacts, explainStatus } from "../../../src/core/facts/status-facts.ts";
import { readable } from "../../../src/messages/markdown.ts";
import { requestable } from "../../../src/registry/define.ts";
import { launchMeasurement } from "../../../sandbox/compute/records.ts";
import type { PersonActions } from "../../../sandbox/slack/actions.ts";
import { hears, wordsOf } from "../../stories/words.ts";
import { type SeenStatus, createStatusRecords } from "../../../src/monitor/status-records.ts";
import { passQuiet } from "../../support/pass-time.ts";
import { policyWith, startWorld } from "../../support/start-world.ts";
import { until } from "../../support/until.ts";

/** Two teams; web-2 is pinned to what it measures with its four CPUs. */
const policy = `${policyWith({ view: ["U0VERA"] })}teams:
  payments: { projects: ["payments"], view: ["U0VERA"], operate: ["S01ONCALL"], channel: C01OPS }
  other: { projects: ["other"], view: ["U0AMIR"], operate: ["U0AMIR"] }
attestation:
  endorsements: endorsements
  pins: [{ targets: ["payments/web-2"], measurements: ["${launchMeasurement("web-2 v1", 4)}"] }]
`;
const world = await startWorld({ policy, pace: { inventoryRefreshMs: 300 } });
afterAll(() => world.close());
const { olivia, vera, amir, ada } = world;
const statuses = createStatusRecords(world.client, world.key);

/** Resolves once the monitor has read this status of a VM. */
function monitorSees(status: string, vm = "vm-payments-web-2") {
  return until(async () => {
    const seen = await statuses.readRecords(["prj-payments"]);
    return seen.get("prj-payments")?.[vm]?.[0];
  }).toBe(status);
}

/** What a person reads in answer to these words, and nothing older. */
async function told(
  person: PersonActions,
  text: string,
  words: RegExp,
  channel = "ops",
): Promise<string> {
  const before = person.seesChannel(channel).messages.length;
  const find = () =>
    person
      .seesChannel(channel)
      .messages.slice(before)
      .map(wordsOf)
      .find((one) => words.test(one));
  await person.types(channel, text);
  await person.until(() => find() !== undefined);
  return find() ?? "";
}

/** The newest request once it has ended, where `make` makes it. */
async function made(make: () => Promise<unknown>) {
  const before = new Set(await world.store.recentIds({}, 200));
  await make();
  await until(async () => (await world.store.recentIds({}, 1)).some((id) => !before.has(id))).toBe(
    true,
  );
  return world.ended();
}

const why = (person: PersonActions, vm: string) =>
  told(
    person,
    `/gatehouse why ${vm}`,
    new RegExp(`^\\S+ ${vm} (is|has)|froze all changes at|There is no`),
  );

describe("/gatehouse why <vm>", () => {
  it("says that nothing is known against it, what it looked at, and what was changed last", async () => {
    expect(await why(olivia, "web-2")).toMatch(
      /^🟢 web-2 is RUNNING\. The attestation of web-2 was verified at [^\n]+\. Nothing else is known against it\.\nGatehouse has no change of it on record\.\n\[Show\]/,
    );
    const { record } = await made(() => olivia.types("ops", "/vm restart web-2"));
    expect(await why(olivia, "web-2")).toMatch(
      new RegExp(
        `Nothing else is known against it\\.\\nLast change with Gatehouse: olivia restarted it at .* \\(${record.id}\\)\\.\\n\\[History\\] \\[Show\\]`,
      ),
    );
    const before = olivia.seesChannel("ops").messages.length;
    await olivia.presses("History");
    await olivia.until(() => olivia.seesChannel("ops").messages.length > before);
    expect(wordsOf(await hears(olivia, "ops", /Steps/))).toContain(record.id);
  });

  it("says who stopped it, and starts it", async () => {
    const { record } = await made(() => olivia.types("ops", "/vm stop web-2"));
    const text = await why(olivia, "web-2");
    expect(text).toMatch(
      new RegExp(`^⚪ web-2 is STOPPED: olivia stopped it at .* \\(${record.id}\\)\\.`),
    );
    expect(text).toContain("[Start] [History] [Show]");
    await made(() => olivia.presses("Start"));
    expect(world.compute.vm("web-2").status).toBe("RUNNING");
    // Who can't start it gets no button.
    expect(await why(vera, "web-2")).toMatch(/Nothing else is known[^]*\n\[History\] \[Show\]/);
  });

  it("doesn't say that a stop explains it, where the monitor missed the start after it", async () => {
    // Those of the test above.
    const newest = await world.store.getMany(await world.store.recentIds({}, 2));
    const [start, stop] = newest.toSorted((a, b) => b.record.createdAt - a.record.createdAt);
    if (!start || !stop) throw new Error("a stop and a start are on record");
    const requests = [start, stop].flatMap((request) => {
      const command = requestable(commands).find(({ name }) => name === request.record.command);
      return command ? [{ request, command }] : [];
    });
    const target = { ...start.record.target, status: "STOPPED" };
    const seenAt = (since: number) =>
      explainStatus({
        target,
        seen: ["STOPPED", since, "RUNNING"],
        requests,
        commands,
        now: Date.now(),
      }).map(({ text }) => readable(text).value);
    expect(seenAt(stop.changedAt + 1)).toEqual([
      "web-2 is STOPPED; Gatehouse doesn't know since when.",
    ]);
    expect(seenAt(start.changedAt + 1)).toEqual([
      expect.stringMatching(
        /^web-2 has been STOPPED since .*, after olivia's start \(r-\w+\), which left it RUNNING; Gatehouse doesn't know what changed it then\.$/,
      ),
    ]);
  });

  it("blames nobody for a status that was seen to be another one since", async () => {
    const [stop] = await world.store
      .getMany(await world.store.recentIds({}, 200))
      .then((all) => all.filter(({ record }) => record.command === "vm stop"));
    const command = requestable(commands).find(({ name }) => name === "vm stop");
    if (!stop || !command) throw new Error("a stop is on record");
    const { changedAt } = stop;
    const target = { ...stop.record.target, status: "STOPPED" };
    const causeAt = (seen: SeenStatus | undefined, more: Partial<StatusFacts> = {}) =>
      explainStatus({
        target,
        seen,
        requests: [{ request: stop, command }],
        commands,
        now: changedAt + 600_000,
        ...more,
      }).map(({ text }) => readable(text).value)[0];
    const did = String.raw`web-2 is STOPPED: olivia stopped it at .* \(r-\w+\)`;
    const [early, late] = [changedAt - 60_000, changedAt + 60_000];
    expect(causeAt(["STOPPED", changedAt + 1, "RUNNING", early])).toMatch(
      new RegExp(`^${did}\\.$`),
    );
    // Somebody else started it, and it stopped again
    expect(causeAt(["STOPPED", late + 60_000, "RUNNING", late])).toMatch(
      /^web-2 has been STOPPED since .*, when it was seen to change from RUNNING: no request to Gatehouse did that\.$/,
    );
    expect(causeAt(["RUNNING", late, "STOPPED", changedAt + 1])).toBe(
      "web-2 is STOPPED; Gatehouse doesn't know since when.",
    );
    // A status on the way there is no other one
    expect(causeAt(["STOPPED", late, "STOPPING", changedAt + 1])).toMatch(
      new RegExp(`^${did}\\.$`),
    );
    // Nothing was read for long
    const unsure = new RegExp(`^${did}; Gatehouse doesn't know whether it was changed since\\.$`);
    for (const seen of [
      undefined,
      ["RUNNING", early] as const,
      ["STOPPED", changedAt + 540_000, "RUNNING", early] as const,
    ])
      expect(causeAt(seen), JSON.stringify(seen)).toMatch(unsure);
    // Right after it, nothing was read yet
    const now = changedAt + 1_000;
    expect(causeAt(["RUNNING", early], { now })).toMatch(new RegExp(`^${did}\\.$`));
    // Where the service tells when it changed its record, another time than then
    const times = ["2030-01-01T00:00:00Z", "2031-01-01T00:00:00Z"] as const;
    const [dated, newer] = times.map((updatedAt) => ({ ...target, updatedAt }));
    const after = dated;
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the same stop with a time
    const requests = [
      { request: { ...stop, stage: { ...stop.stage, after } } as typeof stop, command },
    ];
    const begun = ["STOPPED", changedAt + 1, "RUNNING", early] as const;
    expect(causeAt(begun, { target: dated ?? target, requests })).toMatch(
      new RegExp(`^${did}\\.$`),
    );
    expect(causeAt(begun, { target: newer ?? target, requests })).toMatch(
      new RegExp(`^${did}; it was changed since\\.$`),
    );
    // What was refused is behind nothing
    const stage = { ...stop.stage, state: "rejected", why: "no" };
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a stop that was refused
    const refused = { ...stop, state: "rejected", stage } as typeof stop;
    expect(
      causeAt(["STOPPED", changedAt + 1, "RUNNING", early], {
        requests: [{ request: refused, command }],
      }),
    ).toMatch(/: no request to Gatehouse did that\.$/);
  });

  it("no longer says that somebody stopped it once it was started and stopped elsewhere", async () => {
    const vm = "vm-payments-db-1";
    const { record } = await made(() => olivia.types("ops", "/vm stop db-1"));
    expect(await why(olivia, "db-1")).toMatch(
      new RegExp(`^⚪ db-1 is STOPPED: olivia stopped it at .* \\(${record.id}\\)\\.`),
    );
    for (const status of ["STOPPED", "RUNNING", "STOPPED"]) {
      world.compute.edit.setStatus({ vm, status });
      await monitorSees(status, vm);
    }
    expect(await why(olivia, "db-1")).toMatch(
      /^⚪ db-1 has been STOPPED since .*, when it was seen to change from RUNNING: no request to Gatehouse did that\./,
    );
    world.compute.edit.setStatus({ vm, status: "RUNNING" });
    await monitorSees("RUNNING", vm);
  });

  it("says that no request stopped it, where it was seen to run after the last one", async () => {
    for (const status of ["STOPPED", "RUNNING", "STOPPED"]) {
      world.compute.edit.setStatus({ vm: "vm-payments-web-2", status });
      await monitorSees(status);
    }
    await until(() => why(olivia, "web-2")).toMatch(
      /^⚪ web-2 has been STOPPED since .*, when it was seen to change from RUNNING: no request to Gatehouse did that\.\nLast change with Gatehouse: olivia started it/,
    );
    world.compute.edit.setStatus({ vm: "vm-payments-web-2", status: "RUNNING" });
  });

  it("says when it stopped without a request, as the monitor saw it", async () => {
    world.compute.edit.setStatus({ vm: "vm-payments-db-1", status: "STOPPED" });
    await until(() => why(olivia, "db-1")).toMatch(
      /^⚪ db-1 has been STOPPED since .*, when it was seen to change from RUNNING: no request to Gatehouse did that\./,
    );
    world.compute.edit.setStatus({ vm: "vm-payments-db-1", status: "RUNNING" });
    await monitorSees("RUNNING", "vm-payments-db-1");
  });

  it("says that it is in ERROR, since when, after which request, and what may help", async () => {
    world.compute.weather({ match: "POST /v1/vms/:id/restart", times: 1, goesTo: "ERROR" });
    const { record, state } = await made(() => olivia.types("ops", "/vm restart db-1"));
    expect(state).toBe("failed");
    await until(() => why(olivia, "db-1")).toMatch(
      new RegExp(
        `^🔴 db-1 has been in ERROR since .*, after olivia's restart \\(${record.id}\\), which failed\\.\nNext: `,
      ),
    );
    expect(await told(olivia, "/vm show db-1", /db-1 is ERROR/)).toContain("[Why?]");
    const viewed = await told(vera, "/gatehouse why db-1", /in ERROR/);
    expect(viewed).not.toContain("[Console]");
    world.compute.edit.setStatus({ vm: "vm-payments-db-1", status: "RUNNING" });
  });

  it("says whose request broke its pin, and offers both ways to end that", async () => {
    await olivia.types("ops", "/vm resize web-2 --cpu 8 --memory 32");
    await olivia.until(({ modals }) => modals.some(({ submit }) => submit === "Resize"));
    const { record } = await made(() => olivia.submits({}));
    // In a card of its own, or, after many requests at once, in a shared one
    await hears(olivia, "ops", /Resized web-2/);
    await until(() => why(olivia, "web-2")).toMatch(/^🔴/);
    const text = await why(olivia, "web-2");
    expect(text).toMatch(
      new RegExp(
        `^🔴 web-2 has failed attestation since olivia resized it at .* \\(${record.id}\\): its measurement changed, its pin didn't\\.`,
      ),
    );
    expect(text).toContain("[Resize back] [Copy the new pin] [History] [Show]");
    expect(await why(vera, "web-2")).toContain("\n[Copy the new pin] [History] [Show]");
    expect(await told(olivia, "/vm show web-2", /web-2 is RUNNING/)).toContain("[Why?] [");
    await olivia.presses("Resize back");
    await olivia.until(({ modals }) => modals.some(({ submit }) => submit === "Resize"));
    const form = JSON.stringify(olivia.sees().modals);
    expect(form).toContain("CPU 8 → 4");
    expect(form).toContain(`It undoes olivia's resize (\`${record.id}\`).`);
    expect(form).not.toContain("new specs can change its measurement");
    await made(() => olivia.submits({}));
    await hears(olivia, "ops", /✅ .*Resized web-2/);
    await until(() => why(olivia, "web-2")).toMatch(
      /^🟢 web-2 is RUNNING\. The attestation of web-2 was verified at .*\. Nothing else/,
    );
  });

  it("reads the evidence of a pinned VM before it says anything, and offers what to do where nobody changed it", async () => {
    world.compute.edit.setMachine({ vm: "web-2", image: "what an intruder likes" });
    const text = await why(olivia, "web-2");
    expect(text).toMatch(
      /^🔴 web-2 has failed attestation since .*: .*\. Nobody changed it through Gatehouse since it last verified at [^\n]*\./,
    );
    expect(text).toContain("[Attest] [Evidence] [Stop] [Copy the new pin] [History] [Show]");
    expect(await why(vera, "web-2")).toContain("[Attest] [Evidence] [Copy the new pin] [History]");
    world.compute.edit.setMachine({ vm: "web-2", image: "web-2 v1" });
    expect(await why(olivia, "web-2")).toMatch(
      /^🟢 web-2 is RUNNING\. The attestation of web-2 was verified/,
    );
  });

  it("asks for the outcome that holds its lock", async () => {
    world.compute.weather({ match: "POST /v1/vms/:id/snapshots", lost: "after", times: 1 });
    await olivia.types("ops", "/vm snapshot db-1 before-x");
    await passQuiet(world);
    const { record } = await world.ended("vm snapshot");
    const text = await why(olivia, "db-1");
    expect(text).toMatch(
      new RegExp(
        `^❓ db-1 is locked for changes: nobody has recorded whether olivia's snapshot \\(${record.id}\\), sent at .*, happened\\.\nLook in`,
      ),
    );
    expect(text).toContain("[It happened] [It did not happen] [History] [Show]");
    expect(await why(vera, "db-1")).toContain("\n[History] [Show]");
    await olivia.presses("It did not happen");
    await olivia.until(({ modals }) => modals.some(({ submit }) => submit === "Record it"));
    await olivia.submits({ reason: "the console shows none" });
    await world.settled();
    expect(await why(olivia, "db-1")).toMatch(/^🟢 db-1 is RUNNING\. Nothing is known against it/);
  });

  it("says who froze all changes, and offers no change until the freeze ends", async () => {
    world.compute.edit.setStatus({ vm: "vm-payments-db-1", status: "STOPPED" });
    await ada.types("random", "/gatehouse freeze storage is failing");
    await until(() => why(olivia, "db-1")).toMatch(
      /^⚪ db-1 (?:is|has been) STOPPED[^\n]*\n🧊 ada froze all changes at .*: “storage is failing”\.\n[^\n]*\n\[History\] \[Show\]/,
    );
    expect(await why(ada, "db-1")).toContain("[Thaw]");
    world.compute.edit.setStatus({ vm: "vm-payments-db-1", status: "RUNNING" });
    await ada.presses("Thaw");
    await until(() => world.store.freezeState()).toBeUndefined();
  });

  it("tells nobody of another team", async () => {
    expect(await told(amir, "/gatehouse why web-2", /There is no|web-2/)).toMatch(
      /There is no VM called web-2/,
    );
  });
});
