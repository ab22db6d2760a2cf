import { describe, expect, it } from "vitest";
import { judgeMemory } from "../../../src/redis/check.ts";
import { itemsOf } from "../../../src/features/digests/items.ts";
import type { LinesOfKind } from "../../../src/features/digest-part.ts";
import type { DriftRecord } from "../../../src/monitor/drift-records.ts";
import type { DigestFacts } from "../../../src/features/digests/items.ts";
import type { Event } from "../../../src/core/events/event.ts";
import type { OpenRequest } from "../../../src/features/digests/open-requests.ts";
import { renderHandover, renderDigest } from "../../../src/features/digests/render-digest.ts";
import type { KnownVm } from "../../../src/fleet/inventory/inventory.ts";
import { type Message } from "../../../src/messages/blocks.ts";
import { type Markdown, md, name } from "../../../src/messages/markdown.ts";
import { complaintsOf } from "../../commands/shown-text.ts";
import { knownVm } from "../../../demo/cards/requests.ts";
import { driftPart } from "../../../src/features/attest/tell-drift.ts";

const now = Date.parse("2026-11-20T08:00:00Z");
const minute = 60_000;
const hour = 60 * minute;

function facts(some: Partial<DigestFacts> = {}): DigestFacts {
  const vms: readonly KnownVm[] = some.vms ?? [knownVm("web-1"), knownVm("db-1")];
  return {
    now,
    since: now - 24 * hour,
    vms,
    statusSince: new Map(),
    refreshedAt: now - minute,
    stale: false,
    unreadProjects: [],
    open: [],
    events: [],
    unread: [],
    stuckAfterMs: 15 * minute,
    ...some,
  };
}

const request = (id: string, some: Partial<OpenRequest> = {}): OpenRequest => ({
  id,
  command: "vm restart",
  target: { kind: "vm", id: "vm-web-1", name: "web-1", projectId: "p-shop", status: "RUNNING" },
  requester: "olivia",
  state: "accepted",
  stateWords: some.state === "accepted" ? "running" : (some.state ?? "running"),
  createdAt: now - 2 * hour,
  changedAt: now - hour,
  approval: undefined,
  ...some,
});

/** Something that happened an hour ago. */
const event = (text: string, some: Partial<Event> = {}): Event => ({
  id: text,
  kind: { words: ["judgment", "judgments"], weight: "decision" },
  at: now - hour,
  endedAt: now - hour,
  text: md`${text}`,
  records: [],
  ...some,
});

const changes = { words: ["change", "changes"], weight: "routine" } as const;
const failures = { words: ["failed change", "failed changes"], weight: "decision" } as const;

/** A change of a VM that went well. */
const change = (target: string, deed = "olivia restarted", some: Partial<Event> = {}): Event =>
  event(`✅ ${deed} ${target} in 4 s.`, {
    kind: changes,
    deed: { begin: md`✅ ${deed}`, target },
    ...some,
  });

const drifting = (records: readonly DriftRecord[]) => driftPart(records, now);

/** As a feature adds them. */
const letters: LinesOfKind = {
  kind: "letter",
  words: ["letter", "letters"],
  place: "review",
  isLasting: true,
  lines: [
    {
      key: "a",
      text: md`✉️ A letter to sign.`,
      button: { label: "Sign", action: "letter:sign", value: "{}" },
    },
  ],
};

/** As a feature adds them. */
const parcels: LinesOfKind = {
  kind: "parcel",
  words: ["parcel", "parcels"],
  place: "advice",
  lines: [
    {
      key: "db-1",
      text: md`📦 A parcel for ${name("db-1")}.`,
      button: { label: "Parcels of db-1", action: "run:vm.show", value: "{}" },
    },
  ],
};

const frame = { title: "Digest", snoozed: new Set<string>() };
const words = (message: Message) =>
  JSON.stringify(message.blocks).replaceAll(/<!date\^\d+\^[^|>]*\|([^>]*)>/g, "$1");
const chartIn = ({ blocks }: Message) =>
  blocks.find((block) => block.type === "data_visualization");
it("a digest says early that Redis is filling up, and what helps", () => {
  const memory = judgeMemory({ usedBytes: 82 * 2 ** 20, mostBytes: 100 * 2 ** 20 });
  const text = words(renderDigest(facts({ memory }), frame));
  expect(text).toContain("Redis is nearly full (memory: 82 MiB of 100 MiB used). Raise maxmemory");
  const room = judgeMemory({ usedBytes: 79 * 2 ** 20, mostBytes: 100 * 2 ** 20 });
  expect(words(renderDigest(facts({ memory: room }), frame))).not.toContain("Redis");
});

const shown = (some: Partial<DigestFacts>) => words(renderDigest(facts(some), frame));

