import { describe, expect, it } from "vitest";
import { restart } from "../../../src/commands/vm/restart.ts";
import {
  type RehearsalFacts,
  tellRehearsal,
} from "../../../src/features/rehearsal/tell-rehearsal.ts";
import type { Fact } from "../../../src/core/facts/fact.ts";
import { md, plainWords } from "../../../src/messages/markdown.ts";
import { vmTarget } from "../../core/asking.ts";

const target = vmTarget("web-2");

/** Everything is known, and nothing stands in the way. */
const clear: RehearsalFacts = {
  command: restart,
  targets: [target],
  deed: "Restart web-2 (payments)",
  atOnce: 1,
  approval: undefined,
  needsNobody: false,
  nobody: undefined,
  freeze: undefined,
  limit: undefined,
  stops: [],
  known: [],
  earlier: { on: "targets", tookMs: [5000, 12_000, 4000] },
  lost: [],
  snapshotAt: undefined,
  unread: [],
};

const told = (over: Partial<RehearsalFacts>) => {
  const { approval, frozen, lines } = tellRehearsal({ ...clear, ...over });
  return [frozen, approval, ...lines].flatMap((line) =>
    line === undefined ? [] : [plainWords(line)],
  );
};

const fleet = ["edge-1", "edge-2", "edge-3", "edge-4", "edge-5"].map((name) => vmTarget(name));

describe("what would happen to a change", () => {
  it("is nothing that stops it, and how long it takes by earlier runs, where nothing else is known", () => {
    expect(told({})).toEqual([
      "✅ Nothing is known that would stop it.",
      "⏱️ 3 earlier restarts of web-2 took 5 s (median), the slowest 12 s.",
    ]);
  });

  it("takes as long as on other VMs of the project where the VM had no run, and isn't known where they had none", () => {
    expect(told({ earlier: { on: "projects", tookMs: [7000] } })).toContain(
      "⏱️ 1 earlier restart in payments took 7 s.",
    );
    expect(told({ earlier: { on: "projects", tookMs: [] } })).toContain(
      "⏱️ How long it takes isn't known: no earlier restart of web-2, or in payments, is on record.",
    );
  });

  it("takes as long for several VMs as their steps take one after the other", () => {
    const earlier = { on: "targets" as const, tookMs: [4000, 6000, 10_000] };
    expect(told({ targets: fleet, earlier, atOnce: 2 })).toContain(
      "⏱️ 3 earlier restarts of these VMs took 6 s (median), the slowest 10 s; 5 VMs, 2 at a time, take about 18 s.",
    );
  });

  it("says who must approve, that nobody has to, or that too few people could", () => {
    expect(told({ needsNobody: true })[0]).toBe("👥 Nobody has to approve it.");
    expect(told({ approval: "One other person must approve: amir or ada can." })[0]).toBe(
      "👥 One other person must approve: amir or ada can.",
    );
    const nobody = told({ nobody: "Not enough approvers: this needs 1 other than you." });
    expect(nobody[0]).toBe("🛑 Not enough approvers: this needs 1 other than you.");
    expect(nobody).not.toContain("✅ Nothing is known that would stop it.");
  });

  it("names what would stop it before what only matters, and promises nothing then", () => {
    const factsOn = (about: typeof target): Fact[] =>
      [
        ["has a console that amir opened", "note"] as const,
        ["fails attestation", "halts"] as const,
        ["is locked", "fails"] as const,
      ].map(([words, blocking]) => ({
        kind: "sample",
        about,
        severity: "info",
        sign: "❔",
        text: md`${about.name} ${words}.`,
        blocks: () => blocking,
      }));
    const known = factsOn(target);
    expect(told({ known, limit: "You requested 10 changes. Try again in 8 s." })).toEqual([
      "🛑 A limit would refuse it now: you requested 10 changes. Try again in 8 s.",
      "🛑 web-2 is locked.",
      "🔴 web-2 fails attestation.",
      "⚠️ web-2 has a console that amir opened.",
      "⏱️ 3 earlier restarts of web-2 took 5 s (median), the slowest 12 s.",
    ]);
    expect(told({ targets: fleet, known: fleet.flatMap(factsOn) })).toContain("…and 7 more.");
  });

  it("doesn't say that nothing stops it during a freeze", () => {
    const freeze = { by: "ada", reason: "storage is failing", at: 0, changedAt: 0 };
    const [first, ...rest] = told({ freeze });
    expect(first).toContain("All changes are frozen by ada: storage is failing.");
    expect(rest).not.toContain("✅ Nothing is known that would stop it.");
  });

  it("says what is lost, and that the wait for approval adds to it", () => {
    const lost = [md`⚠️ Everything written to web-2 since 11:48 AM is replaced.`];
    const approval = "One other person must approve: amir can.";
    expect(told({ lost, approval, snapshotAt: 1 }).slice(-2)).toEqual([
      "⚠️ Everything written to web-2 since 11:48 AM is replaced.",
      "What is written until the approval comes is lost, too.",
    ]);
    expect(told({ lost, snapshotAt: 1 }).at(-1)).toContain("is replaced.");
  });

  it("names what couldn't be read, and then doesn't say that nothing stops it", () => {
    const all = told({ unread: ["open consoles", "earlier runs"], earlier: undefined });
    expect(all).toEqual([
      "❔ Not known, because it can't be read now: open consoles, earlier runs.",
    ]);
  });
});
