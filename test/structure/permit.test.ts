import { posix } from "node:path";
import { describe, expect, it } from "vitest";
import { readSources, type Sources } from "./sources.ts";

/**
 * The rules themselves, each in the file that has it: only `src/core/permit` evaluates them, so that whoever wants to know what somebody
 * may do asks `core/permit/permit.ts`.
 */
const rules: Readonly<Record<string, readonly string[]>> = {
  "src/core/permit/refusal.ts": ["accessRefusal", "looserPin", "mayRun", "protection", "refusal"],
  "src/core/permit/approval-rule.ts": ["approvalRule", "oneMore", "rollbackReason"],
  "src/core/permit/access.ts": ["lists", "mayVote", "named"],
};

/** The only ones that submit: for people, for a rollout, and for a safety snapshot. */
const submitters = [
  "src/core/perform/safety-snapshot.ts",
  "src/features/rollouts/advance-rollout.ts",
  "src/talk/submit-change.ts",
];

/** The only one that asks on behalf of people who act in Slack or through an agent, and records what is refused. */
const authorize = "src/talk/authorize.ts";

/** Where a permit is asked for: what acts in Slack goes through `authorize`, and these ask for themselves. */
const askers: Readonly<Record<string, string>> = {
  [authorize]: "whoever acts",
  "src/core/perform/gate.ts": "right before the claim",
  "src/talk/without-redis.ts": "nothing can be recorded then",
  "src/commands/gatehouse/can-i.ts": "only answers",
  "src/cli/policy.ts": "only answers, in a terminal",
  "src/features/rollouts/press-rollout.ts": "names those that need approval",
  "scripts/rights-table.ts": "derives docs/rights.md",
};
const asking = ["askAndPermit", "mayAsk", "permit", "permitEach"];

/** The names that a file imports from another. */
function namesFrom(path: string, text: string, target: string): readonly string[] {
  const found = [
    ...text.matchAll(/(?:import|export)\s+(?:type\s+)?\{([^}]*)\}\s+from\s+"([^"]+)"/g),
  ];
  return found
    .filter(([, , from = ""]) => posix.join(posix.dirname(path), from) === target)
    .flatMap(([, names = ""]) => names.split(","))
    .map(
      (name) =>
        name
          .trim()
          .replace(/^type\s+/, "")
          .split(/\s+as\s+/)[0] ?? "",
    )
    .filter(Boolean);
}

/** A sentence for each way around the permit. */
function waysAround(sources: Sources): readonly string[] {
  return [...sources].flatMap(([path, text]) => {
    if (path.startsWith("src/core/permit/")) return [];
    const evaluated = Object.entries(rules).flatMap(([target, names]) =>
      namesFrom(path, text, target)
        .filter((name) => names.includes(name))
        .map((name) => `${path} evaluates ${name} itself`),
    );
    const wholes = [...text.matchAll(/(?:import|export)\s+\*[^"]*?\sfrom\s+"([^"]+)"/g)]
      .map(([, from = ""]) => posix.join(posix.dirname(path), from))
      .filter((target) => Object.hasOwn(rules, target))
      .map((target) => `${path} imports all of ${target}`);
    const asks = namesFrom(path, text, "src/core/permit/permit.ts")
      .filter((name) => asking.includes(name) && !Object.hasOwn(askers, path))
      .map((name) => `${path} calls ${name} instead of ${authorize}`);
    const submits = namesFrom(path, text, "src/core/submit/submit.ts")
      .filter((name) => name === "submit" && !submitters.includes(path))
      .map(() => `${path} submits`);
    const casts = /\bas\s+(?:unknown\s+as\s+)?(?:Permit|Asking)\b/.test(text)
      ? [`${path} casts something to a permit`]
      : [];
    const records = /what: "refusal"/.test(text) && path !== authorize;
    return [
      ...evaluated,
      ...wholes,
      ...asks,
      ...submits,
      ...casts,
      ...(records ? [`${path} records a refusal itself`] : []),
    ];
  });
}

describe("what somebody may do", () => {
  it("is asked of the permit module alone, and only what it permits is submitted", () => {
    expect(waysAround(readSources(["src", "demo", "scripts"]))).toEqual([]);
  });

  it("finds each rule, submitter, and asker where this test says that it is", () => {
    const sources = readSources(["src", "scripts"]);
    // A feature can be taken away
    const isHere = (path: string) => sources.has(path) || !path.startsWith("src/features/");
    for (const [path, names] of Object.entries(rules))
      for (const name of names)
        expect(sources.get(path)).toMatch(new RegExp(`export (?:function|const) ${name}\\b`));
    for (const path of submitters.filter(isHere))
      expect(namesFrom(path, sources.get(path) ?? "", "src/core/submit/submit.ts")).toContain(
        "submit",
      );
    for (const path of Object.keys(askers).filter(isHere))
      expect(
        namesFrom(path, sources.get(path) ?? "", "src/core/permit/permit.ts").some((name) =>
          asking.includes(name),
        ),
        path,
      ).toBe(true);
  });

  it("names each planted way around it", () => {
    const planted = new Map([
      ["src/api/a.ts", 'import { mayRun, ownerOf } from "../core/permit/refusal.ts";'],
      ["src/api/b.ts", 'import * as rules from "../core/permit/approval-rule.ts";'],
      [
        "src/api/c.ts",
        'import {\n  type Rules,\n  mayAsk as ask,\n} from "../core/permit/permit.ts";',
      ],
      ["src/api/d.ts", 'import { submit } from "../core/submit/submit.ts";'],
      ["src/api/e.ts", "submit({ approvals } as unknown as Permit);"],
      ["src/api/f.ts", 'store.note({ what: "refusal" });'],
      ["src/core/permit/g.ts", 'import { refusal } from "./refusal.ts";'],
    ]);
    expect(waysAround(planted)).toEqual([
      "src/api/a.ts evaluates mayRun itself",
      "src/api/b.ts imports all of src/core/permit/approval-rule.ts",
      "src/api/c.ts calls mayAsk instead of src/talk/authorize.ts",
      "src/api/d.ts submits",
      "src/api/e.ts casts something to a permit",
      "src/api/f.ts records a refusal itself",
    ]);
  });
});