describe("a digest", () => {
  it("is one quiet line when there is nothing to say", () => {
    const message = renderDigest(facts(), frame);
    expect(message.blocks).toHaveLength(1);
    expect(message.text).toBe("Digest: nothing new");
    expect(words(message)).toContain("☀️ Nothing new since Nov 19, 8:00 AM UTC. 2 VMs: 2 RUNNING.");
    expect(chartIn(message)).toBeUndefined();
  });

  it("shows the most urgent first, each line with a button and a way to snooze it", () => {
    const drift: DriftRecord = {
      vm: knownVm("db-1"),
      mark: "ab",
      reason: "its measurement matches no pin",
      since: now - hour,
      lacks: [],
    };
    const message = renderDigest(
      facts({
        vms: [knownVm("web-1", "ERROR"), knownVm("web-2", "REBOOTING"), knownVm("db-1")],
        statusSince: new Map([
          ["vm-web-1", now - 3 * hour],
          ["vm-web-2", now - 40 * minute],
        ]),
        open: [
          request("r-aaaaaaaaaa", { state: "unknown" }),
          request("r-bbbbbbbbbb", {
            command: "vm restore",
            state: "draft",
            approval: { yes: 1, required: 2, expiresAt: now + hour },
          }),
        ],
        events: [
          change("web-1", undefined, { at: now - 3 * hour }),
          event("❌ Restart of web-4 failed.", { kind: failures, at: now - 2 * hour }),
          change("web-3", undefined),
          change("web-1", "amir resized"),
          event("⏳ olivia is restarting web-5.", { endedAt: undefined }),
          event("✅ It ended before the last digest.", { endedAt: now - 30 * hour }),
          event("⚪ Nothing came of it.", { kind: { words: ["x", "y"], weight: "detail" } }),
        ],
        parts: [drifting([drift]), { all: [parcels, letters] }],
      }),
      frame,
    );
    const sections = message.blocks.flatMap((block) =>
      block.type === "section" ? [block.text?.text ?? ""] : [],
    );
    const plain = sections.map((text) => text.replaceAll(/<!date\^\d+\^[^|>]*\|([^>]*)>/g, "$1"));
    expect(plain).toEqual([
      "🔴 *web-1* in shop has been in ERROR since 5:00 AM UTC.",
      "🟡 *web-2* in shop has been REBOOTING since 7:20 AM UTC.",
      "🔴 *db-1* in shop: attestation has failed since 7:00 AM UTC: its measurement matches no pin.",
      "❓ *vm restart* `web-1`, requested by olivia: outcome unknown since 7:00 AM UTC. Someone must record it.",
      "✉️ A letter to sign.",
      "✋ *vm restore* `web-1`, requested by olivia, has 1 of 2 approvals, until 9:00 AM UTC.",
      "Nov 20, 6:00 AM UTC ❌ Restart of web-4 failed.",
      "Nov 20, 7:00 AM UTC ✅ olivia restarted `web-1`, `web-3`.",
      "Nov 20, 7:00 AM UTC ✅ amir resized web-1 in 4 s.",
      "📦 A parcel for `db-1`.",
    ]);
    expect(message.text).toBe(
      "Digest: 1 VM in ERROR, 1 VM stuck, 1 failed attestation, 1 unknown outcome, 1 letter, 1 waiting for approval, 1 failed change, 3 changes, 1 parcel",
    );
    // Each line is a row with a button beside it, or a menu if it can be snoozed.
    const beside = message.blocks.flatMap((block) => {
      if (block.type !== "section") return [];
      if (block.accessory?.type === "button") return [block.accessory.action_id];
      if (block.accessory?.type !== "overflow") return [];
      return [block.accessory.options.map(({ text }) => text.text).join(" · ")];
    });
    const snoozes = [4, 24]
      .map((hours) => `Snooze ${hours} h for everyone here`)
      .concat("Snooze 7 d for everyone here")
      .join(" · ");
    expect(beside).toEqual([
      `Show web-1 · ${snoozes}`,
      `Show web-2 · ${snoozes}`,
      `Attest db-1 · ${snoozes}`,
      "run:gatehouse.why",
      "letter:sign",
      "run:gatehouse.why",
      `Parcels of db-1 · ${snoozes}`,
    ]);
    expect(message.blocks.filter(({ type }) => type === "actions")).toEqual([]);
    expect(complaintsOf(message)).toEqual([]);
    expect(chartIn(message)?.chart.series).toEqual([
      {
        name: "VMs",
        data: ["ERROR", "REBOOTING", "RUNNING"].map((label) => ({ label, value: 1 })),
      },
    ]);
    expect(words(message)).toContain(
      "3 VMs: 1 ERROR, 1 REBOOTING, 1 RUNNING, 🔴 1 failing attestation.",
    );
  });

  it("says how many VMs it is about, and draws no chart with two bars", () => {
    const vms = [knownVm("web-1"), knownVm("web-2", "ERROR")];
    const message = renderDigest(facts({ vms, seen: 12 }), frame);
    expect(words(message)).toContain("2 of your 12 VMs: 1 ERROR, 1 RUNNING.");
    expect(chartIn(message)).toBeUndefined();
  });

  it("keeps the button of a line whose VM has an ID too long for a menu", () => {
    const vm = { ...knownVm("web-1", "ERROR"), id: `vm-${"x".repeat(80)}` };
    const message = renderDigest(facts({ vms: [vm] }), frame);
    expect(message.blocks.find((block) => "accessory" in block)).toMatchObject({
      accessory: { type: "button", action_id: "run:vm.show" },
    });
  });

  it("stays within Slack's limits, counts the rest, and hides no kind behind another", () => {
    const many = Array.from({ length: 5000 }, (_, n) => knownVm(`web-${n}`, "ERROR"));
    const message = renderDigest(
      facts({
        vms: many,
        open: Array.from({ length: 30 }, (_, n) => request(`r-${n}`, { state: "unknown" })),
        events: [change("web-1")],
        unreadProjects: ["other"],
      }),
      frame,
    );
    expect(message.blocks.length).toBeLessThanOrEqual(49);
    expect(words(message)).toContain("… and 4,994 VMs in ERROR, 24 unknown outcomes more.");
    expect(words(message)).toContain("restarted web-1");
  });

  it("names what could not be read and invents no zeros", () => {
    const text = shown({
      vms: [knownVm("web-1"), knownVm("gpu-1", "RUNNING", "ml"), knownVm("gpu-2", "ERROR", "ml")],
      unreadProjects: ["ml"],
      unread: ["snapshots"],
    });
    expect(text).toContain("1 project could not be read:* `ml`. Their VMs are not counted.");
    expect(text).toContain("Could not be read:* snapshots. Not included in this digest.");
    expect(text).toContain("1 VM: 1 RUNNING, and 2 whose state is not known.");
    expect(text).toContain("is in ERROR when it was last read");
    expect(text).not.toMatch(/\b0 /);
  });

  it("says nothing of VMs at all when none could be read", () => {
    const { vms: _, refreshedAt: __, ...rest } = facts();
    const message = renderDigest({ ...rest, stale: true, unread: ["VMs"] }, frame);
    expect(words(message)).toContain("How many VMs there are could not be read.");
    expect(words(message)).toContain("The compute service has not been read yet");
    expect(words(message)).not.toMatch(/\b0 |no VMs/);
    expect(chartIn(message)).toBeUndefined();
  });

  it("keeps text from the service inert", () => {
    const evil = "<!channel> `x`";
    const vm = { ...knownVm("x", "ERROR"), name: evil, projectName: evil };
    const { blocks } = renderDigest(
      facts({ vms: [vm], unreadProjects: [evil], unread: [evil] }),
      frame,
    );
    // Slack shows plain text as it is written
    const markup = JSON.stringify(blocks, (_key, value) =>
      value?.type === "plain_text" ? undefined : value,
    );
    expect(markup).not.toContain("<!channel>");
  });
});

