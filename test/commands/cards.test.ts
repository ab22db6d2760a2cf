import { describe, expect, it } from "vitest";
import { commands } from "../../src/features/index.ts";
import type { Fact } from "../../src/core/facts/fact.ts";
import { ill, well } from "../../src/messages/finding.ts";
import type { Severity } from "../../src/messages/severity.ts";
import { md } from "../../src/messages/markdown.ts";
import { vmCard } from "../../src/commands/vm/show.ts";
import { person, vm as target } from "../core/permit/sample.ts";
import { called, stageOf, storedIn } from "../core/asking.ts";
import { listed, startReading } from "./reading.ts";
import { buttonsOf, complaintsOf, shownText } from "./shown-text.ts";

const now = Date.parse("2026-11-20T12:00:00Z");

function request(over: Partial<Parameters<typeof listed>[0]> = {}) {
  return listed({ target: target("web-2"), createdAt: now - 95_000, ...over });
}

const fact = (kind: string, severity: Severity, words: string): Fact => ({
  kind,
  severity,
  sign: "🔴",
  text: md`${words}`,
  since: now,
});

const card = (over: Partial<Parameters<typeof vmCard>[0]> = {}) =>
  vmCard({
    vm: {
      id: "vm-1",
      projectId: "p-1",
      name: "web-1",
      status: "RUNNING",
      region: "eu-west-1",
      specs: { cpu: 4, memory: 16, disk: 100 },
      ipAddress: "10.0.0.1",
      createdAt: "2026-11-01T08:00:00Z",
      attestation: { enabled: true, measurement: "ab".repeat(24) },
    },
    projectName: "shop",
    facts: [],
    commands,
    policy: { confirm: [], protect: [] },
    mayRun: () => true,
    now,
    ...over,
  });

