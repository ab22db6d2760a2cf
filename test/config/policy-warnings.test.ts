import { describe, expect, it } from "vitest";
import { parsePolicy } from "../../src/config/policy-file.ts";
import { policyWarnings } from "../../src/config/policy-warnings.ts";
import { policyTerms } from "../../src/features/index.ts";

/** The warnings about a file, each with its line. */
function warnings(text: string) {
  const read = parsePolicy(text, "gatehouse.yml", policyTerms);
  if ("problems" in read) throw new Error(read.problems.join());
  return policyWarnings(read.policy).map(
    ({ path, text: what }) => `${read.lineOf(path) ?? ""}: ${what}`,
  );
}

const administer = `access: { administer: ["U0ADA"], operate: ["*"], approve: ["*"] }`;
const withRules = (...rules: string[]) =>
  warnings([administer, "approvals:", ...rules.map((rule) => `  - { ${rule} }`)].join("\n"));

describe("a policy by which nobody can thaw", () => {
  const thaw = "access.administer names no one: nobody can thaw changes once they are frozen";

  it.each([
    [`access: { operate: ["U0ADA"] }`, ""],
    [`access:\n  operate: ["U0ADA"]\n  administer: []`, "3"],
    [`teams: { a: { projects: ["a"], operate: ["U0ADA"] } }`, ""],
    [`access: { approve: ["U0ADA"] }`, ""],
  ])("is warned of: %s", (text, line) => {
    expect(warnings(text)).toEqual([`${line}: ${thaw}`]);
  });

  it.each(["{}", `access: { view: ["U0ADA"] }`, administer, `access: { administer: ["*"] }`])(
    "isn't %s",
    (text) => expect(warnings(text)).toEqual([]),
  );
});

describe("a glob that takes the approval from what destroys data", () => {
  it.each<[rules: string[], line: string, words: string]>([
    [[`operations: ["*"], required: 0`], "3", "(*) lets vm.restore and project.delete run"],
    [[`operations: ["vm.*"], required: 0`], "3", "(vm.*) lets vm.restore run"],
    [[`operations: ["vm.stop", "*.delete"], required: 0`], "3", "operations[2] (*.delete) lets"],
    [[`operations: ["*"], targets: ["*"], required: 0`], "3", "vm.restore and project.delete"],
    [
      [`operations: ["vm.restore"], required: 1`, `operations: ["*"], required: 0`],
      "4",
      "(*) lets project.delete run without approval",
    ],
    [
      [
        `operations: ["vm.restore"], targets: ["prod-*"], required: 1`,
        `operations: ["vm.*"], required: 0`,
      ],
      "4",
      "(vm.*) lets vm.restore run",
    ],
  ])("is warned of: %j", (rules, line, words) => {
    const found = withRules(...rules);
    expect(found).toHaveLength(1);
    expect(found[0]).toMatch(new RegExp(`^${line}: approvals`));
    expect(found[0]).toContain(words);
  });

  it.each([
    [[`operations: ["vm.restore", "project.delete"], required: 0`]],
    [[`operations: ["*"], targets: ["dev-*"], required: 0`]],
    [[`operations: ["*"], required: 1`]],
    [[`operations: ["vm.re*", "vm.restore"], required: 0`]],
    [[`operations: ["vm.st*"], required: 0`]],
    [[`operations: ["*.restore", "*.delete"], required: 1`, `operations: ["*"], required: 0`]],
  ])("isn't %j", (rules) => {
    expect(withRules(...rules)).toEqual([]);
  });
});