describe("a fact that the person in charge must know", () => {
  const frozen = event("🧊 ada froze all changes.", { at: now - 4 * hour });
  const judged = event("✅ HighCpu ended after it.", { at: now - 2 * hour });
  const many = Array.from({ length: 40 }, (_, n) =>
    event(`❌ Restart of web-${n} failed.`, { kind: failures, at: now - 3 * hour + n }),
  );
  const events = [frozen, ...many, judged];

  it("has a line of its own however much else happened, in the order in which it happened, in a digest and in a handover", () => {
    for (const message of [
      renderDigest(facts({ events }), frame),
      renderHandover(facts({ events }), [], { left: { author: "olivia", text: "" } }),
    ]) {
      expect(words(message)).toMatch(
        /4:00 AM UTC 🧊 ada froze all changes\.[^]*❌ Restart of web-0 failed\.[^]*6:00 AM UTC ✅ HighCpu ended after it\./,
      );
      expect(words(message)).toMatch(/… and \d+ failed changes more\./);
    }
    expect(renderDigest(facts({ events }), frame).text).toBe(
      "Digest: 2 judgments, 40 failed changes",
    );
  });

  it("is told once, where the line of a feature tells of it", () => {
    const parts = [{ all: [letters], tellsOf: new Set([judged.id]) }];
    const told = words(renderDigest(facts({ events: [frozen, judged], parts }), frame));
    expect(told).toContain("A letter to sign.");
    expect(told).toContain("ada froze");
    expect(told).not.toContain("HighCpu");
  });

  it("begins with the present freeze, by whom, since when, and why, and doesn't repeat its start", () => {
    const present = { by: "ada", reason: "storage", at: now - hour, changedAt: now - hour };
    const lines = words(
      renderDigest(
        facts({ frozen: present, events: [{ ...frozen, endedAt: undefined }, judged] }),
        frame,
      ),
    );
    expect(lines).toContain("🧊 *ada froze all changes* at 7:00 AM UTC: “storage”.");
    expect(lines.split("froze all changes")).toHaveLength(2);
  });

  it("is in the counts as well: VMs that run and fail are counted as failing", () => {
    const drift: DriftRecord = {
      vm: knownVm("db-1"),
      mark: "ab",
      reason: "its measurement matches no pin",
      since: now - hour,
      lacks: [],
    };
    const drifts = drifting([drift, { ...drift, vm: knownVm("x"), mark: "" }]);
    const parts = [drifts, { all: [], counts: ", 📦 2 with a parcel" }];
    const vms = ["web-1", "web-2", "db-1"].map((vm) => knownVm(vm));
    expect(shown({ vms, parts })).toContain(
      "3 VMs: 3 RUNNING, 🔴 1 failing attestation, 📦 2 with a parcel.",
    );
  });
});