describe("/vm show", () => {
  it("shows all there is to know, each number with what it counts", () => {
    const shown = card();
    expect(shownText(shown)).toBe(
      [
        "🟢 *web-1* is *RUNNING*",
        "*Project*\nshop",
        "*Region*\neu-west-1",
        "*Size*\n4 CPU · 16 memory · 100 disk",
        "*IP address*\n`10.0.0.1`",
        "*Attestation*\non, not checked",
        "*Created*\n<!date^1793520000^{date_short} {time}|Nov 1, 8:00 AM UTC>",
        "Read at <!date^1795176000^{time_secs}|12:00:00 PM UTC> · ID `vm-1` · measurement `abab…abab`",
        "[Metrics] [Attest] [Snapshots] [Console] [Refresh]",
        "[Snapshot]",
        "[Stop] [Restart] [Resize] [Restore]",
      ].join("\n"),
    );
    expect(shown.text).toBe("web-1 in shop is RUNNING");
    expect(complaintsOf(shown)).toEqual([]);
  });

  it("says what came of judging its evidence, rather than that it has some", () => {
    const verified = shownText(card({ facts: [fact("verified", "well", "It was verified.")] }));
    expect(verified).toMatch(
      /\*Attestation\*\n✅ verified <!date\^\d+\^\{date_short_pretty\} \{time\}\|/,
    );
    const failed = shownText(card({ facts: [fact("attestation", "alarm", "It fails.")] }));
    expect(failed).toContain("*Attestation*\n🔴 failed");
    const unverified = shownText(card({ facts: [fact("unverified", "warning", "It can't be.")] }));
    expect(unverified).toContain("*Attestation*\n❔ can't be verified");
  });

  it("does without what the service leaves out", () => {
    const shown = card({ vm: { id: "vm-1", projectId: "p-1", name: "web-1", status: "RUNNING" } });
    expect(shownText(shown)).toContain("*Region*\nnot reported\n*Size*\n? CPU · ? memory · ? disk");
    expect(shownText(shown)).toContain("*IP address*\nnone\n*Attestation*\nnot reported\nRead at");
    expect(complaintsOf(shown)).toEqual([]);
  });

  it.each([
    ["STOPPED", ["Start", "Snapshot", "Resize", "Restore"]],
    ["ERROR", ["Restart", "Restore"]],
    ["REBOOTING", []],
    ["DELETING", []],
    ["MIGRATING", []],
  ])("has the buttons that make sense when it is %s", (status, labels) => {
    const shown = card({ vm: { id: "vm-1", projectId: "p-1", name: "web-1", status } });
    const looks = ["Metrics", "Attest", "Snapshots", "Console", "Refresh"];
    expect(buttonsOf(shown).map(({ label }) => label)).toEqual([...looks, ...labels]);
  });

  it("no longer offers what the service refused for its ERROR, and names what is left", () => {
    const vm = { id: "vm-1", projectId: "p-1", name: "web-1", status: "ERROR" };
    const call = called({ before: vm, answer: { class: "conflict", status: 409 } });
    const refused = storedIn(stageOf("rejected", call), request());
    const labels = (over: Parameters<typeof card>[0]) =>
      buttonsOf(card(over)).map(({ label }) => label);
    expect(labels({ vm, last: [refused] })).not.toContain("Restart");
    expect(labels({ vm, last: [refused] })).toContain("Restore");
    expect(shownText(card({ vm, last: [refused] }))).toContain(
      "⚠️ *Restart*: The compute service refuses this while the VM is in ERROR. Next: restore a snapshot, open a console, check its attestation",
    );
    // A newer try that wasn't refused, or another status, offers it again
    expect(labels({ vm, last: [request(), refused] })).toContain("Restart");
    expect(labels({ vm: { ...vm, status: "RUNNING" }, last: [refused] })).toContain("Restart");
  });

  it("offers nothing that gatehouse.yml protects it from, and says so", () => {
    const shown = card({ policy: { confirm: [], protect: ["web-1"] } });
    const labels = buttonsOf(shown).map(({ label }) => label);
    expect(labels).toContain("Restart");
    for (const label of ["Stop", "Resize", "Restore"]) expect(labels).not.toContain(label);
    expect(shownText(shown)).toContain(
      "🔒 Protected in gatehouse.yml, so not from Slack: Stop, Resize, Restore.",
    );
  });

  it("is red where it fails attestation, whatever its status", () => {
    const words = "web-1 has failed attestation since noon.";
    const shown = card({ facts: [fact("attestation", "alarm", words)] });
    expect(shown.text).toBe(`web-1 in shop is RUNNING. ${words}`);
    expect(shownText(shown)).toMatch(
      /^🔴 \*web-1\* is \*RUNNING\*\n🔴 web-1 has failed attestation since noon\.\n/,
    );
    expect(shownText(shown)).toContain("*Attestation*\n🔴 failed");
  });

  it("has no buttons for what the person may not do", () => {
    const shown = card({ mayRun: (command) => command.class === "read" });
    const looks = ["Metrics", "Attest", "Snapshots", "Refresh"];
    expect(buttonsOf(shown).map(({ label }) => label)).toEqual(looks);
  });

  it("asks before what interrupts, once: a form, or `confirm` of the policy, asks after the press", () => {
    const buttons = buttonsOf(card());
    expect(buttons).toContainEqual({
      label: "Restart",
      action: "run:vm.restart",
      value: '{"vms":["vm-1"]}',
      asks: "Restart web-1 in shop? What runs there is interrupted.",
    });
    const asking = (shown: Parameters<typeof buttonsOf>[0]) =>
      buttonsOf(shown).flatMap(({ label, asks }) => (asks ? [label] : []));
    expect(asking(card())).toEqual(["Stop", "Restart"]);
    expect(asking(card({ policy: { confirm: ["web-*"], protect: [] } }))).toEqual([]);
    expect(buttons).toContainEqual({
      label: "Snapshot",
      action: "run:vm.snapshot",
      value: '{"vm":"vm-1"}',
    });
    expect(buttons).toContainEqual({
      label: "Refresh",
      action: "run:vm.show",
      value: '{"vm":"vm-1"}',
    });
  });

  it("says what is under way on it, and what can't be read now", () => {
    const changing = { ...fact("under way", "notice", "web-1 is changing."), sign: "⏳" };
    const unread = { ...fact("unread", "warning", "Pins can't be read."), unread: "pins" };
    const shown = shownText(card({ facts: [changing, unread] }));
    expect(shown).toMatch(/^🟢 \*web-1\* is \*RUNNING\*\n\*Project/);
    expect(shown).toContain("⏳ web-1 is changing.");
    expect(shown).toContain("❔ Not known, because it can't be read now: pins.");
  });

  it("shows the three most urgent troubles, and how many more there are", () => {
    const troubles = [1, 2, 3, 4, 5].map((n) => fact("alert", "warning", `Trouble ${n}.`));
    expect(shownText(card({ facts: troubles }))).toMatch(
      /^🟢 [^\n]*\n🔴 Trouble 1\.\n🔴 Trouble 2\.\n🔴 Trouble 3\.\n… and 2 more\n/,
    );
  });

  it("reads it from the service, so that it is never old", async () => {
    await using at = await startReading({ now: () => now });
    at.service.edit.findVm("web-2").status = "ERROR";
    expect(shownText(await at.reads("vm show web-2"))).toMatch(/^🔴 \*web-2\* is \*ERROR\*/);
    const known = await at.inventory.findVm("web-2");
    expect(known).toMatchObject({ record: { status: "ERROR" } });
  });
});

