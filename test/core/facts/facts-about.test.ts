import { describe, expect, it } from "vitest";
import type { Fact, FactSource } from "../../../src/core/facts/fact.ts";
import type { Severity } from "../../../src/messages/severity.ts";
import { type FactReader, createFactsAbout } from "../../../src/core/facts/facts-about.ts";
import { commands } from "../../../src/features/index.ts";
import { silentLog } from "../../../src/log/log.ts";
import { md, plainWords } from "../../../src/messages/markdown.ts";
import { vmTarget } from "../asking.ts";

const mine = vmTarget("web-1");
const hidden = vmTarget("gpu-1", { projectId: "prj-ml", projectName: "ml" });

const fact = (text: string, over: Partial<Fact> = {}): Fact => ({
  kind: "sample",
  about: mine,
  severity: "notice",
  sign: "❔",
  text: md`${text}`,
  ...over,
});

/** Sees only what is in payments. */
const reader: FactReader = {
  journal: {
    recentIds: async () => [],
    getMany: async () => [],
    freezeState: async () => undefined,
  },
  sees: async (targets) => targets.every(({ projectId }) => projectId === "prj-payments"),
  seesAll: async () => false,
};

const told = async (sources: readonly FactSource[], targets = [mine], by: FactReader = reader) => {
  const factsAbout = createFactsAbout({
    appraiser: { pinsOf: async () => ({ values: [], from: "nowhere" }) },
    statuses: { readRecords: async () => new Map() },
    commands,
    sources: () => sources,
    log: silentLog(),
    now: Date.now,
  });
  return (await factsAbout(targets, { reader: by })).map(({ text }) => plainWords(text));
};

const sourceOf = (...facts: readonly Fact[]): FactSource => ({
  name: "samples",
  read: async () => facts,
});

describe("what is known of targets", () => {
  it("is told only of those that the reader sees, as they are and as they were", async () => {
    const asked: string[][] = [];
    const source: FactSource = {
      name: "samples",
      async read({ targets }) {
        asked.push(targets.map(({ name }) => name));
        return [
          fact("It is mine."),
          fact("It is of another team.", { about: hidden }),
          fact("It was of another team.", { learnedOf: [mine, { ...mine, projectId: "prj-ml" }] }),
          fact("It is about everything.", { about: undefined }),
        ];
      },
    };
    expect(await told([source], [mine, hidden])).toEqual([
      "It is mine.",
      "It is about everything.",
    ]);
    expect(asked).toEqual([["web-1"]]);
    const all = { ...reader, seesAll: async () => true };
    expect(await told([source], [mine, hidden], all)).toHaveLength(4);
  });

  it("begins with the most urgent, and a kind that nobody knows follows those of its severity", async () => {
    const of = (kind: string, severity: Severity) => fact(kind, { kind, severity });
    const source = sourceOf(
      of("verified", "well"),
      of("disk", "warning"),
      of("alert", "warning"),
      of("status", "alarm"),
      of("outcome", "alarm"),
      of("console", "info"),
    );
    expect(await told([source])).toEqual([
      "outcome",
      "status",
      "alert",
      "disk",
      "console",
      "verified",
    ]);
  });

  it("says which source can't be read, beside what the others know", async () => {
    const failing: FactSource = { name: "open consoles", read: () => Promise.reject(new Error()) };
    expect(await told([failing, sourceOf(fact("It is mine."))])).toEqual([
      "Open consoles can't be read now, so there may be more to know.",
      "It is mine.",
    ]);
  });
});