describe("a hand-over", () => {
  const parcelsAt = (all: readonly Markdown[]) => ({
    name: "Parcels",
    list: { title: "Parcels at the gate", none: "none", lines: all },
  });

  it("begins with what runs and what features have under way, and snoozes nothing", () => {
    const message = renderHandover(
      facts({
        vms: [knownVm("web-1", "ERROR")],
        open: [request("r-aaaaaaaaaa", { state: "accepted" })],
      }),
      [
        parcelsAt([md`One for ${name("db-1")}.`]),
        { name: "Letters", list: { title: "Letters", none: "none", lines: [] } },
      ],
      { left: { author: "olivia", text: "db-1 migrates until noon" } },
    );
    expect(words(message)).toContain("📝 *From olivia:* “db-1 migrates until noon”");
    expect(words(message)).toContain(
      "• vm restart `web-1`: running, requested by olivia Nov 20, 6:00 AM UTC",
    );
    expect(words(message)).toContain(
      "*Parcels at the gate:*\\n• One for `db-1`.\\n*Letters:* none.",
    );
    expect(words(message)).toContain("is in ERROR");
    expect(words(message)).not.toContain("Snooze");
  });

  it("says what it doesn't know", () => {
    const { open: _, ...rest } = facts({ unread: ["open requests"] });
    const message = renderHandover(rest, [{ name: "Parcels", list: undefined }]);
    expect(words(message)).toContain("*Running:* could not be read.");
    expect(words(message)).toContain("*Parcels:* could not be read.");
  });
});

describe("evidence for VMs", () => {
  const day = 24 * hour;
  const ending = (endsAt: number | undefined) => ({
    what: endsAt === undefined ? "AMD's list has expired" : "AMD's list",
    ...(endsAt === undefined ? {} : { endsAt }),
    since: now - hour,
  });
  const lacking = (lack: DriftRecord["lacks"][number]): DriftRecord[] =>
    Array.from({ length: 22 }, (_, n) => ({
      vm: knownVm(`web-${n + 1}`),
      mark: "",
      reason: "",
      since: now - hour,
      lacks: [lack],
    }));

  it("is reported before and after it expires, with the number of affected VMs", () => {
    expect(shown({ parts: [drifting(lacking(ending(now + 6 * day)))] })).toContain(
      "⏳ AMD's list expires Nov 26, 8:00 AM UTC; after that, 22 pinned VMs can't be verified (`web-1`, `web-2`, `web-3` and 19 more).",
    );
    expect(shown({ parts: [drifting(lacking(ending(undefined)))] })).toContain(
      "❔ 22 pinned VMs unverifiable since 7:00 AM UTC (`web-1`, `web-2`, `web-3` and 19 more): AMD's list has expired.",
    );
  });

  it("may be a level of Intel's that doesn't count yet", () => {
    const next = { ...ending(undefined), what: "Intel calls it OutOfDate", isNextLevel: true };
    expect(shown({ parts: [drifting(lacking(next))] })).toContain(
      "⏳ Once Intel's next level counts, 22 pinned VMs will fail (`web-1`, `web-2`, `web-3` and 19 more): Intel calls it OutOfDate.",
    );
  });

  it("is reported again at each stage after it was snoozed", () => {
    const keyAt = (days: number) =>
      itemsOf(facts({ parts: [drifting(lacking(ending(now + days * day)))] }))
        .find(({ kind }) => kind === "unverified")
        ?.key.split(":")
        .at(-1);
    expect([13, 8, 6, 2, 0.5].map(keyAt)).toEqual(["1", "1", "2", "2", "3"]);
  });
});