describe("/gatehouse jobs", () => {
  it("shows what is open, mine first", async () => {
    const requests = [
      request({ id: "r-newest0000", requesterId: "U0OLA" }),
      request({ id: "r-mine000000", requesterId: "U0VERA", state: "unknown", command: "vm stop" }),
      request({ id: "r-ended00000", state: "done" }),
      request({ id: "r-soon000000", requesterId: "U0OLA", state: "authorized" }),
    ];
    await using at = await startReading({ requests, now: () => now, person: person("U0VERA") });
    const shown = await at.reads("gatehouse jobs");
    expect(shownText(shown)).toBe(
      [
        "*3 requests are open*, 1 of them yours.",
        "*Stop web-2 (shop)*: outcome unknown, requested by U0VERA 1 min 35 s ago (`r-mine000000`)",
        "[It happened] [It did not happen] [I can't tell yet] [Check again]",
        "*Restart web-2 (shop)*: running, requested by U0OLA 1 min 35 s ago (`r-newest0000`)",
        "*Restart web-2 (shop)*: waiting to start, requested by U0OLA 1 min 35 s ago (`r-soon000000`)",
        "[Cancel]",
      ].join("\n"),
    );
    expect(complaintsOf(shown)).toEqual([]);
  });

  it("doesn't pretend to have counted what it didn't read", async () => {
    const requests = Array.from({ length: 200 }, (_, index) =>
      request({ id: `r-${String(index).padStart(10, "0")}` }),
    );
    await using at = await startReading({ requests, now: () => now });
    const shown = await at.reads("gatehouse jobs");
    expect(shownText(shown)).toMatch(/^\*60 or more requests are open\*, none of them yours\.\n/);
    expect(complaintsOf(shown)).toEqual([]);
  });

  it("says when there is nothing", async () => {
    await using at = await startReading();
    expect(shownText(await at.reads("gatehouse jobs"))).toBe("No requests are running or waiting.");
  });
});

describe("/gatehouse status", () => {
  it("says in one line whether all is well, and in one for each part why not", async () => {
    const slack = { ...well("answers"), kind: "Slack" };
    await using healthy = await startReading({ status: async () => [slack] });
    expect(shownText(await healthy.reads("gatehouse status"))).toBe(
      "*Everything works.*\n✅ *Slack*: answers",
    );
    const next = "Nothing can be changed until it is back; see `REDIS_URL`.";
    const redis = { ...ill("ECONNREFUSED", next), kind: "Redis" };
    await using broken = await startReading({ status: async () => [slack, redis] });
    const shown = await broken.reads("gatehouse status");
    expect(shownText(shown)).toBe(
      "*1 of 2 needs attention.*\n⚠️ *Redis*: ECONNREFUSED. Nothing can be changed until it is back; see `REDIS_URL`.\n✅ *Slack*: answers",
    );
    expect(shown.text).toBe("1 of 2 needs attention.");
  });

  it("teaches no configuration but to administrators", async () => {
    const advice = "`appendfsync` is everysec: set it to `always`";
    const redis = { ...well("answers, writes to disk"), kind: "Redis", advice };
    const status = async () => [redis];
    await using usual = await startReading({ status, person: person("U0VERA") });
    expect(shownText(await usual.reads("gatehouse status"))).toMatch(/writes to disk$/);
    await using administrator = await startReading({ status, person: person("U09ADMIN") });
    expect(shownText(await administrator.reads("gatehouse status"))).toMatch(
      /writes to disk; `appendfsync` is everysec: set it to `always`$/,
    );
  });
});

describe("/gatehouse help", () => {
  it("shows only what the person may run", async () => {
    await using at = await startReading({ mayRun: ({ class: is }) => is === "read" });
    const shown = shownText(await at.reads("gatehouse"));
    expect(shown).toContain("`/vm list");
    expect(shown).not.toContain("`/vm restart &lt;");
    expect(shown).not.toContain("freeze");
  });
});
